"""What a page over length shows: the value of a cell, its interval, and how the axis reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .context import decodes
from .median import median
from .rows import Cell
from .style import Series
from .ticks import fixed_ticks, log_ticks
from .units import TEXTS

Value = Callable[[Cell], float | None]


@dataclass(frozen=True)
class Quantity:
    kind: str  # of TEXTS
    title: str  # of the pages
    label: str  # of the axis
    value: Value
    ends: tuple[Value, Value] | None  # of the interval
    columns: Callable[[Cell], dict[str, Any]]  # of the CSV

    def heading(self, cell: Cell) -> str:
        return f"{self.title} of one token" if decodes(cell) else self.title

    def middle(self, cell: Cell) -> float:
        return self.value(cell) or np.nan

    def interval(self, cell: Cell) -> tuple[float, float]:
        """Returns the ends of the interval, or the value twice where there is no interval."""
        low, high = self.ends or (self.value, self.value)
        return low(cell) or self.middle(cell), high(cell) or self.middle(cell)

    def medians(self, series: Series) -> dict[int, float]:
        """Returns the median over the seeds, by length."""
        return {
            n: median([self.middle(c) for c in cells])
            for n, cells in by_length(series).items()
        }

    def intervals(self, series: Series) -> dict[int, tuple[float, float]]:
        """Returns the least interval that holds the intervals of all seeds, by length."""
        out = {}
        for n, cells in by_length(series).items():
            low, high = zip(*(self.interval(c) for c in cells))
            out[n] = float(np.min(low)), float(np.max(high))
        return out

    def text(self, value: float) -> str:
        return TEXTS[self.kind](value)

    def axis(self, axes: Axes) -> None:
        """Sets a logarithmic value axis, for bytes to base 2."""
        if self.kind == "bytes":
            axes.set_yscale("log", base=2)
            low, high = np.log2(axes.get_ylim())
            step = max(1, int(np.ceil((high - low) / 8)))
            first = int(np.ceil(low / step) * step)
            ticks = [2.0**p for p in range(first, int(np.floor(high)) + 1, step)]
            fixed_ticks(axes.yaxis, ticks, self.text)
        else:
            axes.set_yscale("log")
            log_ticks(axes, axes.yaxis, self.text)


def by_length(series: Series) -> dict[int, list[Cell]]:
    """Returns the cells with a value, by length. Cells of one length differ in their seed."""
    out: dict[int, list[Cell]] = {}
    for cell in sorted((c for c in series.cells if c.ok and c.length), key=lambda c: c.length or 0):
        out.setdefault(cell.length or 0, []).append(cell)
    return out
