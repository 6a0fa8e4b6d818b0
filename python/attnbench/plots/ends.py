"""Direct labels: each line is named at its right end, in a column inside the panel."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .looks import Look, halo

SIZE, LEAST = 8.0, 6.0  # points of the names, fewer where they would not fit under each other
WRAP = 20  # characters of a name's line
GAP = 9.0  # points between the last point and the names, crossed by a thin line
LEADER = "leader"  # the id of those lines


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
                linewidth=0.6,
                alpha=0.7,
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
