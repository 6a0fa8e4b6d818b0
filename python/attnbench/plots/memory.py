"""Peak memory against length: exact peaks of the counted pool."""

from __future__ import annotations

from typing import Any

from .context import decodes
from .curve_page import against_length
from .page import Picture
from .quantity import Quantity
from .rows import Cell, Rows
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


PEAK = Quantity(
    "bytes", "Peak memory", "peak memory", lambda cell: cell.metric("peak_bytes"), None, _columns
)


def memory(rows: Rows, styles: Styles) -> list[Picture]:
    return against_length("memory", rows, styles, lambda _: PEAK, _note)


def _note(cells: list[Cell]) -> str:
    span = (
        "the step of one token, the state of those before it, inputs and weights"
        if decodes(cells[0])
        else "one call, inputs and weights"
    )
    return f"Peak of the counted memory pool during {span} included: exact, n = 1, no interval."
