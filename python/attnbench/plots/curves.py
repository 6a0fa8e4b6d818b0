"""Curves over length: medians with bands, failures at the edge, and the axis of lengths."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from .ends import End, last_point
from .looks import BEHIND
from .marks import cross
from .quantity import Quantity
from .rows import FAILURES
from .style import Series
from .units import length_text

TICK = 2.75  # times its size: what a length needs under an axis


def length_axis(axes: Axes, lengths: list[int]) -> None:
    """Sets a logarithmic axis to base 2, from the shortest to the longest length."""
    axes.set_xscale("log", base=2)
    length_ticks(axes, lengths)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: length_text(n)))
    axes.set_xlim(min(lengths) / 1.18, max(lengths) * 1.18)
    axes.set_xlabel("sequence length (tokens, 1k = 1024)")


def length_ticks(axes: Axes, lengths: list[int], share: float = 1.0) -> None:
    """Sets ticks at measured lengths. Some are left out where all would crowd in that share of the
    panel."""
    shown = sorted(set(lengths))
    wide = share * axes.get_window_extent().width / axes.figure.dpi * 72
    room = TICK * rcParams["xtick.labelsize"]
    while len(shown) > 2 and len(shown) * room > wide:
        shown = shown[::-1][::2][::-1]
    axes.xaxis.set_major_locator(FixedLocator(shown))


def draw_curve(axes: Axes, series: Series, quantity: Quantity) -> None:
    """Draws the median over seeds, and a band that holds the intervals of all seeds."""
    medians = quantity.medians(series)
    if not medians:
        return
    axes.plot(list(medians), list(medians.values()), zorder=3, **series.look.line())
    if quantity.ends:
        low, high = zip(*quantity.intervals(series).values())
        band = {"color": series.look.color, "alpha": 0.18, "linewidth": 0, "zorder": 2}
        axes.fill_between(list(medians), low, high, **band)


def draw_behind(axes: Axes, series: list[Series], quantity: Quantity) -> None:
    """Draws the curves of other panels in grey, without names."""
    grey_lines(axes, (quantity.medians(s).items() for s in series))


def grey_lines(axes: Axes, lines: Iterable[Iterable[tuple[float, float]]]) -> None:
    """Draws all lines as one line with gaps, which takes much less time than many lines."""
    gap = (np.nan, np.nan)
    points = [p for line in lines for p in (*line, gap)]
    if points:
        axes.plot(*zip(*points), color=BEHIND, linewidth=0.8, zorder=1.2)


def failed_at(series: Series) -> list[tuple[int, str]]:
    """Returns the lengths and statuses of cells that failed."""
    return sorted({(c.length, c.status) for c in series.cells if c.status in FAILURES and c.length})


def draw_failures(axes: Axes, series: list[Series]) -> None:
    """Draws a cross at the upper edge for every cell that failed. Each variant has its own row of
    crosses."""
    failing = [(s.look, failed) for s in series if (failed := failed_at(s))]
    for row, (look, failed) in enumerate(failing):
        heights = [failure_height(row)] * len(failed)
        at_edge = {"transform": axes.get_xaxis_transform(), "linestyle": "none"}
        cross(axes, [n for n, _ in failed], heights, look, **at_edge)


def failure_height(row: int) -> float:
    """Returns the height of the crosses of the row-th failing variant, as a share of the panel."""
    return 0.955 - 0.07 * row


def end_of(series: Series, quantity: Quantity) -> End:
    """Returns the end of a curve. Its name tells the statuses of cells that failed."""
    medians = quantity.medians(series)
    text = with_statuses(series.label, failed_at(series))
    return End(last_point(list(medians), list(medians.values())), text, series.look)


def with_statuses(label: str, failed: Iterable[tuple[float, str]]) -> str:
    """Returns `full (oom, timeout)`."""
    statuses = dict.fromkeys(status for _, status in failed)
    return f"{label} ({', '.join(statuses)})" if statuses else label
