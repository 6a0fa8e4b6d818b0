"""The picture of an entry: panels of what was measured and, hollow and dotted, what was published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from attnbench.plots.layout.axes import fixed_ticks, log_ticks
from attnbench.plots.layout.caption import caption, unique
from attnbench.plots.layout.page import Page, Picture
from attnbench.plots.rows.read import Cell, Rows, ids
from attnbench.plots.rows.style import GREY, Look, exact, look
from attnbench.plots.rows.units import bytes_text, length_text, seconds_text

from .entries import Entry
from .estimates import Estimate

ROW, LEAST, TALL = 0.2, 0.9, 2.0  # inches: a name's line, the lowest panel, a panel of curves
CHARACTER = 0.066  # inches of a name
APART = 0.16  # of a name's line: between the marks of two kinds
MOST_TICKS = 8  # of an axis of bytes
SCALES = {"bytes": bytes_text, "seconds": seconds_text, "length": length_text}
BASELINES = ("full", "full, tiled", "attention")


@dataclass(frozen=True)
class Point:
    x: float
    found: Estimate
    cells: tuple[Cell, ...] = ()  # behind the figure


@dataclass(frozen=True)
class Line:
    """A curve, or in a panel of names the marks of one kind. Equal labels look alike."""

    label: str
    points: tuple[Point, ...]
    published: bool = False


@dataclass(frozen=True)
class Panel:
    """With `names`, x counts them from 0 and they stand at the left, the figures along the x axis.
    `x_scale` and `y_scale`: linear, log, or a unit of SCALES, which is logarithmic."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    x_scale: str = "length"
    y_scale: str = "log"
    names: tuple[str, ...] = ()
    at: float | None = None  # a value of the figures to mark, such as 1
    bars: str = "95 % intervals"  # what the bars show

    @property
    def height(self) -> float:
        return max(LEAST, ROW * (len(self.names) + 0.6)) if self.names else TALL


def drawn(entry: Entry, panels: Sequence[Panel], rows: Rows, cells: list[Cell]) -> Picture:
    """`rows` and `cells` tell the caption where the figures come from."""
    looks = _looks(panels)
    across = 1 if any(p.names for p in panels) or len(panels) == 1 else 2
    grid = [panels[i : i + across] for i in range(0, len(panels), across)]
    published = any(line.published for panel in panels for line in panel.lines)
    legend = [(Line2D([], [], **one.line()), label) for label, one in looks.items()]
    if published:
        legend.append((Line2D([], [], **_as_published(exact(0))), "as published"))
    names = [len(name) for panel in panels for name in panel.names]
    page = Page(
        f"{entry.id}: {entry.title}",
        entry.paper,
        caption(rows, cells, _note(entry, panels)),
        legend,
        [max(panel.height for panel in row) for row in grid],
        across,
        gaps=[0.32] + [0.74] * (len(grid) - 1),
        left=0.16 + CHARACTER * max(names) if names else 0.92,
        between=0.92,
    )
    for row, group in enumerate(grid):
        for column, panel in enumerate(group):
            _draw(page.panel(row, column), panel, looks)
    return Picture(entry.id, page.figure, _table(panels), page.caption)


def _note(entry: Entry, panels: Sequence[Panel]) -> str:
    bars = " and ".join(unique(panel.bars for panel in panels))
    return f"After {entry.place}. Bars are {bars}; points without a bar are exact or as published."


def _looks(panels: Sequence[Panel]) -> dict[str, Look]:
    labels = unique(line.label for panel in panels for line in panel.lines)
    others = [label for label in labels if label not in BASELINES]
    return {
        label: exact(0) if label in BASELINES else _other(others.index(label)) for label in labels
    }


def _other(place: int) -> Look:
    return look(place, place % 7)


def _as_published(one: Look) -> dict[str, Any]:
    return one.line() | {"linestyle": (0, (1, 2)), "markerfacecolor": "white", "linewidth": 1.0}


def _draw(axes: Axes, panel: Panel, looks: dict[str, Look]) -> None:
    axes.set_title(panel.title)
    kinds = [line for line in panel.lines if not line.published]
    shared = len(kinds) > 1 and len({p.x for k in kinds for p in k.points}) < sum(len(k.points) for k in kinds)
    for line in panel.lines:
        one = looks[line.label]
        style = _as_published(one) if line.published else one.line()
        if panel.names:
            place = kinds.index(line) - (len(kinds) - 1) / 2 if shared and line in kinds else 0
            _draw_names(axes, line, style, APART * place)
        else:
            _draw_curve(axes, line, style)
    if panel.at is not None:
        mark = axes.axvline if panel.names else axes.axhline
        mark(panel.at, color=GREY, linewidth=1.0, zorder=1.5)
    figures, other = (axes.xaxis, axes.yaxis) if panel.names else (axes.yaxis, axes.xaxis)
    if panel.names:
        axes.set_ylim(len(panel.names) - 0.4, -0.6)
        axes.set_yticks(range(len(panel.names)), panel.names)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
    else:
        xs = sorted({p.x for line in panel.lines for p in line.points})
        _scale(axes, other, panel.x_scale, xs)
    _scale(axes, figures, panel.y_scale, None)
    axes.set_xlabel(panel.y if panel.names else panel.x)
    axes.set_ylabel("" if panel.names else panel.y)


def _draw_curve(axes: Axes, line: Line, style: dict[str, Any]) -> None:
    xs = [p.x for p in line.points]
    axes.plot(xs, [p.found.value for p in line.points], zorder=3, **style)
    for p in line.points:
        if not p.found.exact:
            axes.plot([p.x, p.x], _ends(p.found), color=style["color"], linewidth=1.1, zorder=2.8)


def _draw_names(axes: Axes, line: Line, style: dict[str, Any], shift: float) -> None:
    dots = style | {"linestyle": "none"}
    for p in line.points:
        y = p.x + shift
        if not p.found.exact:
            axes.plot(_ends(p.found), [y, y], color=style["color"], linewidth=1.3, zorder=2.8)
        axes.plot([p.found.value], [y], zorder=3, **dots)


def _ends(found: Estimate) -> list[float]:
    return [max(found.low, found.value / 1e3), min(found.high, abs(found.value) * 1e3)]


def _scale(axes: Axes, axis: Any, scale: str, ticks: list[float] | None) -> None:
    across = axis is axes.xaxis
    if scale == "linear":
        if ticks is not None:
            axis.set_ticks(ticks, [f"{t:g}" for t in ticks])
        return
    (axes.set_xscale if across else axes.set_yscale)("log", base=2 if scale in SCALES else 10)
    text = SCALES.get(scale, lambda value: f"{value:g}")
    if ticks is not None:
        shown = ticks
        while len(shown) > 7:
            shown = shown[::-1][::2][::-1]
        fixed_ticks(axis, shown, text)
        return
    low, high = axis.get_view_interval()
    if not 0 < low < high:
        return
    if scale == "bytes":
        powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
        step = 1 + len(powers) // MOST_TICKS
        fixed_ticks(axis, [2.0**p for p in powers if p % step == 0], text)
    else:
        log_ticks(axes, axis, text)


def _table(panels: Sequence[Panel]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "panel": panel.title,
            "line": line.label,
            "kind": "published" if line.published else "measured",
            "x": panel.names[int(p.x)] if panel.names else p.x,
            "value": p.found.value,
            "low": p.found.low,
            "high": p.found.high,
            "cells": ids(p.cells),
        }
        for panel in panels
        for line in panel.lines
        for p in line.points
    )


