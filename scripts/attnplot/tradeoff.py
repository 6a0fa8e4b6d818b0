"""Accuracy against speed, memory as area, after Figure 3 of Long Range Arena (arXiv:2011.04006)."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from .accuracy import CHANCE, SHORTCUT
from .caption import caption
from .page import Page, Picture
from .rows import Rows
from .sheets import WIDE, Sheet, sheets
from .style import Styles
from .tasks import ONE_SEED
from .trade_panel import area_legend, draw_trade, levels_of
from .trades import Dot, Trade, trade_panels
from .tuned import chosen_on_validation

__all__ = ["area_legend", "draw_trade", "largest_peak", "level_handles", "tradeoff", "trade_words"]


def tradeoff(rows: Rows, styles: Styles) -> list[Picture]:
    """A page with a panel for each task, or a page for each task with the variants in parts."""
    trades = trade_panels(rows, styles)
    if not trades:
        return []
    cells = chosen_on_validation(rows.of("accuracy"))
    columns = min(2, len(trades))
    grid = [(t, i // columns, i % columns) for i, t in enumerate(trades)]
    series = list({d.series.key: d.series for t in trades for d in t.dots}.values())
    out, names = [], []
    for sheet in sheets(grid, series, styles):
        shown = [sheet.panel] if sheet.panel else trades
        tasks = {g.cells[0].task for t in shown for g in t.groups}
        words = caption(rows, [c for c in cells if c.task in tasks], trade_note(shown))
        names.append(f"tradeoff-{sheet.panel.slug}" if sheet.panel else "tradeoff")
        again = names.count(names[-1])
        stem = names[-1] + (f"-{again}" if again > 1 else "")
        out.append(_page(stem, sheet, shown, words))
    return out


def _page(name: str, sheet: Sheet[Trade], trades: list[Trade], words: str) -> Picture:
    parts, grid, columns = sheet.panel is not None, sheet.rows, sheet.columns
    vacant = len(sheet.places) < grid * columns  # then the circles' legend stands in the free place
    metrics = {t.metric for t in trades}
    largest = largest_peak(trades)
    better = ["up and to the right is better"]
    better += ["a smaller circle needs less memory"] if largest else []
    better += ["the variants of the other panels are grey" if parts else ""]
    page = Page(
        "Accuracy, speed and memory" + (f": {sheet.panel.title}" if sheet.panel else ""),
        "; ".join(filter(None, better)),
        words,
        level_handles(trades),
        [2.45] * grid + [0.01 if vacant else 0.5],
        columns,
        width=WIDE if columns > 2 else 7.2,
        left=0.62,
        between=0.5 if len(metrics) == 1 else 0.7,
        below=0.05,
        gaps=[0.32] + [1.0] * (grid - 1) + [0.75 if vacant else 0.86],
    )
    before: dict[int, str] = {}
    for place in sheet.places:
        axes = page.panel(place.row, place.column)
        axes.set_title(place.title)
        draw_trade(axes, place.panel, largest, named={s.key for s in place.own})
        if place.column == 0 or place.panel.metric != before.get(place.row):
            axes.set_ylabel(place.panel.label)
        before[place.row] = place.panel.metric
    if largest:
        free = (grid - 1, columns - 1)
        legend = page.panel(*free) if vacant else page.panel(grid, 0, span=columns)
        area_legend(legend, largest)
    table = [_line(t, d) for t in trades for d in t.dots]
    return Picture(name, page.figure, pd.DataFrame(table), words)


def largest_peak(trades: list[Trade]) -> float | None:
    return max([d.peak for t in trades for d in t.dots if d.peak], default=None)


def level_handles(trades: list[Trade]) -> list[tuple[Line2D, str]]:
    """The legend of the lines across the panels."""
    drawn = {name for t in trades for name, _, _ in levels_of(t)}
    named = (("chance", CHANCE), ("best shortcut", SHORTCUT))
    return [(Line2D([], [], **look), name) for name, look in named if name in drawn]


def trade_note(trades: list[Trade]) -> str:
    at = " / ".join(dict.fromkeys(t.memory.text() for t in trades if t.memory))
    memory = f"Memory at: {at}." if at else "No memory rows: points without circles."
    return f"{trade_words(trades)} {memory}"


def trade_words(trades: list[Trade]) -> str:
    """What the caption says of scores and of costs measured elsewhere."""
    words = f"Accuracy at the task's own length, bars 95 % intervals, {ONE_SEED}; speed the median "
    words += "where the axis says."
    if any(d.params for t in trades for d in t.dots):
        words += " Where a cost is of other parameters than the score, the point says so."
    if any(d.score and d.speed and not d.peak for t in trades if t.memory for d in t.dots):
        words += " No circle: no memory was measured with these parameters."
    return words


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
