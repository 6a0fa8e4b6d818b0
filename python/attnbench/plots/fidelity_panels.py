"""The two panels of the fidelity page: error against time and error against input scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from .curves import grey_lines, with_statuses
from .ends import End, make_room, name_ends, wrapped
from .families import tag
from .looks import halo
from .marks import beside, cross
from .place import Label, place_labels
from .rows import FAILURES, Cell
from .runs import run_of
from .style import Series
from .ticks import fixed_ticks, log_ticks
from .units import seconds_text

CROSS = {"linestyle": "none", "markeredgewidth": 1.0, "zorder": 2}
EXACT = 1e-5  # below it an answer in float is exact up to rounding
Timed = dict[tuple[Any, int | None], float]  # seconds by series and length


def scale_of(cell: Cell) -> float:
    return float(cell.axes.get("input_scale") or 1.0)


def only_scale(series: Series, scale: float) -> Series:
    return series.where(lambda cell: scale_of(cell) == scale)


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
        log_ticks(axes, axes.yaxis, lambda v: f"{v:g}")
        if exact:
            _name_floor(axes, floor)
    return floor


def _name_floor(axes: Axes, floor: float) -> None:
    """Names the lower edge, on which errors of rounding are drawn. Its tick replaces others."""
    low, high = axes.get_ylim()
    ticks = [t for t in axes.yaxis.get_major_locator().locs if t > low * (high / low) ** 0.06]
    exact = floor * 1.001
    fixed_ticks(axes.yaxis, [floor, *ticks], lambda v: "exact" if v <= exact else f"{v:g}")


def error_at(cell: Cell, floor: float) -> float:
    """Returns the height of a point: the lower edge where the error is rounding."""
    error = cell.metric("relative_error") or 0.0
    return error if error >= EXACT else floor


def against_cost(axes: Axes, series: list[Series], timed: Timed, floor: float) -> None:
    """Draws a point for each series, the mean over its seeds. A line joins the parameterisations of one variant and run:
    they trade cost for error. The first and the last of these are named, the last with the variant.
    """
    failed = 0
    short: dict[str, str] = {}
    paths: dict[tuple[str, str | None], list[Label]] = {}
    for index, s in enumerate(series):
        done = [c for c in s.cells if c.ok]
        x = (timed.get((s.key, done[0].length)) if timed else float(index + 1)) if done else None
        if x is not None:
            y = float(np.mean([error_at(c, floor) for c in done]))
            axes.plot([x], [y], **{**s.look.line(), "markersize": 6.5}, clip_on=False)
            path = paths.setdefault((s.variant, run_of(s.params)), [])
            path.append(Label(x, y, 4, s.label, s.look.ink))
            short[s.label] = tag(s)
        for cell in list({c.status: c for c in s.cells if c.status in FAILURES}.values()):
            failed_cross(axes, s, cell, failed)
            failed += 1
    for (variant, _), path in paths.items():
        look = next(s.look for s in series if s.variant == variant)
        axes.plot([p.x for p in path], [p.y for p in path], color=look.color, linewidth=0.9)
    axes.xaxis.set_minor_locator(NullLocator())
    if not timed:
        axes.set_xticks([])
        axes.set_xlim(0, len(series) + 1.5)
    else:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xlim(low / (high / low) ** 0.08, high * (high / low) ** 0.2)
        log_ticks(axes, axes.xaxis, seconds_text)
        axes.set_xlabel("time per forward call")
    ends = [replace(path[-1], text=wrapped(path[-1].text)) for path in paths.values()]
    ends += [
        replace(path[0], text=short[path[0].text]) for path in paths.values() if len(path) > 1
    ]
    points = [(p.x, p.y, p.radius) for path in paths.values() for p in path]
    for path in paths.values():
        points += [at for a, b in zip(path, path[1:]) for at in between(a, b)]
    place_labels(axes, ends, points=points)


def between(a: Label, b: Label) -> list[tuple[float, float, float]]:
    """Returns places on the line from a to b for labels to avoid. The axes are logarithmic."""
    return [
        (a.x ** (1 - t) * b.x**t, a.y ** (1 - t) * b.y**t, 1.5) for t in np.linspace(0.05, 0.95, 30)
    ]


def failed_cross(axes: Axes, series: Series, cell: Cell, index: int) -> None:
    """Draws the cross of a cell that has no place on the axes, in the upper left corner, and names it."""
    at = (0.02, 0.95 - 0.09 * index)
    cross(axes, *([v] for v in at), series.look, **CROSS, transform=axes.transAxes)
    style = {"color": series.look.ink, "path_effects": halo()}
    told = f"{series.label}: {cell.status}"
    beside(axes, told, at, (7, 0), xycoords="axes fraction", **style)


def against_scale(
    axes: Axes, series: list[Series], others: list[Series], scales: list[float], floor: float
) -> None:
    ends, failing = [], 0
    for s in series:
        points = _by_scale(s, floor)
        failed = sorted({(scale_of(c), c.status) for c in s.cells if c.status in FAILURES})
        height = 0.95 - 0.07 * failing
        places, edge = [x for x, _ in failed], axes.get_xaxis_transform()
        cross(axes, places, [height] * len(failed), s.look, **CROSS, transform=edge)
        failing += bool(failed)
        if points:
            axes.plot(*zip(*points), **s.look.line(), clip_on=False)
        if points or failed:
            told = with_statuses(s.label, failed)
            ends.append(End(points[-1] if points else None, told, s.look))
    axes.set_xscale("log", base=2)
    spread = max((max(scales) / min(scales)) ** 0.06, 1.1)  # a single scale needs room too
    axes.set_xlim(min(scales) / spread, max(scales) * spread)
    fixed_ticks(axes.xaxis, scales, lambda v: f"{v:g}")
    axes.set_xlabel("scale of queries and keys")
    share = make_room(axes, ends, max(scales))
    grey_lines(axes, (_by_scale(s, floor) for s in others))
    name_ends(axes, ends, share)


def _by_scale(series: Series, floor: float) -> list[tuple[float, float]]:
    """Returns the mean error over seeds at each scale."""
    at = sorted({scale_of(c) for c in series.cells if c.ok})
    return [
        (x, float(np.mean([error_at(c, floor) for c in only_scale(series, x).cells if c.ok])))
        for x in at
    ]
