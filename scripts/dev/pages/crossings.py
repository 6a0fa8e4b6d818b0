"""A Markdown table of speed rows: from which length on each variant is faster than exact attention, and what share of its
pass is choosing keys."""

from __future__ import annotations

from pathlib import Path

from attnbench.plots.kinds.crossing import Verdict, verdicts
from attnbench.plots.layout.panels import pages
from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.settings import MODE_WORDS, contract, mode_of
from attnbench.plots.rows.style import Series, Styles
from attnbench.plots.rows.units import markdown
from attnbench.reports.book import Book
from attnbench.reports.curves import measured

from .breakdown import shares_of

HEADS = ["pass", "variant", "faster from (95 % interval)", "beyond the noise from"]


def table(path: Path, length: int) -> str:
    """A line for each pass and variant. The last columns are of `length`: the time over that of
    exact attention, and the percent of the threads' time that goes to selection."""
    rows = read_rows([path])
    book = Book(rows, Styles(rows))
    lines = []
    for panel in (panel for _, own in pages("speed", rows.of("speed")) for panel in own):
        which = f"{MODE_WORDS[mode_of(panel.cells[0])]}, {contract(panel.cells[0])}"
        for verdict in verdicts(panel, measured(panel, book), book.styles, rows):
            own, exact = at(verdict.series, length), at(verdict.baseline, length)
            lines.append([which, f"`{verdict.series.label}`", *_told(verdict), _ratio(own, exact), _selection(own)])
    return markdown([*HEADS, f"time / exact's at {length:,}", f"selection at {length:,}, %"], lines)


def at(series: Series, length: int) -> Cell | None:
    return next((c for c in series.cells if c.ok and c.length == length), None)


def _told(verdict: Verdict) -> tuple[str, str]:
    return verdict.crossing.text(), verdict.faster_from or "—"


def _ratio(own: Cell | None, exact: Cell | None) -> str:
    times = [cell.metric("time_s.median") if cell else None for cell in (own, exact)]
    return "—" if None in times else f"{times[0] / times[1]:.2f}"  # type: ignore[operator]


def _selection(cell: Cell | None) -> str:
    shares = shares_of(cell) if cell else {}
    return f"{100 * shares.get('selection', 0):.0f}" if shares else "—"
