"""Peak memory against length: exact peaks of the counted pool."""

from __future__ import annotations

from typing import Any

from .caption import caption
from .curve_page import Quantity, Words, draw_pages
from .curves import shape_text
from .page import Picture
from .panels import Panel, decodes, pages, undrawn
from .rows import Cell, Rows
from .speed import scope_words
from .style import Styles

FIGURES = (
    "peak_bytes",
    "weights_bytes",
    "activations_bytes",
    "workspace_bytes",
    "extra_bytes",
    "state_bytes",
    "rss_peak_bytes",
)


def _columns(cell: Cell) -> dict[str, Any]:
    return {name: cell.metric(name) for name in FIGURES if cell.metric(name) is not None}


PEAK = Quantity("bytes", "peak memory", lambda cell: cell.metric("peak_bytes"), None, _columns)


def heading(cell: Cell) -> str:
    return "Peak memory of one token" if decodes(cell) else "Peak memory"


def _span(cell: Cell) -> str:
    return (
        "the step of one token, the state of those before it, inputs and weights"
        if decodes(cell)
        else "one call, inputs and weights"
    )


def memory(rows: Rows, styles: Styles) -> list[Picture]:
    out = []
    for name, panels in pages("memory", rows.of("memory")):
        first = panels[0].cells[0]
        title = f"{heading(first)} against sequence length: {scope_words(panels)}"

        def words(shown: list[Panel]) -> str:
            cells = [c for p in shown for c in p.cells]
            return caption(
                rows,
                cells,
                f"Peak of the counted memory pool during {_span(cells[0])} included: "
                "exact, n = 1, no interval.",
                undrawn(shown, styles),
                f"Shape: {shape_text(cells[0])}.",
            )

        out += draw_pages(styles, name, panels, PEAK, Words(title, "lower is better", words))
    return out
