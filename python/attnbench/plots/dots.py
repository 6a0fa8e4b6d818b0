"""A panel of a single length: one line for each variant instead of curves of one point."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes

from .looks import halo
from .marks import beside, span
from .quantity import Quantity
from .rows import FAILURES
from .style import Series
from .ticks import log_ticks
from .units import length_text


def draw_dots(axes: Axes, series: list[Series], quantity: Quantity) -> None:
    length = next((c.length for s in series for c in s.cells if c.status != "skipped"), 0)
    axes.set_xscale("log")
    words: list[tuple[str, float | None, int, Any]] = []
    for y, s in enumerate(series):
        for cell in s.cells:
            value = quantity.value(cell) if cell.ok else None
            if value:
                span(axes, quantity.interval(cell), y, s.look, linewidth=3.5, alpha=0.45)
                axes.plot([value], [y], **s.look.line())
                words.append((f"{s.label}: {quantity.text(value)}", value, y, s.look.ink))
            elif cell.status in FAILURES:
                words.append((f"\u2715 {s.label}: {cell.status}", None, y, s.look.ink))
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.6, high * 1.6)
    axes.set_ylim(len(series) - 0.4, -0.6)
    axes.set_yticks([])
    for text, value, y, ink in words:
        _write(axes, text, value, y, ink)
    log_ticks(axes, axes.xaxis, quantity.text)
    axes.set_xlabel(f"{quantity.label} at length {length_text(length or 0)}")


def _write(axes: Axes, text: str, value: float | None, y: float, ink: Any) -> None:
    """Writes beside the point, on the side of the panel's middle. A text without a value stands at
    the left edge."""
    low, high = axes.get_xlim()
    right = value is None or value < math.sqrt(low * high)
    style = {"ha": "left" if right else "right", "color": ink, "path_effects": halo()}
    if value is None:
        beside(axes, text, (0.02, y), (0, 0), xycoords=axes.get_yaxis_transform(), **style)
    else:
        beside(axes, text, (value, y), (7 if right else -7, 0), **style)
