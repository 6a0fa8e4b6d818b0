"""The size of a report of many rows, and of the form in it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from attnbench.plots.rows.read import read_rows
from attnbench.reports.document import document

from . import report_rows
from .test_report import InReport, Page

LIMIT = 6_000_000  # bytes of a report of MOST rows
MOST, SOME = 20_000, 4_000


class Size(InReport):
    few: str
    many: str

    @classmethod
    def setUpClass(cls) -> None:
        """Pages of few and of many rows, made once."""
        super().setUpClass()
        with tempfile.TemporaryDirectory() as folder:
            cls.few, cls.many = (cls.made(Path(folder) / f"{count}.jsonl", count) for count in (SOME // 10, SOME))

    @staticmethod
    def made(file: Path, count: int) -> str:
        rows = read_rows([report_rows.write(file, count)])
        assert len(rows.cells) == count, len(rows.cells)
        return document(rows)

    def test_twenty_thousand_rows_fit(self) -> None:
        """By the bytes of each row beyond those of a report of few, which hold Plotly."""
        few, many = (len(page.encode()) for page in (self.few, self.many))
        each = (many - few) / (SOME - SOME // 10)
        self.assertLess(few + MOST * each, LIMIT)

    def test_a_form_of_too_many_answers_is_a_command(self) -> None:
        self.assertIsNotNone(Page(self.few).data["advice"])
        self.assertIsNone(Page(self.many).data["advice"])
        self.assertIn("of so many rows", self.many)
        self.assertNotIn("of so many rows", self.few)
