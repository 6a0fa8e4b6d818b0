"""The summary of a report of these rows, a sentence a line."""

from __future__ import annotations

from pathlib import Path

from attnplot.rows import read_rows
from attnplot.style import Styles
from attnreport.book import Book
from attnreport.scores import Tasks
from attnreport.summary import summary


def table(path: Path) -> str:
    rows = read_rows([path])
    book = Book(rows, Styles(rows))
    return "\n".join(f"- {sentence}" for sentence in summary(book, Tasks(book)))
