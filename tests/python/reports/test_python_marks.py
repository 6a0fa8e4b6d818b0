"""Pictures and the report mark variants in Python by a sign and one sentence, and no others."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from attnbench.plots.layout.caption import caption
from attnbench.plots.rows.read import PYTHON, PYTHON_NOTE, Rows, read_rows
from attnbench.plots.rows.style import Styles
from attnbench.reports.book import Book
from attnbench.reports.scores import Tasks
from attnbench.reports.summary import summary

from ..program.test_cli import ROOT

REFERENCE = ROOT / "results" / "reference" / "quick.jsonl"


def as_python(line: str) -> str:
    """The line with `linear` as a variant in Python."""
    row = json.loads(line)
    row.pop("checksum", None)
    if row["kind"] == "run":
        for variant in row["variants"]:
            if variant["name"] == "linear":
                variant |= {"name": "python_linear", "family": "python"}
    elif row["variant"]["name"] == "linear":
        row["variant"]["name"] = "python_linear"
        row["provided_by"] = "python"
    return json.dumps(row)


class Marks(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.native = read_rows([REFERENCE])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "mixed.jsonl")
            path.write_text("\n".join(map(as_python, REFERENCE.read_text().splitlines())) + "\n")
            cls.mixed = read_rows([path])

    def labels(self, rows: Rows) -> list[str]:
        return [s.label for s in Styles(rows).series(rows.cells)]

    def test_the_sign_stands_in_every_label_of_theirs_and_in_no_other(self) -> None:
        marked = [label for label in self.labels(self.mixed) if PYTHON in label]
        self.assertTrue(marked)
        self.assertTrue(all(label.startswith(f"python_linear{PYTHON}") for label in marked), marked)
        self.assertFalse([label for label in self.labels(self.native) if PYTHON in label])
        self.assertEqual(Styles(self.mixed).family(f"python_linear{PYTHON}"), "python")
        self.assertEqual(len(self.labels(self.mixed)), len(self.labels(self.native)))

    def test_captions_say_what_it_means(self) -> None:
        for rows, count in ((self.mixed, 1), (self.native, 0)):
            self.assertEqual(caption(rows, rows.cells).count(PYTHON_NOTE), count)

    def test_the_summary_of_the_report_says_it_too(self) -> None:
        for rows, count in ((self.mixed, 1), (self.native, 0)):
            book = Book(rows, Styles(rows))
            sentences = summary(book, Tasks(book))
            self.assertEqual(sentences.count(PYTHON_NOTE), count)
            named = [s for s in sentences if "python_linear" in s]
            self.assertEqual(bool(named), bool(count))
            self.assertFalse([s for s in named if "python_linear`" in s])


if __name__ == "__main__":
    unittest.main()
