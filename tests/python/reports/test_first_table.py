"""The table that a report opens with: where it stands, its numbers, its bars."""

from __future__ import annotations

import html
import re
import unittest

from attnbench.plots.gallery import draw_all
from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.style import Styles
from attnbench.reports.book import Book
from attnbench.reports.first_table import first_table

from .. import fixture
from .test_report import InReport


class FirstTable(InReport):
    def test_a_page_opens_with_the_overview_and_folds_its_settings(self) -> None:
        page = self.page(fixture.quick_cells())
        order = [attrs.get("id") for tag, attrs in page.tags if tag in ("section", "details")]
        self.assertEqual(order[:4], ["overview", "summary", "contents", "settings"])
        self.assertFalse(any("open" in attrs for tag, attrs in page.tags if tag == "details"))

    def test_its_numbers_are_those_of_the_picture(self) -> None:
        file = self.rows(fixture.quick_cells())
        rows = read_rows([file])
        (picture,) = draw_all(rows, "overview")
        table = first_table(Book(rows, Styles(rows)))
        for line in picture.data.to_dict("records"):
            said = html.escape(line["text"]) + line["marks"]
            self.assertIn(f'<span class="value">{said}</span>', table, line)

    def test_rows_of_one_measure_have_no_table(self) -> None:
        rows = read_rows([self.rows(fixture.accuracy_cells())])
        self.assertEqual(first_table(Book(rows, Styles(rows))), "")

    def test_bars_are_within_their_places(self) -> None:
        rows = read_rows([self.rows(fixture.quick_cells())])
        widths = [float(w) for w in re.findall(r"(?:width|left):([\d.]+)%", first_table(Book(rows, Styles(rows))))]
        self.assertGreater(len(widths), 20)
        self.assertTrue(all(0 <= w <= 100 for w in widths))


if __name__ == "__main__":
    unittest.main()
