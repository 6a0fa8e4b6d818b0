"""results/packages.md is of the packages that are pinned and of the reasons that are written down; making it needs .venv-packages."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

from dev.packages.reasons import REASONS

ROOT = Path(__file__).resolve().parents[3]


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        self.page = (ROOT / "results" / "packages.md").read_text(encoding="utf-8")
        self.rows = re.findall(r"^\| ([a-z0-9-]+) ([0-9.]+) \|.*\| (.*) \|$", self.page, re.M)
        self.assertGreaterEqual(len(self.rows), 12)

    def test_versions_are_those_that_are_pinned(self) -> None:
        pinned = (ROOT / "scripts" / "requirements-packages.txt").read_text().splitlines()
        for package, version, _ in self.rows:
            self.assertIn(f"{package}=={version}", pinned)
        python = (ROOT / "scripts" / "requirements-python.txt").read_text().splitlines()
        for name in ("torch", "numpy"):
            self.assertEqual([p for p in pinned if p.startswith(f"{name}==")], [p for p in python if p.startswith(f"{name}==")])

    def test_each_red_check_has_its_reason(self) -> None:
        red = {(package, check) for package, _, checks in self.rows for check in re.findall(r"`(\w+)`", checks)}
        self.assertEqual(red, set(REASONS))
        for (package, check), reason in REASONS.items():
            self.assertIn(f"- **{package}, `{check}`**: {reason} The check says: ", self.page)

    def test_the_words_of_the_page_are_those_of_the_command(self) -> None:
        source = (ROOT / "scripts" / "dev" / "packages" / "__main__.py").read_text(encoding="utf-8")  # imports the packages
        head, tail = (re.search(f'^{name} = """(.*?)"""', source, re.M | re.S)[1] for name in ("HEAD", "TAIL"))
        self.assertTrue(self.page.startswith(head))
        self.assertIn(tail.partition("{torch}")[0], self.page)

    def test_each_package_has_its_adapter(self) -> None:
        adapters = (ROOT / "scripts" / "dev" / "packages" / "adapters.py").read_text(encoding="utf-8")
        self.assertEqual([p for p, _, _ in self.rows], re.findall(r'^    "([a-z0-9-]+)": \(', adapters, re.M))


if __name__ == "__main__":
    unittest.main()
