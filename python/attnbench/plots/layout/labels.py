"""Puts labels beside points so that they cover neither each other nor the points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .axes import LEADER, halo, text_width

DISTANCES = (0, 9, 18, 30, 44, 60)  # points from a point's disc to its label
FAR = 6.0  # points beyond which a thin line leads to the label
ANGLES = (0, 180, 90, 270, 45, 315, 135, 225, 20, 160, 340, 200, 70, 110, 250, 290)  # degrees


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
    labels: Sequence[Label],
    levels: Sequence[float] = (),
    *,
    size: float = 8,
    points: list[tuple[float, float, float]] | None = None,
) -> None:
    """Every label takes the place about its point that overlaps least: nothing that is taken, then
    no point, then no line across the panel at one of `levels`. `points` (x, y, radius) are all that
    labels should not cover, by default those that have one. All limits are set before."""
    pixel = axes.figure.dpi / 72
    frame = axes.get_window_extent()
    given = points or [(p.x, p.y, p.radius) for p in labels]
    discs = _boxes([_disc(axes, x, y, radius * pixel) for x, y, radius in given])
    heights = [axes.transData.transform((labels[0].x if labels else 1, y))[1] for y in levels]
    lines = _boxes([(frame.x0, h - 3, frame.x1, h + 3) for h in heights])
    taken: list[np.ndarray] = []
    for label in labels:
        wide, high = (side * pixel for side in _size(label.text, size))
        distances, spots = _spots(axes, label, wide, high)
        cost = 2.0 * np.arange(len(spots))
        cost += 60 * (wide * high - _overlap(spots, _boxes([frame.extents])))
        cost += 60 * _overlap(spots, _boxes(taken)) + 8 * _overlap(spots, discs)
        cost += 2 * _overlap(spots, lines)
        best = int(np.argmin(cost))
        taken.append(spots[best])
        _write(axes, label, spots[best], distances[best], size)


def _spots(axes: Axes, label: Label, wide: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Distances in points [spots] with the text's boxes in pixels [spots, 4], the best first."""
    pixel = axes.figure.dpi / 72
    at = axes.transData.transform((label.x, label.y))
    distances = np.repeat(DISTANCES, len(ANGLES))
    angles = np.tile(np.radians(ANGLES), len(DISTANCES))
    towards = np.column_stack([np.cos(angles), np.sin(angles)])
    reach = (label.radius + 2.5 + distances[:, None]) * pixel + np.array([wide, high]) / 2
    corner = at + towards * reach - np.array([wide, high]) / 2
    return distances, np.hstack([corner, corner + np.array([wide, high])])


def _write(
    axes: Axes,
    label: Label,
    box: np.ndarray,
    distance: float,
    size: float,
) -> None:
    to_panel = axes.transAxes.inverted()
    axes.text(
        *to_panel.transform(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)),
        label.text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        linespacing=1.05,
        fontsize=size,
        color=label.color,
        zorder=8,
        path_effects=halo(),
    )
    if distance < FAR:
        return
    at = axes.transData.transform((label.x, label.y))
    end = np.clip(at, box[:2], box[2:])
    start = at + (end - at) * min(1.0, label.radius * axes.figure.dpi / 72 / np.hypot(*(end - at)))
    corners = to_panel.transform([start, end])
    axes.plot(
        *corners.T,
        transform=axes.transAxes,
        color=label.color,
        linewidth=0.6,
        alpha=0.7,
        zorder=7,
        gid=LEADER,
    )


def _size(text: str, points: float) -> tuple[float, float]:
    lines = text.split("\n")
    return max(text_width(line, points) for line in lines) + 1, 1.22 * points * len(lines)


def _disc(axes: Axes, x: float, y: float, radius: float) -> tuple[float, float, float, float]:
    cx, cy = axes.transData.transform((x, y))
    return cx - radius, cy - radius, cx + radius, cy + radius


def _boxes(extents: Sequence[Any]) -> np.ndarray:
    return np.array([tuple(e) for e in extents], dtype=float).reshape(-1, 4)


def _overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The area that each box shares with all of the others, in square pixels."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.clip(high - low, 0, None).prod(axis=2).sum(axis=1)
