"""The summary in one wide picture: time with the crossings, memory, and the trade-off."""

from __future__ import annotations

from typing import Any

import pandas as pd

from .caption import caption, repetitions, unique
from .crossing import Crossing
from .curve_page import Quantity, draw_panel, finish
from .curves import shape_text
from .memory import PEAK
from .memory import heading as memory_heading
from .operating import SCOPES
from .page import Page, Picture, handles
from .panels import MODES, Panel, drawn_series, pages, undrawn
from .rows import Rows
from .speed import baseline_name, crossings, draw_strip, strip_lines, time_of
from .speed import heading as time_heading
from .style import Series, Styles
from .tradeoff import area_legend, draw_trade, other_params
from .trades import Trade, telling_trade, trade_panels

HEIGHT, AREA_LEGEND = 3.9, 0.72  # inches: a panel with what is under it, and the circles' legend


def overview(rows: Rows, styles: Styles) -> list[Picture]:
    time, peak = _panel("speed", rows), _panel("memory", rows)
    telling = telling_trade(trade_panels(rows, styles))
    trades = trade_panels(rows, styles, telling.groups) if telling else []  # its labels alone
    parts = [p for p in (time, peak, *trades) if p is not None]
    if len(parts) < 2:  # a single panel is one of the other pictures
        return []
    cells = [c for p in (time, peak) if p for c in p.cells]
    accuracy = [c for t in trades for g in t.groups for c in g.cells]
    series = styles.series(cells or accuracy)
    curves = [p for p in (time, peak) if p]
    shown = drawn_series(curves, styles) if curves else series
    words = caption(rows, cells + accuracy, *_notes(time, peak, trades), undrawn(curves, styles))
    found = crossings(time.select(shown), styles) if time else []
    under = 0.165 * strip_lines(found) + 0.05 if found else 0.0
    page = Page(
        "Attention variants on one machine",
        "time and memory: lower is better; accuracy: up and to the right is better",
        words,
        handles(shown),
        [HEIGHT - under, under + 0.01],
        len(parts),
        width=3.9 * len(parts),
        gaps=[0.32, 0.07],
        left=0.86,
        right=0.15,
        between=0.86,
        below=0.52,
        scale=1.1,
    )
    table: list[dict[str, Any]] = []
    for column, part in enumerate(parts):
        if isinstance(part, Trade):
            _draw_trade(page, column, part, under)
            continue
        quantity, strip = (time_of(part.cells[0]), found) if part is time else (PEAK, [])
        _draw_curves(page, column, part, quantity, part.select(shown), strip, styles, under)
        table += [
            {
                "panel": _title(part, quantity),
                "series": s.label,
                "length": c.length,
                "status": c.status,
                "value": quantity.value(c),
            }
            for s in part.select(series)
            for c in s.cells
        ]
    table += [
        {
            "panel": "trade-off",
            "series": d.series.label,
            "status": d.status,
            "value": d.score.mean if d.score else None,
            "tokens_per_s": d.speed,
            "peak_bytes": d.peak,
        }
        for t in trades
        for d in t.dots
    ]
    return [Picture("overview", page.figure, pd.DataFrame(table), words)]


def _title(panel: Panel, quantity: Quantity) -> str:
    words = memory_heading(panel.cells[0]) if quantity is PEAK else time_heading(quantity)
    return f"{words}: {panel.title}"


def _draw_curves(
    page: Page,
    column: int,
    panel: Panel,
    quantity: Quantity,
    own: list[Series],
    found: list[tuple[Series, Crossing]],
    styles: Styles,
    under: float,
) -> None:
    axes = page.panel(0, column, deeper=0.0 if found else under + 0.07)
    axes.set_title(_title(panel, quantity))
    draw_panel(axes, own, panel.lengths, quantity)
    axes.set_ylabel(quantity.label)
    finish([axes], [own], quantity)
    if found:
        axes.tick_params(labelbottom=False)
        axes = page.panel(1, column, share_x=axes)
        draw_strip(axes, found, baseline_name(own, styles))
    axes.set_xlabel("sequence length (tokens, 1k = 1024)")


def _draw_trade(page: Page, column: int, trade: Trade, under: float) -> None:
    """The circles' legend takes the lowest part of the panel's room."""
    largest = max((d.peak for d in trade.dots if d.peak), default=None)
    axes = page.panel(0, column, deeper=under + 0.07)
    x, y, wide, high = axes.get_position().bounds
    cut = (AREA_LEGEND if largest else 0.0) / page.figure.get_figheight()
    axes.set_position((x, y + cut, wide, high - cut))
    axes.set_title(f"Accuracy: {trade.title}")
    draw_trade(axes, trade, largest, scale=1.1, size=8.5)
    axes.set_ylabel(trade.label)
    if largest:
        legend = page.figure.add_axes((x, y - 0.62 * cut, wide, 0.5 * cut))
        area_legend(legend, largest, scale=1.1, size=8.5)


def _panel(measure: str, rows: Rows) -> Panel | None:
    """The panel with the most curves: bare attention first, forward, not causal."""

    def rank(panel: Panel) -> tuple[Any, ...]:
        axes = panel.cells[0].axes
        scope, mode = str(axes.get("scope") or "attention"), str(axes.get("mode") or "forward")
        return (
            scope in SCOPES and SCOPES.index(scope),
            mode in MODES and MODES.index(mode),
            bool(axes.get("causal")),
            -len(panel.lengths),
        )

    panels = [p for _, page in pages(measure, rows.of(measure)) for p in page if p.is_curve]
    return min(panels, key=rank, default=None)


def _notes(time: Panel | None, peak: Panel | None, trades: list[Trade]) -> list[str]:
    notes = []
    if time:
        notes += [
            repetitions(list(time.cells)),
            "Grey strip: crossings with 95 % intervals; an arrow: out of range.",
        ]
    if peak:
        notes.append("Memory: exact peak of the counted pool, inputs and weights included.")
    shapes = unique(f"{shape_text(p.cells[0])}" for p in (time, peak) if p)
    if shapes:
        notes.append(f"Shape: {'; '.join(shapes)}.")
    if trades:
        notes.append(
            "Accuracy: at the task's own length, bars its 95 % interval." + other_params(trades)
        )
    return notes
