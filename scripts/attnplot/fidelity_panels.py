"""The two panels of the fidelity page: error against time and error against input scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from .curves import seconds_text
from .families import tag
from .place import Label, place_labels
from .rows import FAILURES, Cell
from .runs import run_of
from .style import GREY, Series, halo

EXACT = 1e-5  # below it an answer in float is exact up to rounding
Timed = dict[tuple[Any, int | None], float]  # seconds by series and length
APART = 8.5  # points between labels at the end of lines


def scale_of(cell: Cell) -> float:
    return float(cell.axes.get("input_scale") or 1.0)


def only_scale(series: Series, scale: float) -> Series:
    return replace(series, cells=tuple(c for c in series.cells if scale_of(c) == scale))


def limits(panels: list[Axes], series: list[Series]) -> float:
    errors = [c.metric("relative_error") or 0.0 for s in series for c in s.cells if c.ok]
    inexact = [e for e in errors if e >= EXACT]
    low, high = (min(inexact), max(inexact)) if inexact else (1e-7, 1e-6)
    exact = len(inexact) < len(errors)
    spread = max(high / low, 10.0)
    floor = low / spread ** (0.3 if exact else 0.08)
    for axes in panels:
        axes.set_yscale("log")
        axes.set_ylim(floor, high * spread**0.14)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        if exact:
            axes.annotate(
                "exact up to rounding",
                (0.5, 0),
                xycoords="axes fraction",
                xytext=(0, 7),
                ha="center",
                textcoords="offset points",
                fontsize=8,
                color=GREY,
                style="italic",
                path_effects=halo(),
            )
    return floor


def _value(cell: Cell, floor: float) -> float:
    error = cell.metric("relative_error") or 0.0
    return error if error >= EXACT else floor


def against_cost(axes: Axes, series: list[Series], timed: Timed, floor: float) -> None:
    """Points; a run's parameterisations of one variant are joined: they trade cost for error."""
    paths: dict[tuple[str, str | None], list[Label]] = {}
    for index, s in enumerate(series):
        for cell in s.cells:
            x = timed.get((s.key, cell.length)) if timed else float(index + 1)
            if cell.ok and x is not None:
                y = _value(cell, floor)
                axes.plot([x], [y], **{**s.look.line(), "markersize": 6.5}, clip_on=False)
                path = paths.setdefault((s.variant, run_of(s.params)), [])
                path.append(Label(x, y, 4, tag(s), s.look.ink))
            elif cell.status in FAILURES:
                _cross(axes, s, cell, index)
    for (variant, _), path in paths.items():
        look = next(s.look for s in series if s.variant == variant)
        axes.plot([p.x for p in path], [p.y for p in path], color=look.color, linewidth=0.9)
    axes.xaxis.set_minor_locator(NullLocator())
    if not timed:
        axes.set_xticks([])
    else:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xlim(low / (high / low) ** 0.06, high * (high / low) ** 0.06)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
        axes.xaxis.set_major_formatter(FuncFormatter(seconds_text))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("time per forward call")
    ends = [p for path in paths.values() for p in dict.fromkeys((path[0], path[-1])) if p.text]
    points = [(p.x, p.y, p.radius) for path in paths.values() for p in path]
    for path in paths.values():
        points += [at for a, b in zip(path, path[1:]) for at in _between(a, b)]
    place_labels(axes, ends, [], points=points)


def _between(a: Label, b: Label) -> list[tuple[float, float, float]]:
    """Places along the line from a to b, straight on logarithmic axes, for labels to avoid."""
    return [
        (a.x ** (1 - t) * b.x**t, a.y ** (1 - t) * b.y**t, 1.5) for t in np.linspace(0.05, 0.95, 30)
    ]


def _cross(axes: Axes, series: Series, cell: Cell, index: int) -> None:
    at = (0.02, 0.95 - 0.09 * index)
    axes.plot(*([v] for v in at), **_failed(series), transform=axes.transAxes)
    axes.annotate(
        f"{series.label}: {cell.status}",
        at,
        xycoords="axes fraction",
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=series.look.ink,
        path_effects=halo(),
    )


def _failed(series: Series) -> dict[str, Any]:
    return {
        "marker": "X",
        "linestyle": "none",
        "markersize": 6.5,
        "color": series.look.color,
        "markeredgecolor": "white",
        "clip_on": False,
    }


def against_scale(axes: Axes, series: list[Series], scales: list[float], floor: float) -> None:
    lines: list[tuple[Series, list[tuple[float, float]]]] = []
    for index, s in enumerate(series):
        at = sorted({scale_of(c) for c in s.cells if c.ok})
        points = [
            (x, float(np.median([_value(c, floor) for c in only_scale(s, x).cells if c.ok])))
            for x in at
        ]
        if points:
            axes.plot(*zip(*points), **s.look.line(), clip_on=False)
            lines.append((s, points))
        failed = [scale_of(c) for c in s.cells if c.status in FAILURES]
        heights = [0.95 - 0.09 * index] * len(failed)
        axes.plot(failed, heights, **_failed(s), transform=axes.get_xaxis_transform())
    axes.set_xscale("log", base=2)
    spread = max((max(scales) / min(scales)) ** 0.14, 1.2)  # a single scale needs room too
    axes.set_xlim(min(scales) / spread, max(scales) * spread)
    axes.xaxis.set_major_locator(FixedLocator(scales))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("scale of queries and keys (standard deviation)")
    _label_ends(axes, lines)


def _label_ends(axes: Axes, lines: list[tuple[Series, list[tuple[float, float]]]]) -> None:
    """The parameter's value at the end of a line that lies freer, if there is room for it."""
    pixel = axes.figure.dpi / 72
    height = {
        (s.key, side): axes.transData.transform(points[side])[1] / pixel
        for s, points in lines
        for side in (-1, 0)
    }
    taken: dict[int, list[float]] = {-1: [], 0: []}
    for s, points in lines:
        if sum(other.variant == s.variant for other, _ in lines) < 2:
            continue
        room = {
            side: min(
                [
                    abs(height[s.key, side] - h)
                    for (key, end), h in height.items()
                    if end == side and key != s.key
                ]
                + [100.0]
            )
            for side in (-1, 0)
        }
        for side in sorted(room, key=lambda e: -room[e]):
            y = height[s.key, side]
            if room[side] < 4 or any(abs(y - other) < APART for other in taken[side]):
                continue
            taken[side].append(y)
            axes.annotate(
                tag(s),
                points[side],
                xytext=(6 if side else -6, 0),
                textcoords="offset points",
                ha="left" if side else "right",
                va="center",
                fontsize=8,
                color=s.look.ink,
                path_effects=halo(),
                zorder=8,
            )
            break
