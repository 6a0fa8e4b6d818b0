"""Accuracy against speed, memory as the area of a circle, after Figure 3 of Long Range Arena
(arXiv:2011.04006)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

from ..layout.axes import LEVELS, Entry, beside, cross, entry, error_ticks, halo, level_entry, log_ticks, wrapped
from ..layout.caption import caption, marks_key, unique
from ..layout.labels import Label, place_labels
from ..layout.page import Page, Picture
from ..layout.sheets import OTHERS, Sheet, in_rows, scored_panels, sheets
from ..rows.joined import BAND, LOOK, Record
from ..rows.read import Rows
from ..rows.scores import ONE_SEED
from ..rows.settings import chosen_on_validation, is_error, marks_of
from ..rows.style import BEHIND, GREY, Series, Styles
from ..rows.units import bytes_text, thousands_text
from .accuracy import head
from .trades import Trade, largest_peak, trade_panels

FRONT = "best score at each speed or above (Pareto front); grey: its 95 % interval"
LARGEST = 17.0  # points, the radius of the greatest memory
SMALL, SMALL_HEIGHT = 0.62, 1.21  # times the radius, and inches, of a small panel


def radius(peak: float | None, largest: float | None, scale: float = 1.0) -> float:
    return LARGEST * scale * math.sqrt(peak / largest) if peak and largest else 3.0


def level_entries(trades: list[Trade]) -> list[Entry]:
    """Returns the legend of the levels and of the fronts that the panels draw."""
    drawn = [level_entry(level) for level in LEVELS if any(level in t.levels for t in trades)]
    return drawn + ([entry(LOOK, FRONT)] if any(t.front for t in trades) else [])


def draw_trade(
    axes: Axes,
    trade: Trade,
    largest: float | None,
    *,
    named: set[Any] | None = None,
    is_small: bool = False,
    size: float = 8,
) -> None:
    """Draws the panel. `named` holds the keys of the series drawn in full, by default all; the
    others are grey. A small panel leaves the names to the page's legend."""
    scale = SMALL if is_small else 1.0
    dots = [d for d in trade.dots if named is None or d.series.key in named]
    placed = [d for d in dots if d.whole]
    others = [d for d in trade.dots if d not in dots and d.whole]
    axes.set_xscale("log")
    speeds = [d.speed for d in dots if d.speed] or [1.0, 10.0]
    wide = math.log(max(speeds) / min(speeds)) or 1.0
    axes.set_xlim(min(speeds) * math.exp(-0.3 * wide), max(speeds) * math.exp(0.34 * wide))
    values = [d.score.mean for d in dots if d.score]
    (_error_axis if is_error(trade.metric) else _accuracy_axis)(axes, trade, values)
    log_ticks(axes, axes.xaxis, thousands_text)
    low, high = sorted(axes.get_ylim())
    levels = {level: value for level, value in trade.levels.items() if low < value < high}
    for level, value in levels.items():
        axes.axhline(value, **LEVELS[level], zorder=1)
    _draw_front(axes, trade)
    grey = {"marker": "o", "markersize": 3.2, "linestyle": "none", "color": BEHIND}
    axes.plot([d.speed for d in others], [d.score.mean for d in others], **grey, zorder=1.5)
    for dot in placed:
        _draw_dot(axes, dot, radius(dot.peak, largest, scale))
    labels = [_label(d, max(radius(d.peak, largest, scale), 4.0)) for d in placed]
    bars = [
        (d.speed, d.score.mean + d.score.half * t, 1.5)
        for d in placed
        if d.score.half
        for t in (-1, -0.8, -0.6, 0.6, 0.8, 1)
    ]
    points = [(label.x, label.y, label.radius) for label in labels] + bars
    crosses = _draw_incomplete(axes, [d for d in dots if d not in placed])
    points += [(label.x, label.y, label.radius) for label in crosses]
    place_labels(axes, [*crosses, *([] if is_small else labels)], list(levels.values()), size=size, points=points)
    if is_small:
        _mark(axes, placed)
    axes.set_xlabel(trade.short_axis if is_small else trade.axis, linespacing=1.3)


def _draw_front(axes: Axes, trade: Trade) -> None:
    """Draws the best score that is to be had at each speed or above, without moving the axes."""
    if trade.front is None:
        return
    limits = axes.get_xlim(), axes.get_ylim()
    front = trade.front
    inside = np.isfinite(front.low) & np.isfinite(front.high)
    band = {**BAND, "step": "pre", "where": inside, "zorder": 0.6}
    axes.fill_between(front.speeds, front.low, front.high, **band)
    axes.step(front.speeds, np.where(np.isfinite(front.best), front.best, np.nan), **LOOK, zorder=1.1)
    axes.set_xlim(limits[0])
    axes.set_ylim(limits[1])


def _label(dot: Record, r: float) -> Label:
    told = wrapped(dot.series.label + marks_of(dot.cells))
    return Label(dot.speed, dot.score.mean, r, told, dot.series.look.ink)


def _mark(axes: Axes, dots: list[Record]) -> None:
    """Writes the marks of numbers beside their points."""
    for dot in dots:
        text = marks_of(dot.cells)
        beside(axes, text, (dot.speed, dot.score.mean), (4, -5), color=dot.series.look.ink, zorder=5, path_effects=halo())


def _accuracy_axis(axes: Axes, trade: Trade, scores: list[float]) -> None:
    """Sets the same axis in every panel, from 0 to 1, so that panels compare and every level is in it."""
    axes.yaxis.set_major_locator(FixedLocator([0, 0.2, 0.4, 0.6, 0.8, 1]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.1f}"))
    axes.set_ylim(0, max([1.0, *scores]) + 0.09)


def _error_axis(axes: Axes, trade: Trade, scores: list[float]) -> None:
    """Sets a logarithmic axis, turned so that the least error is at the top."""
    values = scores + ([trade.shortcut] if trade.shortcut is not None else [])
    axes.set_yscale("log")
    low, high = error_ticks(axes.yaxis, values)
    axes.set_ylim(high, low)


def _draw_dot(axes: Axes, dot: Record, r: float) -> None:
    look, at = dot.series.look, ([dot.speed], [dot.score.mean])
    if dot.peak:
        area = {"s": (2 * r) ** 2, "clip_on": False}
        axes.scatter(*at, **area, color=look.color, alpha=0.28, linewidth=0, zorder=2)
        axes.scatter(*at, **area, facecolor="none", edgecolor=look.color, linewidth=1.1, zorder=3)
    if dot.score.half:
        axes.errorbar(*at, yerr=[dot.score.half], fmt="none", color=look.color, elinewidth=1)
    style = look.hollow() if dot.is_unfinished else look.line()
    axes.plot(*at, **{**style, "linestyle": "none", "zorder": 4})


def _draw_incomplete(axes: Axes, dots: list[Record]) -> list[Label]:
    """Draws a cross on the axis of the missing value: at the bottom for a score, at the left for a
    speed. Returns the names of the crosses."""
    left, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    to_data = axes.transData.inverted()
    labels, unplaced = [], 0
    for dot in dots:
        x, y = dot.speed or left, dot.score.mean if dot.score else bottom
        if not dot.speed and not dot.score:
            x, y = to_data.transform(axes.transAxes.transform((0.0, 0.06 + 0.09 * unplaced)))
            unplaced += 1
        cross(axes, [x], [y], dot.series.look)
        words = wrapped(f"{dot.series.label}: {dot.status}")
        labels.append(Label(x, y, 4.0, words, dot.series.look.ink))
    return labels


def area_legend(axes: Axes, largest: float, *, scale: float = 1.0, size: float = 8) -> None:
    """Draws circles of round sizes in a row, as many as fit."""
    axes.set_axis_off()
    room = axes.bbox.width / axes.figure.dpi * 72
    axes.set_xlim(0, room)
    axes.set_ylim(-1, 1)
    top = 2.0 ** math.floor(math.log2(largest))
    words = {"fontsize": size, "color": GREY}
    beside(axes, "circle area:\npeak memory", (0, 0), (0, 0), **words)
    x = 8.5 * size
    for peak in (top / 16, top / 4, top) if room > 260 else (top / 8, top):
        r = radius(peak, largest, scale)
        disc = {"facecolor": "#dddddd", "edgecolor": GREY, "linewidth": 0.9, "clip_on": False}
        axes.scatter([x + r], [0], s=(2 * r) ** 2, **disc)
        beside(axes, bytes_text(peak), (x + 2 * r, 0), (4, 0), **words)
        x += 2 * r + 6.5 * size


COLUMNS = 2


def tradeoff(rows: Rows, styles: Styles) -> list[Picture]:
    """Draws one page with a panel for each task. Many variants get a page for each task, which
    shows them in parts."""
    trades = trade_panels(rows, styles)
    if not trades:
        return []
    cells = chosen_on_validation(rows.of("accuracy"))
    held = {s.key: s for t in trades for s in t.series}
    series = [held[s.key] for s in styles.series([c for s in held.values() for c in s.cells])]
    out = []
    columns = COLUMNS if len(trades) <= 4 else 3 if len(trades) <= 9 else 4
    for sheet in sheets(in_rows(trades, columns), series, styles, columns=COLUMNS):
        tasks = {g.cells[0].task for t in sheet.panels for g in t.groups}
        words = caption(rows, [c for c in cells if c.task in tasks], trade_note(sheet.panels))
        table = pd.DataFrame([_line(t, d) for t in sheet.panels for d in t.dots])
        page = _page(sheet, words) if sheet.panel else _small_page(sheet, series, words)
        out.append(Picture(f"tradeoff{sheet.suffix}", page.figure, table, words))
    return out


def _small_page(sheet: Sheet[Trade], series: list[Series], words: str) -> Page:
    """Draws all tasks as small panels that fit a page. The legend names the variants."""
    trades, grid, columns = sheet.panels, sheet.rows, sheet.columns
    largest = largest_peak(trades)
    timed = unique(t.where for t in trades)
    better = ["up and to the right is better"]
    better += ["a smaller circle needs less memory"] if largest else []
    better += [f"speed of {timed[0]}"] if len(timed) == 1 else []
    page = Page(
        "Accuracy, speed and memory",
        "; ".join(better),
        words,
        [entry({**s.look.line(), "linestyle": "none"}, s.label) for s in series] + level_entries(trades),
        [SMALL_HEIGHT] * grid + ([0.4] if largest else []),
        columns,
        width=7.2 if columns < 4 else 8.2,
        gaps=[0.44] + [0.76] * (grid - 1) + ([0.5] if largest else []),
        left=0.56,
        between=0.3 if len({t.label for t in trades}) == 1 else 0.5,
        below=0.05 if largest else 0.45,
        key=marks_key(c for t in trades for d in t.dots if d.whole for c in d.cells),
    )
    for axes, place in scored_panels(page, sheet):
        head(axes, place.title.replace(", ", "\n", 1), place.panel.groups[0].control)
        draw_trade(axes, place.panel, largest, is_small=True, size=7)
    if largest:
        area_legend(page.panel(grid, 0, span=columns), largest, scale=SMALL)
    return page


def _page(sheet: Sheet[Trade], words: str) -> Page:
    trades, grid, columns = sheet.panels, sheet.rows, sheet.columns
    vacant = len(sheet.places) < grid * columns  # then the circles' legend stands in the free place
    metrics = {t.metric for t in trades}
    largest = largest_peak(trades)
    better = ["up and to the right is better"]
    better += ["a smaller circle needs less memory"] if largest else []
    better += [OTHERS] if sheet.panel else []
    page = Page(
        f"Accuracy, speed and memory{sheet.told(': ')}",
        "; ".join(better),
        words,
        level_entries(trades),
        [2.45] * grid + [0.01 if vacant else 0.5],
        columns,
        width=sheet.width(7.2),
        left=0.62,
        between=0.5 if len(metrics) == 1 else 0.7,
        below=0.05,
        key=marks_key(c for t in trades for d in t.dots if d.whole for c in d.cells),
        gaps=[0.32] + [1.0] * (grid - 1) + [0.75 if vacant else 0.86],
    )
    for axes, place in scored_panels(page, sheet):
        axes.set_title(place.title)
        draw_trade(axes, place.panel, largest, named={s.key for s in place.own})
    if largest:
        free = (grid - 1, columns - 1)
        legend = page.panel(*free) if vacant else page.panel(grid, 0, span=columns)
        area_legend(legend, largest)
    return page


def trade_note(trades: list[Trade]) -> str:
    none = "No memory was measured where speed was: points without circles."
    return trade_words(trades) + ("" if any(t.memory for t in trades) else f" {none}")


def trade_words(trades: list[Trade]) -> str:
    """Tells in the caption how scores were measured, and which costs were measured elsewhere."""
    differ = unique(t.shapes for t in trades if t.shapes)
    words = "Scores and costs are of different shapes, which the CSV names. " if differ else ""
    words += "Score at the task's own length; speed, the median, and memory where the axis says. "
    words += f"Bars are 95 % intervals: {ONE_SEED}, of several t-intervals over the seeds."
    apart = unique(f"{name} ({told})" for t in trades for name, told in t.unjoined.items())
    if apart:
        words += f" A cross at the left: costs have other parameters than the score: {', '.join(apart)}."
    if differ:
        words += f" Shapes differ: {'; '.join(differ)}."
    if any(d.whole and not d.peak for t in trades if t.memory for d in t.dots):
        words += " No circle: no memory was measured there with these parameters."
    return words


def _line(trade: Trade, dot: Record) -> dict[str, Any]:
    return {
        "panel": trade.title,
        **dot.series.columns,
        "status": dot.status,
        "metric": trade.metric,
        "accuracy": dot.mean,
        "on_front": trade.front.chance.get(dot.series.key) if trade.front else None,
        **dot.costs,
        "cost_at": trade.speed.text(),
    }
