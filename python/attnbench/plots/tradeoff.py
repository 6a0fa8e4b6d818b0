"""Accuracy against speed, memory as area, after Figure 3 of Long Range Arena (arXiv:2011.04006)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from .caption import caption, unique
from .joined import Record
from .page import Page, Picture
from .rows import Rows
from .sheets import OTHERS, Sheet, in_rows, scored_panels, sheets
from .style import Styles
from .tasks import ONE_SEED
from .trade_panel import area_legend, draw_trade, level_entries
from .trades import Trade, largest_peak, trade_panels
from .tuned import chosen_on_validation

COLUMNS = 2


def tradeoff(rows: Rows, styles: Styles) -> list[Picture]:
    """Draws one page with a panel for each task. Many variants get a page for each task, which
    shows them in parts."""
    trades = trade_panels(rows, styles)
    if not trades:
        return []
    cells = chosen_on_validation(rows.of("accuracy"))
    series = list({s.key: s for t in trades for s in t.series}.values())
    out = []
    for sheet in sheets(in_rows(trades, COLUMNS), series, styles):
        tasks = {g.cells[0].task for t in sheet.panels for g in t.groups}
        words = caption(rows, [c for c in cells if c.task in tasks], trade_note(sheet.panels))
        table = pd.DataFrame([_line(t, d) for t in sheet.panels for d in t.dots])
        out.append(Picture(f"tradeoff{sheet.suffix}", _page(sheet, words).figure, table, words))
    return out


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
