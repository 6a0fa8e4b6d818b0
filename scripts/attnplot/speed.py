"""Time against length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .caption import caption, repetitions
from .curve_page import Quantity, Words, draw_pages
from .curves import shape_text
from .page import Picture
from .panels import Panel, decodes, pages, undrawn
from .rows import Cell, Rows
from .style import Styles

WORDS = {"attention": "attention alone", "layer": "encoder layer", "model": "whole model"}


def _number(name: str) -> Any:
    return lambda cell: cell.metric(name)


def _columns(cell: Cell) -> dict[str, Any]:
    return {
        **{k: cell.metric(f"time_s.{k}") for k in ("median", "ci_low", "ci_high", "min", "n")},
        "tokens_per_s": cell.metric("tokens_per_s"),
        "peak_fraction": cell.metric("peak_fraction"),
    }


TIME = Quantity(
    "seconds",
    "time per call",
    _number("time_s.median"),
    (_number("time_s.ci_low"), _number("time_s.ci_high")),
    _columns,
)


TOKEN_TIME = replace(TIME, label="time per token")


def time_of(cell: Cell) -> Quantity:
    return TOKEN_TIME if decodes(cell) else TIME


def heading(quantity: Quantity) -> str:
    return "Time of one token" if quantity is TOKEN_TIME else "Time"


def speed(rows: Rows, styles: Styles) -> list[Picture]:
    out = []
    for name, panels in pages("speed", rows.of("speed")):
        quantity = time_of(panels[0].cells[0])
        title = f"{heading(quantity)} against sequence length: {scope_words(panels)}"

        def words(shown: list[Panel]) -> str:
            cells = [c for p in shown for c in p.cells]
            return caption(
                rows,
                cells,
                repetitions(cells),
                undrawn(shown, styles),
                f"Shape: {shape_text(cells[0])}.",
            )

        out += draw_pages(styles, name, panels, quantity, Words(title, "lower is better", words))
    return out


def scope_words(panels: list[Panel]) -> str:
    scope = str(panels[0].cells[0].axes.get("scope") or "attention")
    return WORDS.get(scope, scope)
