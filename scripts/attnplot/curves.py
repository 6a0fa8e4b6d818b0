"""Curves over length: medians with bands, failures at the edge, slope guides, and their axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from .rows import FAILURES, Cell
from .style import Series

Value = Callable[[Cell], float | None]
SHAPE = ("batch", "heads", "head_dim", "threads")


def contract(cell: Cell) -> str:
    return "causal" if cell.axes.get("causal") else "not causal"


def shape_of(cell: Cell) -> tuple[Any, ...]:
    return tuple(cell.axes.get(name) for name in SHAPE)


def shape_text(cell: Cell) -> str:
    words = {
        "batch": "batch {}",
        "heads": "{} heads",
        "head_dim": "head width {}",
        "threads": "{} threads",
    }
    said = [words[n].format(cell.axes[n]) for n in SHAPE if cell.axes.get(n) is not None]
    return ", ".join(
        s.replace("1 heads", "1 head") if s == "1 heads" else "1 thread" if s == "1 threads" else s
        for s in said
    )


def length_text(n: float) -> str:
    n = int(round(n))
    return f"{n // 1024}k" if n >= 1024 and n % 1024 == 0 else str(n)


def length_axis(axes: Axes, lengths: list[int], *, label: bool = True) -> None:
    """Logarithmic to base 2, with ticks at measured lengths, fewer where they would crowd."""
    axes.set_xscale("log", base=2)
    shown = sorted(set(lengths))
    while len(shown) > 8:
        shown = shown[::-1][::2][::-1]
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: length_text(n)))
    axes.set_xlim(min(lengths) / 1.18, max(lengths) * 1.18)
    if label:
        axes.set_xlabel("sequence length (tokens, 1k = 1024)")


def seconds_text(value: float, _: object = None) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("\u00b5s", 1e-6), ("ns", 1e-9)):
        if value >= size * 0.9995:
            return f"{value / size:.3g} {unit}"
    return f"{value:.2g} s"


def bytes_text(value: float, _: object = None) -> str:
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if value >= 2**power * 0.9995:
            return f"{value / 2**power:.3g} {unit}"
    return f"{value:.3g} B"


def log_axis(axes: Axes, kind: str) -> None:
    """A logarithmic value axis in seconds or bytes."""
    if kind == "bytes":
        axes.set_yscale("log", base=2)
        low, high = np.log2(axes.get_ylim())
        step = max(1, int(np.ceil((high - low) / 8)))
        first = int(np.ceil(low / step) * step)
        axes.yaxis.set_major_locator(
            FixedLocator([2.0**p for p in range(first, int(high) + 1, step)])
        )
        axes.yaxis.set_major_formatter(FuncFormatter(bytes_text))
    else:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        subs = (1, 2, 5) if high / low < 100 else (1,)
        axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=8))
        axes.yaxis.set_major_formatter(FuncFormatter(seconds_text))
    axes.yaxis.set_minor_locator(NullLocator())


def by_length(series: Series) -> dict[int, list[Cell]]:
    """The cells with a value, by length; several at one length differ in their seed."""
    out: dict[int, list[Cell]] = {}
    for cell in sorted((c for c in series.cells if c.ok and c.length), key=lambda c: c.length or 0):
        out.setdefault(cell.length or 0, []).append(cell)
    return out


def draw_curve(
    axes: Axes, series: Series, value: Value, band: tuple[Value, Value] | None = None
) -> None:
    """The median over seeds, and a band over all of their intervals."""
    points = by_length(series)
    if not points:
        return
    axes.plot(
        list(points),
        [np.median([value(c) or np.nan for c in cells]) for cells in points.values()],
        zorder=3,
        **series.look.line(),
    )
    if band:
        low, high = (
            [pick([end(c) or value(c) or np.nan for c in cells]) for cells in points.values()]
            for end, pick in zip(band, (np.min, np.max))
        )
        axes.fill_between(
            list(points), low, high, color=series.look.color, alpha=0.18, linewidth=0, zorder=2
        )


def draw_failures(axes: Axes, series: list[Series], *, top: float = 0.955) -> None:
    """A cross at the upper edge for every cell that ended without a number."""
    place = axes.get_xaxis_transform()
    row = 0
    for s in series:
        failed = sorted(
            {(c.length, c.status) for c in s.cells if c.status in FAILURES and c.length}
        )
        if not failed:
            continue
        y, row = top - 0.085 * row, row + 1
        axes.plot(
            [n for n, _ in failed],
            [y] * len(failed),
            transform=place,
            marker="X",
            markersize=6.5,
            linestyle="none",
            color=s.look.color,
            markeredgecolor="white",
            markeredgewidth=0.5,
            clip_on=False,
            zorder=6,
        )
        words = f"{s.label}: {', '.join(dict.fromkeys(status for _, status in failed))}"
        low, high = axes.get_xlim()
        left = np.log(failed[0][0] / low) > np.log(high / low) / 2
        axes.annotate(
            words,
            ((failed[0] if left else failed[-1])[0], y),
            xycoords=place,
            va="center",
            xytext=(-7 if left else 7, 0),
            textcoords="offset points",
            fontsize=8,
            ha="right" if left else "left",
            color=s.look.ink,
        )
