"""Marks and words that several pictures draw alike: levels, crosses, intervals, texts, names of
lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .looks import Look

CHANCE = {"color": "#8a8a8a", "linestyle": (0, (1, 1.4)), "linewidth": 1.2}
SHORTCUT = {"color": "#444444", "linestyle": (0, (5, 2)), "linewidth": 1.1}
LEVELS = {"chance": CHANCE, "best shortcut": SHORTCUT}
Entry = tuple[Line2D, str]  # of a legend


def entry(look: dict[str, Any], text: str) -> Entry:
    return Line2D([], [], **look), text


def level_entry(level: str) -> Entry:
    return entry(LEVELS[level], level)


def cross(axes: Axes, x: Sequence[float], y: Sequence[float], look: Look, **style: Any) -> None:
    """Draws a cross for each cell that ended without a number."""
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.5}
    whole = {"marker": "X", "markersize": 6.5, "color": look.color, **edge, "zorder": 6}
    axes.plot(x, y, **{**whole, "clip_on": False, **style})


def span(axes: Axes, ends: Sequence[float], y: float, look: Look, **style: Any) -> None:
    """Draws an interval of a list as a broad pale bar at height `y`."""
    style = {"color": look.color, "solid_capstyle": "butt", **style}
    axes.plot(ends, [y, y], **style)


def bar_line(
    axes: Axes, look: Look, x: Sequence[float], y: Sequence[float], half: Sequence[float]
) -> None:
    """Draws a line through points, each with the bar of its interval where there is one."""
    axes.plot(x, y, **look.line(), clip_on=False, zorder=3)
    if any(half):
        axes.errorbar(x, y, yerr=half, color=look.color, elinewidth=1, capsize=2.4, fmt="none")


def beside(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **style: Any
) -> None:
    """Writes a text that begins `offset` points from a place."""
    style = {"va": "center", "fontsize": 8, **style}
    axes.annotate(text, at, xytext=offset, textcoords="offset points", **style)


def name_lines(axes: Axes, names: Sequence[str], **style: Any) -> None:
    """Names the lines of a list at the left, without ticks and without an edge."""
    axes.set_yticks(range(len(names)), names, **style)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
