"""Curves over length: medians with bands, failures at the edge, slope guides, and their axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from .ends import End, last_point
from .looks import BEHIND
from .rows import FAILURES, Cell
from .style import Series
from .ticks import log_ticks

Value = Callable[[Cell], float | None]
TICK = 22  # points that a length needs under an axis
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
    """Logarithmic to base 2, from the shortest to the longest."""
    axes.set_xscale("log", base=2)
    length_ticks(axes, lengths)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: length_text(n)))
    axes.set_xlim(min(lengths) / 1.18, max(lengths) * 1.18)
    if label:
        axes.set_xlabel("sequence length (tokens, 1k = 1024)")


def length_ticks(axes: Axes, lengths: list[int], share: float = 1.0) -> None:
    """At measured lengths, fewer where they would crowd in that share of the panel."""
    shown = sorted(set(lengths))
    wide = share * axes.get_window_extent().width / axes.figure.dpi * 72
    while len(shown) > 2 and len(shown) * TICK > wide:
        shown = shown[::-1][::2][::-1]
    axes.xaxis.set_major_locator(FixedLocator(shown))


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


def ratio_text(value: float, _: object = None) -> str:
    """`×0.5`: of a time, as a multiple of another."""
    return f"×{value:,.0f}" if value >= 100 else f"×{value:.3g}"


def value_text(kind: str, value: float) -> str:
    return {"bytes": bytes_text, "ratio": ratio_text}.get(kind, seconds_text)(value)


def value_axis(axes: Axes, kind: str) -> None:
    """A logarithmic value axis in seconds, in bytes (to base 2) or of ratios."""
    if kind != "bytes":
        axes.set_yscale("log")
        log_ticks(axes, axes.yaxis, lambda v: value_text(kind, v))
        return
    axes.set_yscale("log", base=2)
    low, high = np.log2(axes.get_ylim())
    step = max(1, int(np.ceil((high - low) / 8)))
    first = int(np.ceil(low / step) * step)
    ticks = [2.0**p for p in range(first, int(np.floor(high)) + 1, step)]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FuncFormatter(bytes_text))
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


def draw_behind(axes: Axes, series: list[Series], value: Value) -> None:
    """Curves of other panels, for comparison: grey, without names."""
    lines = []
    for s in series:
        points = by_length(s)
        heights = [np.median([value(c) or np.nan for c in cells]) for cells in points.values()]
        lines.append(list(zip(points, heights)))
    grey_lines(axes, lines)


def grey_lines(axes: Axes, lines: Iterable[Iterable[tuple[float, float]]]) -> None:
    """All as one line with gaps, which is drawn much sooner than many."""
    gap = (np.nan, np.nan)
    points = [p for line in lines for p in (*line, gap)]
    if points:
        axes.plot(*zip(*points), color=BEHIND, linewidth=0.8, zorder=1.2)


def failed_at(series: Series) -> list[tuple[int, str]]:
    """Lengths and statuses without a number."""
    return sorted({(c.length, c.status) for c in series.cells if c.status in FAILURES and c.length})


def draw_failures(axes: Axes, series: list[Series]) -> None:
    """A cross at the upper edge for every cell that ended without a number, a row a variant."""
    row = 0
    for s in series:
        failed = failed_at(s)
        if not failed:
            continue
        axes.plot(
            [n for n, _ in failed],
            [failure_height(row)] * len(failed),
            transform=axes.get_xaxis_transform(),
            marker="X",
            markersize=6.5,
            linestyle="none",
            color=s.look.color,
            markeredgecolor="white",
            markeredgewidth=0.5,
            clip_on=False,
            zorder=6,
        )
        row += 1


def failure_height(row: int) -> float:
    """Of the crosses of the row-th variant that has any, as a share of the panel."""
    return 0.955 - 0.07 * row


def end_of(series: Series, value: Value) -> End:
    """The name at the end of a curve, with what became of the cells that have no number."""
    points = by_length(series)
    heights = [float(np.median([value(c) or np.nan for c in own])) for own in points.values()]
    statuses = dict.fromkeys(status for _, status in failed_at(series))
    told = f" ({', '.join(statuses)})" if statuses else ""
    return End(last_point(list(points), heights), series.label + told, series.look)
