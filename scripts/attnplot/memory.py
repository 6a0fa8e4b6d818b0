"""Peak memory against length: exact peaks of the counted pool."""

from __future__ import annotations

from typing import Any

from .caption import caption
from .curve_page import Quantity, draw_page
from .curves import shape_text
from .page import Picture
from .panels import decodes, pages, undrawn
from .rows import Cell, Rows
from .speed import WORDS
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
    pictures = []
    for name, panels in pages("memory", rows.of("memory")):
        cells = [c for p in panels for c in p.cells]
        scope = str(cells[0].axes.get("scope") or "attention")
        words = caption(
            rows,
            cells,
            f"Peak of the counted memory pool during {_span(cells[0])} included: "
            "exact, n = 1, no interval.",
            undrawn(panels, styles),
            f"Shape: {shape_text(cells[0])}.",
        )
        pictures.append(
            draw_page(
                styles,
                name,
                panels,
                PEAK,
                title=f"{heading(cells[0])} against sequence length: {WORDS.get(scope, scope)}",
                subtitle="lower is better; the grey fan shows growth with n and with n\u00b2",
                words=words,
            )
        )
    return pictures
