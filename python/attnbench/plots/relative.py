"""Time as a multiple of exact attention's, against length: a slow variant flattens no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .caption import MEDIANS
from .curve_page import Words, draw_pages
from .page import Picture
from .panels import Panel, drawn_series, pages, scope_words
from .quantity import Quantity, Value
from .rows import Cell, Rows
from .style import Styles
from .timings import against_exact, ratio

LABEL = "time, exact attention = \u00d71"
NOTE = (
    "Median time over that of exact attention at the same length; "
    f"bands are 95 % intervals of the ratio. {MEDIANS}"
)
Ratios = dict[str, tuple[float, float, float]]  # with its interval, by cell


def relative(rows: Rows, styles: Styles) -> list[Picture]:
    out = []
    for name, panels in pages("speed", rows.of("speed")):
        kept = [p for p in panels if styles.baseline(p.select(drawn_series([p], styles)))]
        found: Ratios = {}
        for panel in kept:
            found |= ratios(panel, styles)
        if not any(value != 1 for value, _, _ in found.values()):
            continue
        quantity = _quantity(found)
        title = f"{quantity.title}: {scope_words(kept)}"
        words = Words(title, "below \u00d71 is faster than exact attention", lambda _: NOTE)
        stem = name.replace("speed-", "speed-relative-", 1)
        out += draw_pages(rows, styles, stem, _closed_up(kept), quantity, words)
    return out


def _closed_up(panels: list[Panel]) -> list[Panel]:
    """Closes the rows and columns that are empty because a panel was left out."""
    rows = sorted({p.row for p in panels})
    columns = sorted({p.column for p in panels})
    return [replace(p, row=rows.index(p.row), column=columns.index(p.column)) for p in panels]


def ratios(panel: Panel, styles: Styles) -> Ratios:
    out: Ratios = {}
    for own, full in against_exact(panel.select(drawn_series([panel], styles)), styles):
        for cell in own.series.cells:
            if cell.ok and cell.length:
                found = ratio(own, full, cell.length)
                if found:
                    out[cell.id] = found
    return out


def _quantity(ratios: Ratios) -> Quantity:
    def part(index: int) -> Value:
        return lambda cell: ratios[cell.id][index] if cell.id in ratios else None

    def columns(cell: Cell) -> dict[str, Any]:
        names = ("time_over_exact", "ci_low", "ci_high")
        return dict(zip(names, ratios.get(cell.id, (None, None, None))))

    title = "Time relative to exact attention"
    return Quantity("ratio", title, LABEL, part(0), (part(1), part(2)), columns)
