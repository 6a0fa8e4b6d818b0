"""The report's section on decoding holds the planted times, bytes and scores."""

from __future__ import annotations

import unittest

from attnbench.plots.kinds.kept import FORGETS
from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.style import Styles
from attnbench.reports.book import Book
from attnbench.reports.decoding import decoding

from .. import decoding_rows as made
from ..faults import InFolder
from .test_report_sections import rows_of


class Decoding(InFolder):
    def book(self, cells: list) -> Book:
        rows = read_rows([made.written(self.folder / "rows.jsonl", cells)])
        return Book(rows, Styles(rows))

    def test_a_line_has_the_time_over_that_of_exact_attention_with_its_heads(self) -> None:
        section = decoding(self.book(made.time_cells()))
        by = {(row["what is kept"], row["threads"], row["length"]): row for row in rows_of(section, "decoding")}
        quarter = by["full[evict=h2o,budget=1024]", 2, 4096]
        self.assertEqual((quarter["a token"], quarter["over exact attention"], quarter["bytes"]), (0.0020972, 0.25, 2.0**21))
        self.assertEqual(by["full, int8", 1, 16384]["over exact attention"], 0.25)
        self.assertEqual(by["full, 8 query heads over 8", 2, 4096]["over exact attention"], 1.0)

    def test_a_panel_has_a_line_for_each_thing_that_is_kept(self) -> None:
        section = decoding(self.book(made.time_cells()))
        one, two = sorted((p for p in section["panels"]), key=lambda p: len(p["lines"]))
        self.assertEqual((len(one["lines"]), len(two["lines"])), (4, 12), "the two windows have a number each")
        (linear,) = (line for line in two["lines"] if line["name"] == "linear")
        self.assertEqual([point[:4] for point in linear["points"]], [[2.0**19, 0.00052429, 0.00051905, 0.00052953]] * 2)

    def test_cells_of_other_heads_of_keys_are_no_points_of_a_line(self) -> None:
        shared = made.token("linear", {}, 4096, 2.0**18, kv_heads=1)
        section = decoding(self.book([*made.time_cells(), shared]))
        lines = {line["name"]: line["points"] for p in section["panels"] for line in p["lines"] if line["name"].startswith("linear")}
        self.assertEqual({name: len(points) for name, points in lines.items()}, {"linear, 8 query heads over 2": 2, "linear, 8 query heads over 1": 1})

    def test_scores_under_several_caches_have_a_panel_a_task(self) -> None:
        book = self.book(made.score_cells(("linear",)))
        section = decoding(book)
        panels = {p["title"]: {line["name"]: line for line in p["lines"]} for p in section["panels"]}
        forgetting = next(lines for title, lines in panels.items() if title.startswith("mqar") and title.endswith(FORGETS))
        self.assertEqual([(p[0], p[1]) for p in forgetting["h2o"]["points"]], [(5 * 8 * 144, 0.6), (17 * 8 * 144, 0.98)])
        others = next(lines for title, lines in panels.items() if title.startswith("mqar") and not title.endswith(FORGETS))
        self.assertTrue(others["linear"]["hollow"])
        looks = [book.told()["series"][line["series"]] for line in (*forgetting.values(), *others.values())]
        self.assertEqual(len({(look["symbol"], look["dash"], look["label"]) for look in looks}), len({look["label"] for look in looks}))

    def test_one_cache_has_no_section(self) -> None:
        alone = [c for c in made.time_cells() if c["variant"]["name"] == "linear"]
        self.assertIsNone(decoding(self.book(alone)))
        self.assertIsNone(decoding(self.book([c for c in made.score_cells() if c["variant"]["name"] == "truncated"])))


if __name__ == "__main__":
    unittest.main()
