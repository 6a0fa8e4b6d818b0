"""What stands in axes: labels at the right ends of lines, round ticks of logarithmic axes, and
marks, levels and texts that several pictures draw alike."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from ..rows.style import Look
from ..rows.terms import is_error
from ..rows.units import BYTES

SIZE, LEAST = 8.0, 6.0  # points of the names, fewer where they would not fit under each other
WRAP = 20  # characters of a name's line
GAP = 9.0  # points between the last point and the names, crossed by a dotted line
LEADER = "leader"  # the id of those lines
LEADING = (0, (0.8, 2.2))  # their dots, finer than those of any line of data
NARROW = 8  # of the ends of an axis of errors


def halo() -> list[AbstractPathEffect]:
    """A white edge that keeps text readable over lines."""
    return [withStroke(linewidth=2.4, foreground="white")]


@dataclass(frozen=True)
class End:
    """A line's last point, None where it has none, and its name."""

    at: tuple[float, float] | None
    text: str
    look: Look


def make_room(axes: Axes, ends: Sequence[End], last: float) -> float:
    """Moves the right limit so that the names fit beside `last`; the share of the panel left of
    them."""
    if not ends:
        return 1.0
    pixel = axes.figure.dpi / 72
    wide = max(_size(axes, e.text, SIZE)[0] for e in ends) + (GAP + 2) * pixel
    share = 1 - min(wide / axes.get_window_extent().width, 0.6)
    to_axis = axes.xaxis.get_transform()
    low, high = to_axis.transform([axes.get_xlim()[0], last])
    right = low + 1.01 * (high - low) / share
    axes.set_xlim(right=float(to_axis.inverted().transform([right])[0]))
    return share


def name_ends(axes: Axes, ends: Sequence[End], share: float) -> None:
    """Writes the names, in the order of the last points and never over each other. All limits are
    set before."""
    frame, pixel = axes.get_window_extent(), axes.figure.dpi / 72
    size = SIZE
    while True:
        heights = [_size(axes, e.text, size)[1] + 1.5 * pixel for e in ends]
        if sum(heights) <= frame.height or size <= LEAST:
            break
        size -= 0.5
    wanted = [
        axes.transData.transform(e.at)[1] - frame.y0 if e.at else frame.height for e in ends
    ]
    order = sorted(range(len(ends)), key=lambda i: wanted[i])
    places = spread([wanted[i] for i in order], [heights[i] for i in order], frame.height)
    x = frame.width * share + GAP * pixel
    to_data = axes.transData.inverted()
    for index, y in zip(order, places):
        end = ends[index]
        axes.text(
            x / frame.width,
            y / frame.height,
            wrapped(end.text),
            transform=axes.transAxes,
            va="center",
            ha="left",
            fontsize=size,
            linespacing=1.0,
            color=end.look.ink,
            path_effects=halo(),
            zorder=8,
        )
        if end.at:
            target = to_data.transform((frame.x0 + x - 2 * pixel, frame.y0 + y))
            axes.plot(
                *zip(end.at, target),
                color=end.look.color,
                linewidth=0.8,
                alpha=0.6,
                linestyle=LEADING,
                zorder=2.5,
                gid=LEADER,
            )


def spread(wanted: Sequence[float], heights: Sequence[float], room: float) -> list[float]:
    """Middles of boxes stacked upwards in the order given, as near to `wanted` as they come, from 0
    to `room`: runs of boxes that touch move together."""
    runs: list[list[float]] = []  # middle of the run, its height, number of boxes
    for middle, height in zip(wanted, heights):
        runs.append([_inside(middle, height, room), height, 1])
        while len(runs) > 1 and runs[-2][0] + runs[-2][1] / 2 > runs[-1][0] - runs[-1][1] / 2:
            upper, lower = runs.pop(), runs.pop()
            count = lower[2] + upper[2]
            both = (lower[0] * lower[2] + upper[0] * upper[2]) / count
            high = lower[1] + upper[1]
            runs.append([_inside(both, high, room), high, count])
    out: list[float] = []
    for middle, height, count in runs:
        at = middle - height / 2
        for own in heights[len(out) : len(out) + int(count)]:
            out.append(at + own / 2)
            at += own
    return out


def _inside(middle: float, height: float, room: float) -> float:
    return min(max(middle, height / 2), max(room - height / 2, height / 2))


def wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WRAP, break_long_words=False)) or text


def _size(axes: Axes, text: str, points: float) -> tuple[float, float]:
    """Width and height in pixels, of the text as it is wrapped."""
    lines = wrapped(text).split("\n")
    wide = max(text_width(line, points) for line in lines)
    pixel = axes.figure.dpi / 72
    return wide * pixel, len(lines) * math.ceil(1.17 * points * pixel)


def text_width(text: str, points: float) -> float:
    """In points, in the font of rcParams; measured once for each text."""
    from matplotlib import rcParams
    from matplotlib.font_manager import findfont, get_font

    family = tuple(rcParams["font.family"])
    key: Any = (text, points, family)
    if key not in _WIDTHS:
        font = get_font(findfont(family[0]))
        font.set_size(points, 72)
        font.set_text(text)
        _WIDTHS[key] = font.get_width_height()[0] / 64  # in 26.6 fixed point
    return _WIDTHS[key]


_WIDTHS: dict[Any, float] = {}


def last_point(x: Sequence[float], y: Sequence[float]) -> tuple[float, float] | None:
    """The last that is a number."""
    known = [(a, b) for a, b in zip(x, y) if np.isfinite(b)]
    return known[-1] if known else None


CHANCE = {"color": "#8a8a8a", "linestyle": (0, (1, 1.4)), "linewidth": 1.2}
SHORTCUT = {"color": "#444444", "linestyle": (0, (5, 2)), "linewidth": 1.1}
LEVELS = {"chance": CHANCE, "best shortcut": SHORTCUT}
Entry = tuple[Line2D, str]  # of a legend


def entry(look: dict[str, Any], text: str) -> Entry:
    return Line2D([], [], **look), text


def level_entry(level: str) -> Entry:
    return entry(LEVELS[level], level)


def level_entries(panels: Iterable[Iterable[str]]) -> list[Entry]:
    """Of the levels that some panel has."""
    known = {level for levels in panels for level in levels}
    return [level_entry(level) for level in LEVELS if level in known]


def cross(axes: Axes, x: Sequence[float], y: Sequence[float], look: Look, **style: Any) -> None:
    """Draws a cross for each cell that ended without a number."""
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.5}
    whole = {"marker": "X", "markersize": 6.5, "color": look.color, **edge, "zorder": 6}
    axes.plot(x, y, **{**whole, "clip_on": False, **style})


def span(axes: Axes, ends: Sequence[float], y: float, look: Look, **style: Any) -> None:
    """Draws an interval of a list as a broad pale bar at height `y`."""
    style = {"color": look.color, "solid_capstyle": "butt", **style}
    axes.plot(ends, [y, y], **style)


def ring(axes: Axes, look: Look, at: tuple[float, float], scale: float = 1.0) -> None:
    """Draws a ring about a line's only point, which a line of another variant would hide."""
    style = {"marker": "o", "markersize": 9.5 * scale, "markeredgewidth": 1.3 * scale, "markerfacecolor": "none"}
    axes.plot([at[0]], [at[1]], color=look.color, linestyle="none", **style, clip_on=False, zorder=4)


def bar_line(
    axes: Axes, look: Look, x: Sequence[float], y: Sequence[float], half: Sequence[float], *, is_hollow: bool = False
) -> None:
    """Draws a line through points, each with the bar of its interval where there is one; hollow
    points have no line."""
    axes.plot(x, y, **(look.hollow() if is_hollow else look.line()), clip_on=False, zorder=3)
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


STEPS: tuple[tuple[float, ...], ...] = (  # within a decade, from many to few
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9),
    (1, 1.5, 2, 3, 4, 5, 7),
    (1, 2, 5),
    (1, 3),
    (1,),
)
MOST = 8  # ticks of an axis
APART = 7.0  # points between labels


def log_ticks(axes: Axes, axis: Axis, text: Callable[[float], str]) -> None:
    """Sets round ticks on the x or y axis, whose limits are set before."""
    low, high = sorted(axis.get_view_interval())
    across = axis is axes.xaxis
    frame = axes.get_window_extent()
    room = (frame.width if across else frame.height) / axes.figure.dpi * 72
    scale = room / math.log(high / low)
    choices = _choices(low, high)
    fitting = (t for t in choices if len(t) <= MOST and _fit(t, scale, text, across))
    ticks = next(fitting, choices[-1])
    fixed_ticks(axis, ticks, text)


def byte_ticks(low: float, high: float, most: int) -> list[float]:
    """Returns powers of two; where fewer than two lie between, round numbers of their unit."""
    step = max(1, math.ceil(math.log2(high / low) / most))
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1, step)
    if len(powers) > 1:
        return [2.0**p for p in powers]
    size = next((s for _, s in BYTES if high >= s), 1.0)
    round_numbers = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low / size, high / size)
    return [float(n) * size for n in round_numbers if low <= n * size <= high]


def fixed_ticks(axis: Axis, ticks: Sequence[float], text: Callable[[float], str]) -> None:
    """Sets ticks at these values and at no others."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: text(v)))


def score_axis(axes: Axes, metric: str, values: Iterable[float]) -> None:
    """The y axis of scores: shares from 0 to 1, errors over the decades that are drawn."""
    if is_error(metric):
        axes.set_yscale("log")
        axes.set_ylim(error_ticks(axes.yaxis, values))
    else:
        axes.set_ylim(0, 1.02)


def error_ticks(axis: Axis, values: Iterable[float], most: int = 7) -> tuple[float, float]:
    """Round ticks for the logarithmic axis of errors, and the limits that show all of `values`."""
    drawn = [v for v in values if v > 0] or [1.0]
    low, high = min(drawn) / 1.6, max(drawn) * 1.6
    few = high / low < NARROW  # such as bits: 1, 2 and 5 times powers of ten would be one tick or two
    wide = LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,), numticks=most)
    axis.set_major_locator(MaxNLocator(most - 2, steps=[1, 2, 5, 10]) if few else wide)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    return low, high


def _choices(low: float, high: float) -> list[list[float]]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    out = []
    for steps in STEPS:
        out.append([s * 10.0**d for d in range(first, last + 1) for s in steps])
    out += [[10.0**d for d in range(first, last + 1) if d % every == 0] for every in (2, 3, 4, 6)]
    inside = [[t for t in ticks if low <= t <= high] for ticks in out]
    return [ticks for ticks in inside if ticks] or [[math.sqrt(low * high)]]


def _fit(
    ticks: list[float], scale: float, text: Callable[[float], str], across: bool
) -> bool:
    """Returns whether neighbours keep apart: by their widths along x, by 1.5 lines along y."""
    size = rcParams["xtick.labelsize" if across else "ytick.labelsize"]
    for a, b in zip(ticks, ticks[1:]):
        half = (text_width(text(a), size) + text_width(text(b), size)) / 2
        if scale * math.log(b / a) < (half + APART if across else 2.2 * size):
            return False
    return True
