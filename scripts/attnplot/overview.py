"""The summary in one wide picture: time, memory, and the trade-off of accuracy and speed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd

from .caption import caption, machines, repetitions, unique
from .context import MODES, SCOPES, mode_of, scope_of, shape_text
from .curve_page import FAN, draw_panels
from .facets import facets, recolored
from .groups import MOST
from .memory import PEAK
from .page import Page, Picture
from .panels import Panel, drawn_series, pages, undrawn
from .quantity import Quantity, by_length
from .rows import Rows
from .sheets import Place
from .speed import time_of
from .style import Series, Styles
from .trade_panel import area_legend, draw_trade, level_entries
from .tradeoff import trade_words
from .trades import Trade, front, largest_peak, telling_trade, trade_panels
from .units import length_text

HEIGHT, AREA_LEGEND = 3.9, 0.72  # inches: a panel, and the circles' legend


def overview(rows: Rows, styles: Styles) -> list[Picture]:
    time, peak = telling_panel("speed", rows), telling_panel("memory", rows)
    telling = telling_trade(trade_panels(rows, styles))
    trades = trade_panels(rows, styles, telling.groups) if telling else []  # its labels alone
    parts = [p for p in (time, peak, *trades) if p is not None]
    if len(parts) < 2:  # a single panel is one of the other pictures
        return []
    curves = [p for p in (time, peak) if p]
    cells = [c for p in curves for c in p.cells]
    accuracy = [c for t in trades for g in t.groups for c in g.cells]
    shown = drawn_series(curves, styles) if curves else []
    named = _leaders(curves[0], shown, styles) if curves else []
    looks = {s.key: s.look for s in named}
    notes = _notes(time, peak, trades, styles)
    if curves and len(named) < len(shown):
        notes.append(_told(curves[0]))
    words = caption(rows, cells + accuracy, *notes, undrawn(curves, styles))
    page = Page(
        f"Attention variants on {machines(rows)}",
        "",
        words,
        level_entries(trades),
        [HEIGHT],
        len(parts),
        width=3.9 * len(parts),
        gaps=[0.32],
        left=0.86,
        right=0.15,
        between=0.86,
        below=0.62,
        scale=1.1,
    )
    fans = []
    for column, part in enumerate(parts):
        if isinstance(part, Trade):
            _draw_trade(page, column, part, styles)
            continue
        quantity = _quantity(part)
        own = part.select(shown)
        here = [replace(s, look=looks[s.key]) for s in own if s.key in looks]
        others = [s for s in own if s.key not in looks]
        axes = page.panel(0, column)
        axes.set_title(_title(part, quantity))
        axes.set_ylabel(quantity.label)
        place = Place(part, part.title, 0, column, here or own, others if here else [])
        fans += draw_panels([(axes, place)], quantity)
    better = [
        " and ".join(w for w, p in (("time", time), ("memory", peak)) if p) + ": lower is better"
        if curves
        else "",
        "accuracy: up and to the right is better" if trades else "",
        FAN if any(fans) else "",
    ]
    page.say("; ".join(filter(None, better)))
    return [Picture("overview", page.figure, _table(time, peak, trades, styles), words)]


def _quantity(panel: Panel) -> Quantity:
    cell = panel.cells[0]
    return time_of(cell) if cell.measure == "speed" else PEAK


def _leaders(panel: Panel, series: list[Series], styles: Styles) -> list[Series]:
    """Returns the series drawn in full. Of few series these are all. Of many they are exact
    attention and the least series of each group at the longest length, as many as there are
    colours."""
    if len(facets(series, styles)) == 1:
        return series
    longest = max(panel.lengths)
    quantity = _quantity(panel)
    exact = styles.baselines(series)
    least: dict[str, tuple[float, Series]] = {}
    for s in panel.select(series):
        at = by_length(s).get(longest)
        value = quantity.value(at[0]) if at else None
        title = next((g.title for g in styles.groups if s.variant in g.variants), None)
        if value and title and value < least.get(title, (math.inf,))[0]:
            least[title] = value, s
    keys = [s.key for _, s in sorted(least.values(), key=lambda found: found[0])[:MOST]]
    return exact + recolored([s for s in series if s.key in keys])


def _told(panel: Panel) -> str:
    what = "fastest" if panel.cells[0].measure == "speed" else "smallest"
    return (
        f"Named curves: exact attention and, of each part of the other pictures, the {what} at "
        f"length {length_text(max(panel.lengths))}, at most {MOST}; the other variants are grey."
    )


def _table(
    time: Panel | None, peak: Panel | None, trades: list[Trade], styles: Styles
) -> pd.DataFrame:
    table: list[dict[str, Any]] = []
    for panel in (p for p in (time, peak) if p):
        quantity = _quantity(panel)
        table += [
            {
                "panel": _title(panel, quantity),
                "series": s.label,
                "length": c.length,
                "status": c.status,
                "value": quantity.value(c),
                "cell": c.id,
            }
            for s in styles.series(list(panel.cells))
            for c in s.cells
        ]
    table += [
        {
            "panel": "trade-off",
            "series": d.series.label,
            "status": d.status,
            "value": d.mean,
            **d.costs,
        }
        for t in trades
        for d in t.dots
    ]
    return pd.DataFrame(table)


def _title(panel: Panel, quantity: Quantity) -> str:
    return f"{quantity.heading(panel.cells[0])}: {panel.title}"


def _draw_trade(page: Page, column: int, trade: Trade, styles: Styles) -> None:
    """Draws the trade-off. The legend of circles takes the lowest part of the panel's room."""
    named = front(trade, styles)
    if len(named) < len(trade.dots):
        exact = {s.key for s in styles.baselines(trade.series)}
        rest = [s for s in trade.series if s.key in named - exact]
        looks = {s.key: s for s in recolored(rest)}
        dots = [replace(d, series=looks.get(d.series.key, d.series)) for d in trade.dots]
        trade = replace(trade, dots=dots)
    largest = largest_peak([trade])
    axes = page.panel(0, column)
    x, y, wide, high = axes.get_position().bounds
    cut = (AREA_LEGEND if largest else 0.0) / page.figure.get_figheight()
    axes.set_position((x, y + cut, wide, high - cut))
    axes.set_title(f"Accuracy: {trade.title}")
    draw_trade(axes, trade, largest, named=named, scale=1.1, size=8.5)
    axes.set_ylabel(trade.label)
    if largest:
        legend = page.figure.add_axes((x, y - 0.62 * cut, wide, 0.5 * cut))
        area_legend(legend, largest, scale=1.1, size=8.5)


def telling_panel(measure: str, rows: Rows) -> Panel | None:
    """Returns the panel with the most curves. Bare attention comes first, then forward, then not
    causal."""

    def rank(panel: Panel) -> tuple[Any, ...]:
        cell = panel.cells[0]
        scope, mode = scope_of(cell), mode_of(cell)
        return (
            scope in SCOPES and SCOPES.index(scope),
            mode in MODES and MODES.index(mode),
            bool(cell.axes.get("causal")),
            -len(panel.lengths),
        )

    panels = [p for _, page in pages(measure, rows.of(measure)) for p in page if p.is_curve]
    return min(panels, key=rank, default=None)


def _notes(
    time: Panel | None, peak: Panel | None, trades: list[Trade], styles: Styles
) -> list[str]:
    notes = []
    if time:
        notes.append(repetitions(list(time.cells)))
    if peak:
        notes.append("Memory: exact peak of the counted pool, inputs and weights included.")
    shapes = unique(f"{shape_text(p.cells[0])}" for p in (time, peak) if p)
    if shapes:
        notes.append(f"Shape: {'; '.join(shapes)}.")
    if trades:
        notes.append(trade_words(trades))
        if any(len(front(t, styles)) < len(t.dots) for t in trades):
            notes.append(
                "Named points: exact attention and what no other beats in both accuracy and speed; "
                "the other variants are grey."
            )
    return notes
