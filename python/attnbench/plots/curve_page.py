"""Pages of panels over length, for any quantity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .caption import caption
from .context import shape_text
from .curves import (
    draw_behind,
    draw_curve,
    draw_failures,
    end_of,
    failed_at,
    failure_height,
    length_axis,
    length_ticks,
)
from .dots import draw_dots
from .ends import End, make_room, name_ends
from .guides import slope_guides
from .page import Page, Picture
from .panels import Panel, drawn_series, elsewhere, pages, scope_words, undrawn
from .quantity import Quantity
from .rows import Cell, Rows
from .sheets import OTHERS, Place, Sheet, sheets
from .style import Styles

PANEL_HEIGHT = 2.25  # inches
FAN = "the grey fan shows growth with n and with n\u00b2"
Note = Callable[[list[Cell]], str]


@dataclass(frozen=True)
class Words:
    """What a page says. `better` begins the subtitle; the caption holds the `note`."""

    title: str
    better: str
    note: Note


def against_length(
    measure: str, rows: Rows, styles: Styles, quantity_of: Callable[[Cell], Quantity], note: Note
) -> list[Picture]:
    """Draws every page of a measure."""
    out = []
    for name, panels in pages(measure, rows.of(measure)):
        first = panels[0].cells[0]
        quantity = quantity_of(first)
        title = f"{quantity.heading(first)} against sequence length: {scope_words(panels)}"
        words = Words(title, "lower is better", note)
        out += draw_pages(rows, styles, name, panels, quantity, words)
    return out


def draw_pages(
    rows: Rows, styles: Styles, name: str, panels: list[Panel], quantity: Quantity, words: Words
) -> list[Picture]:
    """Draws one page with every panel. Many lines get a page for each panel, which shows them in
    parts."""
    grid = [(p, p.row, p.column) for p in panels]
    out = []
    for sheet in sheets(grid, drawn_series(panels, styles), styles):
        told = _caption(rows, styles, sheet.panels, words.note)
        page = _page(sheet, quantity, words, told)
        table = pd.DataFrame(_table(styles, sheet.panels, quantity))
        out.append(Picture(name + sheet.suffix, page.figure, table, told))
    return out


def _caption(rows: Rows, styles: Styles, panels: list[Panel], note: Note) -> str:
    cells = [c for p in panels for c in p.cells]
    shape = f"Shape: {shape_text(cells[0])}."
    others = elsewhere(panels, rows.of(cells[0].measure))
    return caption(rows, cells, note(cells), undrawn(panels, styles), shape, others)


def _page(sheet: Sheet[Panel], quantity: Quantity, words: Words, told: str) -> Page:
    parts = sheet.in_parts
    page = Page(
        words.title + sheet.told(", "),
        words.better,
        told,
        [],
        [PANEL_HEIGHT] * sheet.rows,
        sheet.columns,
        width=sheet.width(8.6 if parts else 7.2),
        gaps=[0.3] + [0.78] * (sheet.rows - 1),
        left=0.85,
        between=0.75 if parts else 0.3,
    )
    fans = []
    for row in range(sheet.rows):
        fans += _draw_row(page, [p for p in sheet.places if p.row == row], quantity, parts)
    behind = f"{OTHERS}; the scales of the panels differ"
    notes = [words.better, FAN if any(fans) else "", behind if parts else ""]
    page.say("; ".join(filter(None, notes)))
    return page


def _table(styles: Styles, panels: list[Panel], quantity: Quantity) -> list[dict[str, Any]]:
    series = styles.series([c for p in panels for c in p.cells])
    return [
        {
            "panel": p.title,
            **s.columns,
            "length": c.length,
            "status": c.status,
            "reason": c.reason,
            **quantity.columns(c),
            "cell": c.id,
        }
        for p in panels
        for s in p.select(series)
        for c in sorted(s.cells, key=lambda c: c.length or 0)
    ]


def _draw_row(
    page: Page, places: list[Place[Panel]], quantity: Quantity, parts: bool
) -> list[bool]:
    """Draws the panels of a row and returns whether each has a fan of slopes. Panels share a value
    axis unless they show parts."""
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
    """Draws panels that share a value axis: curves, limits, fans, crosses and names. Returns
    whether each has a fan of slopes."""
    for axes, place in row:
        for s in place.own:
            draw_curve(axes, s, quantity)
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
        draw_behind(axes, place.others, quantity)
        axes.set_ylim(np.exp(low), np.exp(high))
        ends = _ends(axes, place, quantity)
        share = make_room(axes, ends, max(place.panel.lengths))
        length_ticks(axes, place.panel.lengths, share)
        quantity.axis(axes)
        top = 0.94 - 0.07 * failing
        fans.append(quantity.kind != "ratio" and slope_guides(axes, top=top, right=share))
        draw_failures(axes, place.own)
        name_ends(axes, ends, share)
    return fans


def _ends(axes: Axes, place: Place[Panel], quantity: Quantity) -> list[End]:
    """Returns the names of the lines. A line without a number is named at the cross of its last
    cell."""
    low, high = np.log(axes.get_ylim())
    out, row = [], 0
    for s in place.own:
        end, failed = end_of(s, quantity), failed_at(s)
        if end.at is None and failed:
            height = float(np.exp(low + (high - low) * failure_height(row)))
            end = End((failed[-1][0], height), end.text, end.look)
        row += bool(failed)
        if end.at or failed:
            out.append(end)
    return out
