"""Time as a multiple of exact attention's, against length: a slow variant flattens no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .caption import caption, repetitions
from .curve_page import Quantity, Words, draw_pages
from .curves import shape_text
from .page import Picture
from .panels import Panel, drawn_series, pages, undrawn
from .rows import Cell, Rows
from .speed import scope_words
from .style import Styles
from .timings import against_exact, ratio

LABEL = "time, exact attention = \u00d71"
Ratios = dict[str, tuple[float, float, float]]  # with its interval, by cell


def relative(rows: Rows, styles: Styles) -> list[Picture]:
    out = []
    for name, panels in pages("speed", rows.of("speed")):
        kept = [p for p in panels if styles.baseline(p.select(drawn_series([p], styles)))]
        found: Ratios = {}
        for panel in kept:
            found |= _ratios(panel, styles)
        if not any(value != 1 for value, _, _ in found.values()):
            continue

        def words(shown: list[Panel]) -> str:
            cells = [c for p in shown for c in p.cells]
            return caption(
                rows,
                cells,
                "Median time over that of exact attention at the same length; "
                "bands are 95 % intervals of the ratio.",
                repetitions(cells).partition(", bands ")[0] + ".",
                undrawn(shown, styles),
                f"Shape: {shape_text(cells[0])}.",
            )

        title = f"Time relative to exact attention: {scope_words(kept)}"
        told = Words(title, "below \u00d71 is faster than exact attention", words)
        stem = name.replace("speed-", "speed-relative-", 1)
        out += draw_pages(styles, stem, _closed_up(kept), _quantity(found), told)
    return out


def _closed_up(panels: list[Panel]) -> list[Panel]:
    """Without empty rows and columns, where a panel was left out."""
    rows = sorted({p.row for p in panels})
    columns = sorted({p.column for p in panels})
    return [replace(p, row=rows.index(p.row), column=columns.index(p.column)) for p in panels]


def _ratios(panel: Panel, styles: Styles) -> Ratios:
    out: Ratios = {}
    for own, full in against_exact(panel.select(drawn_series([panel], styles)), styles):
        for cell in own.series.cells:
            if cell.ok and cell.length:
                found = ratio(own, full, cell.length)
                if found:
                    out[cell.id] = found
    return out


def _quantity(ratios: Ratios) -> Quantity:
    def part(index: int) -> Any:
        return lambda cell: ratios[cell.id][index] if cell.id in ratios else None

    def columns(cell: Cell) -> dict[str, Any]:
        names = ("time_over_exact", "ci_low", "ci_high")
        return dict(zip(names, ratios.get(cell.id, (None, None, None))))

    return Quantity("ratio", LABEL, part(0), (part(1), part(2)), columns)
