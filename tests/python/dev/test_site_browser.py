"""The site in a real browser, opened from disk: search, the table of variants, colours, a phone, keys, the report inside, axe-core. Skipped
without Chromium, .venv-browser, .venv-site or the program."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any

from ..browser.session import drive, needs_browser
from ..faults import BUILT
from .built_site import MKDOCS, build

LIGHT, DARK = "rgb(255, 255, 255)", "rgb(22, 24, 27)"
NAME, FAMILY, YEAR, SUMMARY, CAN, TIME, PAPER = range(7)  # the table's columns


@BUILT
@needs_browser
@unittest.skipUnless(MKDOCS.exists(), "no .venv-site here: scripts/setup --venv site")
class Browser(unittest.TestCase):
    seen: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        """One session of the browser, whose findings the tests read."""
        with tempfile.TemporaryDirectory() as temporary:
            cls.seen = drive("dev.drive_site", build(Path(temporary)))
        cls.table = cls.seen["table"]

    def test_nothing_is_complained_of_or_loaded(self) -> None:
        self.assertEqual(self.seen["faults"], [])

    def test_search_finds_a_variant_by_name_author_and_number(self) -> None:
        found = self.seen["search"]["found"]
        for words, first in (("linformer", "linformer"), ("gated deltanet", "gated_deltanet"), ("velickovic", "graph"),
                             ("2006.04768", "linformer"), ("arXiv:2006.04768", "linformer")):  # fmt: skip
            self.assertEqual(found[words]["titles"][0], first, words)
        self.assertIn("linformer", found["Wang"]["titles"])
        self.assertIn("full", found["4·n²·d FLOPs (causal"]["titles"])  # signs that are not letters
        self.assertIn("Noise", found["noise floor"]["titles"])
        self.assertEqual(found["nothing has zqx"], {"titles": [], "count": "Nothing has all of these words."})

    def test_search_is_done_by_keys(self) -> None:
        seen = self.seen["search"]
        self.assertTrue(seen["closed"] and seen["second"])
        self.assertEqual((seen["back in the field"], seen["heading"]), ("search-words", "linformer"))

    def test_the_table_sorts_by_each_column_both_ways(self) -> None:
        every = self.table["all"]
        self.assertEqual(self.table["count"], f"All {len(every)} variants.")
        self.assertGreater(len(every), 70)
        for key, column in (("name", NAME), ("family", FAMILY), ("year", YEAR), ("time", TIME)):
            rising, falling = ([row[column] for row in rows] for rows in self.table[f"by {key}"])
            known = [t for t in rising if t != "\u2013"]
            read = (lambda t: float(t.strip("×?*~").replace(",", ""))) if key in ("year", "time") else str
            self.assertEqual(list(map(read, known)), sorted(map(read, known)), key)
            self.assertEqual([read(t) for t in falling if t != "\u2013"], sorted(map(read, known), reverse=True), key)
            for order in (rising, falling):  # what is not known stands last
                self.assertEqual(order[len(known) :], ["\u2013"] * (len(every) - len(known)), key)
            self.assertGreater(len(set(known)), 10, key)
        self.assertEqual(self.table["aria"], "descending")

    def test_the_table_filters_by_family_trait_years_and_words(self) -> None:
        every = self.table["all"]
        low_rank = [row for row in every if row[FAMILY] == "low rank"]
        self.assertCountEqual(self.table["low rank"], low_rank)
        causal = [row for row in low_rank if "causal" in row[CAN]]
        self.assertTrue(0 < len(causal) < len(low_rank))
        self.assertCountEqual(self.table["causal low rank"], causal)
        self.assertEqual(self.table["few"], f"{len(causal)} of {len(every)} variants.")
        self.assertCountEqual(self.table["years"], [row for row in every if row[YEAR] in ("2024", "2025")])
        self.assertEqual([row[NAME] for row in self.table["words"]], ["sparse"])
        for trait, word in (("causal", "causal"), ("cross", "cross"), ("decode", "decodes")):
            self.assertCountEqual(self.table["traits"][trait], [row[NAME] for row in every if word in row[CAN].split(", ")], trait)
        for trait, names in self.table["traits"].items():
            self.assertTrue(0 < len(names) <= len(every), trait)
        self.assertGreater(len({len(names) for names in self.table["traits"].values()}), 10)

    def test_a_link_keeps_the_choice_and_resetting_shows_all(self) -> None:
        rows, sort = self.table["kept"]
        self.assertEqual((rows, sort), (self.table["causal low rank"], "descending"))
        self.assertEqual(self.table["reset"], [len(self.table["all"]), "variants/index.html"])

    def test_keys_sort_the_table_and_a_page_leads_back_to_its_family(self) -> None:
        first = self.table["by key"][0]
        self.assertEqual(first[YEAR], min(row[YEAR] for row in self.table["all"] if row[YEAR] != "\u2013"))
        self.assertEqual(self.table["heading"], first[NAME])
        self.assertCountEqual(self.table["of its family"], [row for row in self.table["all"] if row[FAMILY] == first[FAMILY]])

    def test_colours_follow_the_system_or_the_reader(self) -> None:
        seen = self.seen["colours"]
        self.assertEqual([seen[k] for k in ("light", "dark", "phone", "chosen", "auto")], [LIGHT, DARK, DARK, LIGHT, DARK])
        self.assertEqual(seen["kept"], [LIGHT, "light"])

    def test_no_page_is_wider_than_a_phone_of_360_pixels(self) -> None:
        widths = self.seen["widths"] | {"the search": self.seen["phone"]["width"]}
        self.assertEqual({name: width for name, width in widths.items() if width != 360}, {})
        self.assertGreater(len(widths), 9)

    def test_a_phone_has_the_menu_behind_a_button(self) -> None:
        seen = self.seen["phone"]
        self.assertTrue(seen["hidden"])
        self.assertEqual((seen["opened"], seen["heading"]), ([True, "true"], "Variants"))
        self.assertEqual(seen["found"][0], "linformer")

    def test_the_report_opens_inside_and_leads_back(self) -> None:
        seen = self.seen["report"]
        self.assertEqual((seen["title"], seen["back"], seen["width"]), ("attnbench report", "attnbench", 1280))

    def test_nothing_serious_is_found_by_axe(self) -> None:
        self.assertEqual(self.seen["audits"], [])
