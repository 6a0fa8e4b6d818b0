"""Puts labels beside points and on lines so that they cover neither each other nor the points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from .style import GREY, halo


@dataclass(frozen=True)
class Label:
    """A text for a point with a disc of `radius` points about it."""

    x: float
    y: float
    radius: float
    text: str
    color: Any


def place_labels(
    axes: Axes,
    labels: list[Label],
    levels: list[tuple[float, str]],
    *,
    size: float = 8,
    points: list[tuple[float, float, float]] | None = None,
) -> None:
    """Every label takes the place beside its point that overlaps least; then every level, a line
    across the panel, is named where there is room along it. `points` (x, y, radius) are all that
    labels should not cover, by default those that have one."""
    pixel = axes.figure.dpi / 72
    frame = axes.get_window_extent()
    discs = {}
    for x, y, radius in points or [(p.x, p.y, p.radius) for p in labels]:
        (cx, cy), r = axes.transData.transform((x, y)), radius * pixel
        discs[x, y] = Bbox.from_extents(cx - r, cy - r, cx + r, cy + r)
    heights = [axes.transData.transform((labels[0].x if labels else 1, y))[1] for y, _ in levels]
    lines = [Bbox.from_extents(frame.x0, h - 3, frame.x1, h + 3) for h in heights]
    taken: list[Bbox] = []
    for label in labels:
        others = [disc for at, disc in discs.items() if at != (label.x, label.y)]
        spots = [((label.x, label.y), "data", *spot) for spot in _beside(label.radius)]
        _put(axes, label.text, label.color, spots, size, (frame, taken, others, lines))
    for (y, text), line in zip(levels, lines):
        at = [(x, ha) for x, ha in ((0.01, "left"), (0.99, "right"), (0.5, "center"))]
        at += [(x, "center") for x in np.linspace(0.2, 0.8, 7)]
        spots = [
            ((x, y), axes.get_yaxis_transform(), 0, dy, ha, va)
            for x, ha in at
            for dy, va in ((2.5, "bottom"), (-2.5, "top"))
        ]
        rest = [other for other in lines if other is not line]
        _put(axes, text, GREY, spots, size, (frame, taken, list(discs.values()), rest))


def _beside(radius: float) -> list[tuple[float, float, str, str]]:
    gap, diagonal = radius + 2.5, 0.72 * radius + 2.5
    return [
        (gap, 0, "left", "center"),
        (-gap, 0, "right", "center"),
        (0, gap, "center", "bottom"),
        (0, -gap, "center", "top"),
        (diagonal, diagonal, "left", "bottom"),
        (diagonal, -diagonal, "left", "top"),
        (-diagonal, diagonal, "right", "bottom"),
        (-diagonal, -diagonal, "right", "top"),
        (gap - 2, 6, "left", "bottom"),
        (gap - 2, -6, "left", "top"),
        (2 - gap, 6, "right", "bottom"),
        (2 - gap, -6, "right", "top"),
    ]


def _put(
    axes: Axes,
    text: str,
    color: Any,
    spots: list[tuple[Any, ...]],
    size: float,
    obstacles: tuple[Bbox, list[Bbox], list[Bbox], list[Bbox]],
) -> None:
    """Writes the text at the cheapest spot and adds its box to the taken ones."""
    frame, taken, discs, lines = obstacles
    renderer = axes.figure.canvas.get_renderer()
    best: tuple[float, Any, Bbox] | None = None
    for rank, (at, coords, dx, dy, ha, va) in enumerate(spots):
        note = axes.annotate(
            text,
            at,
            xycoords=coords,
            xytext=(dx, dy),
            textcoords="offset points",
            ha=ha,
            va=va,
            fontsize=size,
            color=color,
            zorder=8,
            path_effects=halo(),
        )
        box = note.get_window_extent(renderer)
        cost = rank * 4 + 12 * (box.width * box.height - _overlap(box, frame))
        cost += sum(6 * _overlap(box, t) for t in taken) + sum(3 * _overlap(box, d) for d in discs)
        cost += sum(2 * _overlap(box, line) for line in lines)
        if best is None or cost < best[0]:
            if best:
                best[1].remove()
            best = cost, note, box
        else:
            note.remove()
    assert best is not None
    taken.append(best[2])


def _overlap(a: Bbox, b: Bbox) -> float:
    wide = min(a.x1, b.x1) - max(a.x0, b.x0)
    high = min(a.y1, b.y1) - max(a.y0, b.y0)
    return wide * high if wide > 0 and high > 0 else 0.0
