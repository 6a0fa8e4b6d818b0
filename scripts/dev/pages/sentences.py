"""The summary of a report of these rows, a sentence a line."""

from __future__ import annotations

from pathlib import Path

from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.style import Styles
from attnbench.reports.book import Book
from attnbench.reports.scores import Tasks
from attnbench.reports.summary import summary


def table(path: Path) -> str:
    rows = read_rows([path])
    book = Book(rows, Styles(rows))
    return "\n".join(f"- {sentence}" for sentence in summary(book, Tasks(book)))
