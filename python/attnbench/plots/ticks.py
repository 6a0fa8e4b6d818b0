"""Round ticks of logarithmic axes, as many as their labels have room for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from .ends import text_width
from .units import BYTES

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
