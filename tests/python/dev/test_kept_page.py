"""The table of results/equivalence.md on what caches keep is of the versions and commits that scripts/dev/kept names, and each of its
rows is equal or says why it is not."""

from __future__ import annotations

import re
import unittest

from ..faults import ROOT

PAGE = (ROOT / "results" / "equivalence.md").read_text(encoding="utf-8")
KEPT = ROOT / "scripts" / "dev" / "kept"
ALL = re.compile(r"(\d+) of \1\Z")


class KeptPage(unittest.TestCase):
    def setUp(self) -> None:
        section = PAGE.partition("\n## Which positions a cache keeps\n")[2].partition("\n## ")[0]
        lines = [line for line in section.splitlines() if line.startswith("|")][2:]
        self.rows = [[entry.strip() for entry in line.strip("|").split("|")] for line in lines]
        self.section = section

    def test_every_method_with_published_code_is_there_at_prompts_or_steps(self) -> None:
        self.assertEqual({row[0].strip("`") for row in self.rows}, {"sinks", "h2o", "tova", "snapkv", "norm", "quest"})

    def test_what_differs_is_named_and_equal_without_it(self) -> None:
        for method, code, when, as_it_is, difference, without in self.rows:
            with self.subTest(method=method, code=code, when=when):
                self.assertRegex(without or as_it_is, ALL)
                self.assertEqual(bool(difference), bool(without))

    def test_versions_and_commits_are_those_that_are_compared(self) -> None:
        pinned = dict(line.split("==") for line in (ROOT / "scripts" / "requirements-kept.txt").read_text().splitlines() if "==" in line)
        for text in (f"transformers {pinned['transformers']}", f"PyTorch {pinned['torch']}", f"kvpress {pinned['kvpress']} "):
            self.assertIn(text, self.section)
        sources = re.findall(r'Source\("([^"]+)", "([0-9a-f]{7})"', (KEPT / "by_authors.py").read_text(encoding="utf-8"))
        self.assertEqual({" ".join(source) for source in sources}, {row[1].split(",")[0] for row in self.rows if "/" in row[1]})


if __name__ == "__main__":
    unittest.main()
