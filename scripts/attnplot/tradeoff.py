"""Accuracy against speed, memory as area, after Figure 3 of Long Range Arena (arXiv:2011.04006)."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from .accuracy import CHANCE, SHORTCUT
from .caption import caption
from .curves import bytes_text
from .metric import error_ticks, is_error
from .page import Page, Picture
from .place import Label, place_labels
from .rows import Rows
from .style import GREY, Styles, halo
from .trades import Dot, Trade, trade_panels
from .tuned import chosen_on_validation

LARGEST = 17.0  # points, the radius of the greatest memory


def tradeoff(rows: Rows, styles: Styles) -> list[Picture]:
    trades = trade_panels(rows, styles)
    if not trades:
        return []
    cells = chosen_on_validation(rows.of("accuracy"))
    columns = min(2, len(trades))
    grid = math.ceil(len(trades) / columns)
    vacant = len(trades) < grid * columns  # then the circles' legend stands in the free place
    words = caption(rows, cells, trade_note(trades))
    page = Page(
        "Accuracy, speed and memory",
        "up and to the right is better; a smaller circle needs less memory",
        words,
        [],
        [2.45] * grid + [0.01 if vacant else 0.5],
        columns,
        left=0.62,
        between=0.5 if len({t.metric for t in trades}) == 1 else 0.7,
        below=0.05,
        gaps=[0.32] + [0.86] * (grid - 1) + [0.6 if vacant else 0.72],
    )
    largest = max([d.peak for t in trades for d in t.dots if d.peak], default=None)
    for index, trade in enumerate(trades):
        axes = page.panel(index // columns, index % columns)
        axes.set_title(trade.title)
        draw_trade(axes, trade, largest)
        before = trades[index - 1].metric if index % columns else None
        if trade.metric != before:
            axes.set_ylabel(trade.label)
    if largest:
        area_legend(
            page.panel(grid - 1, 1) if vacant else page.panel(grid, 0, span=columns), largest
        )
    table = [_line(t, d) for t in trades for d in t.dots]
    return [Picture("tradeoff", page.figure, pd.DataFrame(table), words)]


def radius(peak: float | None, largest: float | None, scale: float = 1.0) -> float:
    return LARGEST * scale * math.sqrt(peak / largest) if peak and largest else 3.0


def draw_trade(
    axes: Axes, trade: Trade, largest: float | None, *, scale: float = 1.0, size: float = 8
) -> None:
    placed = [d for d in trade.dots if d.score and d.speed]
    axes.set_xscale("log")
    speeds = [d.speed for d in trade.dots if d.speed] or [1.0, 10.0]
    wide = math.log(max(speeds) / min(speeds)) or 1.0
    axes.set_xlim(min(speeds) * math.exp(-0.3 * wide), max(speeds) * math.exp(0.34 * wide))
    subs = (1, 2, 3, 5, 7) if 1.64 * wide < math.log(8) else (1, 2, 5)
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=7))
    axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    axes.xaxis.set_minor_locator(NullLocator())
    (_error_axis if is_error(trade.metric) else _accuracy_axis)(axes, trade)
    low, high = sorted(axes.get_ylim())
    levels = [("chance", trade.chance, CHANCE), ("best shortcut", trade.shortcut, SHORTCUT)]
    levels = [level for level in levels if level[1] is not None and low < level[1] < high]
    for _, value, look in levels:
        axes.axhline(value, **look, zorder=1)
    for dot in placed:
        _draw_dot(axes, dot, radius(dot.peak, largest, scale))
    labels = [
        Label(
            d.speed,
            d.score.mean,
            max(radius(d.peak, largest, scale), 4.0),
            d.series.label,
            d.series.look.ink,
        )
        for d in placed
    ]
    bars = [
        (d.speed, d.score.mean + d.score.half * t, 1.5)
        for d in placed
        if d.score.half
        for t in (-1, -0.8, -0.6, 0.6, 0.8, 1)
    ]
    points = [(label.x, label.y, label.radius) for label in labels] + bars
    named = [(value, name) for name, value, _ in levels]
    place_labels(axes, labels, named, size=size, points=points)
    _draw_incomplete(axes, [d for d in trade.dots if d not in placed], size)
    axes.set_xlabel(f"tokens per second\n({trade.speed.text()})", linespacing=1.3)


def _accuracy_axis(axes: Axes, trade: Trade) -> None:
    """From the lowest to the highest dot and the best shortcut, at ticks; never below 0."""
    values = [d.score.mean for d in trade.dots if d.score] or [0.0, 1.0]
    values += [trade.shortcut] if trade.shortcut is not None else []
    low, high = min(values), max(values)
    span = max(high - low, 0.1)
    step = next((s for s in (0.02, 0.05, 0.1, 0.2) if 1.4 * span / s <= 5.5), 0.2)
    first = max(0, math.floor((low - 0.2 * span) / step + 1e-9))
    last = math.ceil((high + 0.2 * span) / step - 1e-9)
    if high <= 1:  # no tick promises an accuracy above 1
        last = min(last, math.floor(1 / step + 1e-9))
    axes.yaxis.set_major_locator(FixedLocator([k * step for k in range(first, last + 1)]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.{1 if step >= 0.1 else 2}f}"))
    axes.set_ylim(first * step, max(last * step, high + 0.15 * span))


def _error_axis(axes: Axes, trade: Trade) -> None:
    """Logarithmic and on its head: the least error is at the top."""
    values = [d.score.mean for d in trade.dots if d.score]
    values += [trade.shortcut] if trade.shortcut is not None else []
    axes.set_yscale("log")
    low, high = error_ticks(axes.yaxis, values)
    axes.set_ylim(high, low)


def _draw_dot(axes: Axes, dot: Dot, r: float) -> None:
    look, at = dot.series.look, ([dot.speed], [dot.score.mean])
    area = {"s": (2 * r) ** 2, "clip_on": False}
    axes.scatter(*at, **area, color=look.color, alpha=0.28, linewidth=0, zorder=2)
    axes.scatter(*at, **area, facecolor="none", edgecolor=look.color, linewidth=1.1, zorder=3)
    if dot.score.half:
        axes.errorbar(*at, yerr=[dot.score.half], fmt="none", color=look.color, elinewidth=1)
    axes.plot(*at, **{**look.line(), "linestyle": "none", "zorder": 4})


def _draw_incomplete(axes: Axes, dots: list[Dot], size: float) -> None:
    """A cross on the axis of what is missing: below for accuracy, at the left for speed."""
    unplaced = 0
    for dot in dots:
        look, right = dot.series.look, False
        if dot.speed:
            at, transform = (dot.speed, 0.0), axes.get_xaxis_transform()
            right = dot.speed > math.sqrt(axes.get_xlim()[0] * axes.get_xlim()[1])
        elif dot.score:
            at, transform = (0.0, dot.score.mean), axes.get_yaxis_transform()
        else:
            at, transform = (0.0, 0.06 + 0.09 * unplaced), axes.transAxes
            unplaced += 1
        axes.plot(
            *([v] for v in at),
            transform=transform,
            marker="X",
            markersize=6.5,
            color=look.color,
            markeredgecolor="white",
            markeredgewidth=0.5,
            clip_on=False,
            zorder=6,
        )
        axes.annotate(
            f"{dot.series.label}: {dot.status}",
            at,
            xycoords=transform,
            textcoords="offset points",
            xytext=(-4 if right else 7, 8 if dot.speed else 0),
            ha="right" if right else "left",
            va="center",
            fontsize=size,
            color=look.ink,
            zorder=6,
            path_effects=halo(),
        )


def area_legend(axes: Axes, largest: float, *, scale: float = 1.0, size: float = 8) -> None:
    """Circles of round sizes in a row, as many as fit."""
    axes.set_axis_off()
    room = axes.bbox.width / axes.figure.dpi * 72
    axes.set_xlim(0, room)
    axes.set_ylim(-1, 1)
    top = 2.0 ** math.floor(math.log2(largest))
    axes.annotate("circle area:\npeak memory", (0, 0), va="center", fontsize=size, color=GREY)
    x = 8.5 * size
    for peak in (top / 16, top / 4, top) if room > 260 else (top / 8, top):
        r = radius(peak, largest, scale)
        axes.scatter(
            [x + r],
            [0],
            s=(2 * r) ** 2,
            facecolor="#dddddd",
            edgecolor=GREY,
            linewidth=0.9,
            clip_on=False,
        )
        axes.annotate(
            bytes_text(peak),
            (x + 2 * r, 0),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=size,
            color=GREY,
        )
        x += 2 * r + 6.5 * size


def trade_note(trades: list[Trade]) -> str:
    at = " / ".join(dict.fromkeys(t.memory.text() for t in trades if t.memory))
    memory = f"Memory at: {at}." if at else "No memory rows: circles are points."
    return (
        "Accuracy at the task's own length, bars its 95 % interval; speed the median at the length "
        f"under the axis. {memory}{other_params(trades)}"
    )


def other_params(trades: list[Trade]) -> str:
    """Names the variants whose accuracy and cost were measured with unlike parameters."""
    told = dict.fromkeys(d.params for t in trades for d in t.dots if d.params)
    return f" Parameters differ: {'; '.join(told)}." if told else ""


def _thousands(value: float, _: object = None) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size * 0.9995:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _line(trade: Trade, dot: Dot) -> dict[str, Any]:
    return {
        "panel": trade.title,
        "series": dot.series.label,
        "variant": dot.series.variant,
        "status": dot.status,
        "metric": trade.metric,
        "accuracy": dot.score.mean if dot.score else None,
        "tokens_per_s": dot.speed,
        "peak_bytes": dot.peak,
        "speed_at": trade.speed.text(),
        "memory_at": trade.memory.text() if trade.memory else None,
    }
