"""Draws pages of panels over length, for any quantity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .curves import (
    Value,
    draw_behind,
    draw_curve,
    draw_failures,
    end_of,
    failed_at,
    failure_height,
    length_axis,
    length_ticks,
    value_axis,
    value_text,
)
from .dots import draw_dots
from .ends import End, make_room, name_ends
from .guides import slope_guides
from .page import Page, Picture
from .panels import Panel, drawn_series
from .rows import Cell
from .sheets import WIDE, Place, Sheet, sheets
from .style import Series, Styles

PANEL_HEIGHT = 2.25  # inches
FAN = "the grey fan shows growth with n and with n\u00b2"
BEHIND = "the variants of the other panels are grey; the scales of the panels differ"


@dataclass(frozen=True)
class Quantity:
    """What a page shows: the value, its band, and how its axis reads."""

    kind: str  # "seconds", "bytes" or "ratio"
    label: str
    value: Value
    band: tuple[Value, Value] | None
    columns: Callable[[Cell], dict[str, Any]]  # of the CSV

    def text(self, value: float) -> str:
        return value_text(self.kind, value)


@dataclass(frozen=True)
class Words:
    """What a page says: `better` begins its subtitle, `caption` is given the panels shown."""

    title: str
    better: str
    caption: Callable[[list[Panel]], str]


def draw_pages(
    styles: Styles, name: str, panels: list[Panel], quantity: Quantity, words: Words
) -> list[Picture]:
    """A page with every panel, or a page for each panel with its lines in parts."""
    shown = drawn_series(panels, styles)
    grid = [(p, p.row, p.column) for p in panels]
    out = []
    for sheet in sheets(grid, shown, styles):
        own = [sheet.panel] if sheet.panel else panels
        stem = f"{name}-{sheet.panel.suffix}" if sheet.panel else name
        out.append(_page(styles, stem, own, sheet, quantity, words))
    return out


def _page(
    styles: Styles,
    name: str,
    panels: list[Panel],
    sheet: Sheet[Panel],
    quantity: Quantity,
    words: Words,
) -> Picture:
    parts = sheet.panel is not None and len(sheet.places) > 1
    told = words.caption(panels)
    page = Page(
        words.title + (f", {sheet.panel.title}" if sheet.panel else ""),
        words.better,
        told,
        [],
        [PANEL_HEIGHT] * sheet.rows,
        sheet.columns,
        width=WIDE if sheet.columns > 2 else 8.6 if parts else 7.2,
        gaps=[0.3] + [0.78] * (sheet.rows - 1),
        left=0.85,
        between=0.75 if parts else 0.3,
    )
    fans = []
    for row in range(sheet.rows):
        fans += _draw_row(page, [p for p in sheet.places if p.row == row], quantity, parts)
    notes = [words.better, FAN if any(fans) else "", BEHIND if parts else ""]
    page.say("; ".join(filter(None, notes)))
    return Picture(name, page.figure, pd.DataFrame(_table(styles, panels, quantity)), told)


def _table(styles: Styles, panels: list[Panel], quantity: Quantity) -> list[dict[str, Any]]:
    series = styles.series([c for p in panels for c in p.cells])
    return [
        {
            "panel": p.title,
            "series": s.label,
            "variant": s.variant,
            "length": c.length,
            "status": c.status,
            "reason": c.reason,
            **quantity.columns(c),
        }
        for p in panels
        for s in p.select(series)
        for c in sorted(s.cells, key=lambda c: c.length or 0)
    ]


def _draw_row(
    page: Page, places: list[Place[Panel]], quantity: Quantity, parts: bool
) -> list[bool]:
    """Panels of different parts have scales of their own, others share one. Whether each has a fan
    of slopes."""
    shared: Axes | None = None
    drawn: list[tuple[Axes, Place[Panel]]] = []
    for place in places:
        curve = place.panel.is_curve
        axes = page.panel(place.row, place.column, share_y=shared if curve else None)
        axes.set_title(place.title)
        if not curve:
            draw_dots(axes, place.own, quantity)
            continue
        drawn.append((axes, place))
        if shared is None or parts:
            axes.set_ylabel(quantity.label if place.column == 0 else "")
        else:
            axes.tick_params(labelleft=False)
        if not parts:
            shared = shared or axes
    groups = [[one] for one in drawn] if parts else [drawn]
    return [fan for group in groups if group for fan in draw_panels(group, quantity)]


def draw_panels(row: Sequence[tuple[Axes, Place[Panel]]], quantity: Quantity) -> list[bool]:
    """Panels that share a value axis: curves, limits, the fans, crosses and names. Whether each has
    a fan of slopes."""
    for axes, place in row:
        for s in place.own:
            draw_curve(axes, s, quantity.value, quantity.band)
        axes.set_yscale("log")
        length_axis(axes, place.panel.lengths)
    first = row[0][0]
    failing = max(sum(bool(failed_at(s)) for s in place.own) for _, place in row)
    low, high = np.log(first.get_ylim())
    high += (high - low) * 0.075 * failing  # room for the crosses
    if high - low < np.log(20):  # a flat picture should look flat
        low, high = (low + high - np.log(20)) / 2, (low + high + np.log(20)) / 2
    fans = []
    for axes, place in row:
        draw_behind(axes, place.others, quantity.value)
        axes.set_ylim(np.exp(low), np.exp(high))
        ends = _ends(axes, place, quantity)
        share = make_room(axes, ends, max(place.panel.lengths))
        length_ticks(axes, place.panel.lengths, share)
        value_axis(axes, quantity.kind)
        top = 0.94 - 0.07 * failing
        fans.append(quantity.kind != "ratio" and slope_guides(axes, top=top, right=share))
        draw_failures(axes, place.own)
        name_ends(axes, ends, share)
    return fans


def _ends(axes: Axes, place: Place[Panel], quantity: Quantity) -> list[End]:
    """The names, of what has no number at the cross of its last cell."""
    low, high = np.log(axes.get_ylim())
    out, row = [], 0
    for s in place.own:
        end, failed = end_of(s, quantity.value), failed_at(s)
        if end.at is None and failed:
            height = float(np.exp(low + (high - low) * failure_height(row)))
            end = End((failed[-1][0], height), end.text, end.look)
        row += bool(failed)
        if end.at or failed:
            out.append(end)
    return out
