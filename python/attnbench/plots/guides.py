"""A small fan of slopes beside the curves: growth with n and with n squared on these axes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .looks import GREY, halo
from .marks import beside

RISE, WIDEST = 0.09, 0.26  # of the panel: the slope of n, and the fan's width
LABEL = (0.06, 0.05)  # room for a label at the end of a slope


def slope_guides(axes: Axes, *, top: float = 0.94, right: float = 1.0) -> bool:
    """Draws the fan left of `right`, in the corner farthest from the curves. Returns False where no
    corner is clear; then no fan is drawn."""
    (x0, x1), (y0, y1) = np.log(axes.get_xlim()), np.log(axes.get_ylim())
    aspect = (x1 - x0) / (y1 - y0)  # what slope 1 looks like
    wide = min(WIDEST, RISE / aspect)
    high = 2 * wide * aspect
    if high > 0.5:
        wide, high = 0.5 * wide / high, 0.5
    left, right = 0.04, right - 0.04 - wide - LABEL[0]
    upper, lower = top - high, 0.05
    middle = (upper + lower) / 2
    corners = [(x, y) for y in (upper, lower, middle) for x in (left, right, (left + right) / 2)]
    curves = _in_panel(axes, axes.lines)
    room = {c: _distance(curves, c, (wide + LABEL[0], high + LABEL[1])) for c in corners}
    place = next((c for c in corners if room[c] > 0.05), max(corners, key=lambda c: room[c]))
    if right < left or not room[place] > 0:
        return False
    for slope, text in ((1, "n"), (2, "n\u00b2")):
        end = (place[0] + wide, place[1] + slope * wide * aspect)
        axes.plot(
            *zip(place, end),
            transform=axes.transAxes,
            color="#a8a8a8",
            linewidth=0.9,
            zorder=1,
        )
        slanted = {"color": GREY, "style": "italic", "path_effects": halo()}
        beside(axes, text, end, (2.5, 0), xycoords="axes fraction", **slanted)
    return True


def _in_panel(axes: Axes, lines: Iterable[Line2D]) -> np.ndarray:
    """Points along the curves as fractions of the panel [points, 2]."""
    to_panel = axes.transData + axes.transAxes.inverted()
    found = [np.empty((0, 2))]
    for line in lines:
        if line.get_transform() != axes.transData or len(line.get_xdata()) == 0:
            continue
        points = to_panel.transform(np.column_stack([line.get_xdata(), line.get_ydata()]))
        along, steps = np.arange(len(points)), np.linspace(0, len(points) - 1, 40 * len(points))
        found.append(np.column_stack([np.interp(steps, along, axis) for axis in points.T]))
    every = np.concatenate(found)
    return every[np.isfinite(every).all(axis=1)]


def _distance(points: np.ndarray, corner: tuple[float, float], size: tuple[float, float]) -> float:
    """From a box to the nearest point, as a fraction of the panel; 0 where one lies inside."""
    low = np.array(corner)
    outside = np.maximum(np.maximum(low - points, points - (low + np.array(size))), 0)
    return float(np.min(np.hypot(*outside.T), initial=1.0))
