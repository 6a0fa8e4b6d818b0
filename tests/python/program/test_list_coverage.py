"""`list --coverage`: what the libraries ship, as profiles/mixers.toml has it, against the variants that there are."""

from __future__ import annotations

import json
import re
import tomllib
import unittest
from typing import Any

from ..faults import BUILT, ROOT
from .test_cli import attnbench

KINDS = ("variant", "stack", "option", "none")


def survey() -> dict[str, Any]:
    return tomllib.loads((ROOT / "profiles" / "mixers.toml").read_text(encoding="utf-8"))


def mixers() -> list[dict[str, str]]:
    return [mixer for library in survey()["library"] for mixer in library["mixers"]]


class Survey(unittest.TestCase):
    def test_every_mixer_has_a_variant_or_a_reason(self) -> None:
        for mixer in mixers():
            given = [mixer[kind] for kind in KINDS if kind in mixer]
            self.assertEqual(len(given), 1, mixer)
            self.assertTrue(given[0].strip(), mixer)

    def test_a_library_is_named_with_its_version_and_lists_a_mixer_once(self) -> None:
        names = [library["name"] for library in survey()["library"]]
        self.assertEqual(len(set(names)), len(names))
        for library in survey()["library"]:
            self.assertRegex(library["version"], r"\d")
            self.assertRegex(library["source"], r"^[\w.-]+/[\w.-]+, \w|^lucidrains on GitHub")
            own = [mixer["name"] for mixer in library["mixers"]]
            self.assertEqual(len(set(own)), len(own), library["name"])
            self.assertGreater(len(own), 3)

    def test_what_is_missing_is_shipped_by_a_library_and_has_a_paper(self) -> None:
        used = {mixer["variant"].partition("[")[0] for mixer in mixers() if "variant" in mixer}
        names = [mixer["name"] for mixer in survey()["missing"]]
        self.assertEqual(len(set(names)), len(names))
        for mixer in survey()["missing"]:
            self.assertIn(mixer["name"], used)
            self.assertRegex(mixer["paper"], r"\d{4}|\d\.\d")
            for thread in mixer.get("asked", []):
                self.assertRegex(thread, r"^[\w.-]+/[\w.-]+#\d+$")


@BUILT
class Listed(unittest.TestCase):
    told: dict[str, Any]
    variants: set[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.told = json.loads(attnbench("list", "--coverage", "--json").stdout)["coverage"]
        cls.variants = {v["name"] for v in json.loads(attnbench("list", "variants", "--json").stdout)["variants"]}

    def every(self, kind: str) -> list[dict[str, str]]:
        return [m for library in self.told["libraries"] for m in library["mixers"] if m["kind"] == kind]

    def test_every_variant_that_is_named_exists(self) -> None:
        self.assertGreater(len(self.every("variant")), 150)
        for mixer in self.every("variant"):
            self.assertIn(mixer["by"].partition("[")[0], self.variants, mixer)
        for mixer in self.every("stack"):
            parts = [part.split("*")[-1].partition("[")[0] for part in mixer["by"].split("+")]
            self.assertLessEqual(set(parts), self.variants, mixer)

    def test_an_option_that_is_named_exists(self) -> None:
        usage = attnbench("run", "--help").stdout
        for mixer in self.every("option"):
            option = mixer["by"].split()[0]
            self.assertRegex(usage, rf"{option}\b", mixer)

    def test_each_variant_here_is_shipped_somewhere_or_ours_alone(self) -> None:
        named = {m["by"].partition("[")[0] for m in self.every("variant")}
        for mixer in self.every("stack"):
            named |= {part.split("*")[-1].partition("[")[0] for part in mixer["by"].split("+")}
        alone = set(self.told["ours_alone"])
        self.assertEqual(named | alone, self.variants)
        self.assertEqual(named & alone, set())

    def test_the_totals_and_what_is_missing_are_those_of_the_entries(self) -> None:
        count = sum(len(library["mixers"]) for library in self.told["libraries"])
        self.assertEqual(sum(self.told["totals"].values()), count)
        missing = {m["name"] for m in self.told["missing"]}
        self.assertEqual({m["by"] for m in self.every("missing")}, missing)
        self.assertEqual(missing, {m["name"] for m in survey()["missing"]} - self.variants)
        asked = [len(m["libraries"]) + len(m["asked"]) for m in self.told["missing"]]
        self.assertEqual(asked, sorted(asked, reverse=True))
        for mixer in self.told["missing"]:
            ships = [lib["name"] for lib in self.told["libraries"] if any(m["by"] == mixer["name"] for m in lib["mixers"])]
            self.assertEqual(mixer["libraries"], ships)

    def test_the_text_has_a_line_a_mixer_and_every_library(self) -> None:
        shown = attnbench("list", "--coverage").stdout
        for library in self.told["libraries"]:
            self.assertIn(f"\n{library['name']} {library['version']} (", "\n" + shown)
            for mixer in library["mixers"]:
                self.assertRegex(shown, rf"\n  {re.escape(mixer['name'])} +.*{re.escape(mixer['by'])}")
        self.assertIn("missing here, the most asked first", shown)
        refused = attnbench("list", "tasks", "--coverage")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--coverage lists the mixers of libraries alone, not tasks", refused.stderr)


if __name__ == "__main__":
    unittest.main()
