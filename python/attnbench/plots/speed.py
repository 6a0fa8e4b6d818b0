"""Time against length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .caption import repetitions
from .context import decodes
from .curve_page import against_length
from .page import Picture
from .quantity import Quantity, Value
from .rows import Cell, Rows
from .style import Styles


def _number(name: str) -> Value:
    return lambda cell: cell.metric(name)


def _columns(cell: Cell) -> dict[str, Any]:
    return {
        **{k: cell.metric(f"time_s.{k}") for k in ("median", "ci_low", "ci_high", "min", "n")},
        "tokens_per_s": cell.metric("tokens_per_s"),
        "peak_fraction": cell.metric("peak_fraction"),
    }


TIME = Quantity(
    "seconds",
    "Time",
    "time per call",
    _number("time_s.median"),
    (_number("time_s.ci_low"), _number("time_s.ci_high")),
    _columns,
)
TOKEN_TIME = replace(TIME, label="time per token")


def time_of(cell: Cell) -> Quantity:
    return TOKEN_TIME if decodes(cell) else TIME


def speed(rows: Rows, styles: Styles) -> list[Picture]:
    return against_length("speed", rows, styles, time_of, repetitions)
