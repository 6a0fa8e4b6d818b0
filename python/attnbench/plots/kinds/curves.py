"""Pages of panels over length: time, and peak memory as the counted pool has it. A panel of one
length is a list of the variants, best first; a fan of slopes shows growth with n and with n squared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ..layout.axes import End, beside, halo, make_room, name_ends
from ..layout.caption import caption, marks_key, repetitions
from ..layout.page import Page, Picture
from ..layout.panels import (
    Panel,
    Quantity,
    Value,
    draw_behind,
    draw_curve,
    draw_failures,
    draw_marks,
    drawn_series,
    elsewhere,
    end_of,
    failed_at,
    failure_height,
    length_axis,
    length_ticks,
    marks_in,
    pages,
    scope_words,
    undrawn,
)
from ..layout.sheets import OTHERS, Place, Sheet, sheets
from ..rows.read import Cell, Rows
from ..rows.settings import decodes, shape_text
from ..rows.style import GREY, Series, Styles
from .ranking import at_length, draw_ranking, meanings, of_panel, ranking_ticks, room

RISE, WIDEST = 0.09, 0.26  # of the panel: the slope of n, and the fan's width
LABEL = (0.06, 0.05)  # room for a label at the end of a slope


def slope_guides(axes: Axes, *, top: float = 0.94, right: float = 1.0) -> bool:
    """Draws the fan left of `right`, in the corner farthest from the curves. Returns False where no
    corner is clear; then no fan is drawn."""
    (x0, x1), (y0, y1) = np.log(axes.get_xlim()), np.log(axes.get_ylim())
    aspect = (x1 - x0) / (y1 - y0)  # what slope 1 looks like
    wide = min(WIDEST, RISE / aspect)
    high = 2 * wide * aspect
    if high > 0.5:
        wide, high = 0.5 * wide / high, 0.5
    left, right = 0.04, right - 0.04 - wide - LABEL[0]
    upper, lower = top - high, 0.05
    middle = (upper + lower) / 2
    corners = [(x, y) for y in (upper, lower, middle) for x in (left, right, (left + right) / 2)]
    curves = _in_panel(axes, axes.lines)
    room = {c: _distance(curves, c, (wide + LABEL[0], high + LABEL[1])) for c in corners}
    place = next((c for c in corners if room[c] > 0.05), max(corners, key=lambda c: room[c]))
    if right < left or not room[place] > 0:
        return False
    for slope, text in ((1, "n"), (2, "n\u00b2")):
        end = (place[0] + wide, place[1] + slope * wide * aspect)
        axes.plot(
            *zip(place, end),
            transform=axes.transAxes,
            color="#a8a8a8",
            linewidth=0.9,
            zorder=1,
        )
        slanted = {"color": GREY, "style": "italic", "path_effects": halo()}
        beside(axes, text, end, (2.5, 0), xycoords="axes fraction", **slanted)
    return True


def _in_panel(axes: Axes, lines: Iterable[Line2D]) -> np.ndarray:
    """Points along the curves as fractions of the panel [points, 2]."""
    to_panel = axes.transData + axes.transAxes.inverted()
    found = [np.empty((0, 2))]
    for line in lines:
        if line.get_transform() != axes.transData or len(line.get_xdata()) == 0:
            continue
        points = to_panel.transform(np.column_stack([line.get_xdata(), line.get_ydata()]))
        along, steps = np.arange(len(points)), np.linspace(0, len(points) - 1, 40 * len(points))
        found.append(np.column_stack([np.interp(steps, along, axis) for axis in points.T]))
    every = np.concatenate(found)
    return every[np.isfinite(every).all(axis=1)]


def _distance(points: np.ndarray, corner: tuple[float, float], size: tuple[float, float]) -> float:
    """From a box to the nearest point, as a fraction of the panel; 0 where one lies inside."""
    low = np.array(corner)
    outside = np.maximum(np.maximum(low - points, points - (low + np.array(size))), 0)
    return float(np.min(np.hypot(*outside.T), initial=1.0))


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
    """Draws one page with every panel that is a curve. Many lines get a page for each panel, which
    shows them in parts. A panel of one length gets a page of its own, a list."""
    flat = [p for p in panels if not p.is_curve]
    out = []
    for panel in flat:
        suffix = f"-{panel.slug}" if len(panels) > 1 else ""
        out.append(_ranked(rows, styles, name + suffix, panel, quantity, words))
    curves = [p for p in panels if p.is_curve]
    lines, columns = (sorted({getattr(p, of) for p in curves}) for of in ("row", "column"))
    grid = [(p, lines.index(p.row), columns.index(p.column)) for p in curves]
    panels = curves
    if not curves:
        return out
    for sheet in sheets(grid, drawn_series(panels, styles), styles):
        told = _caption(rows, styles, sheet.panels, words.note)
        page = _page(sheet, quantity, words, told)
        series = styles.series([c for p in sheet.panels for c in p.cells])
        table = pd.DataFrame(_table(series, sheet.panels, quantity))
        out.append(Picture(name + sheet.suffix, page.figure, table, told))
    return out


def _ranked(
    rows: Rows, styles: Styles, name: str, panel: Panel, quantity: Quantity, words: Words
) -> Picture:
    """Draws a panel of one length: the variants, best first."""
    ranks = of_panel(name, panel, styles, quantity)
    told = _caption(rows, styles, [panel], words.note)
    left, right = room(ranks, 8.5)
    page = Page(
        f"{quantity.heading(panel.cells[0])} {at_length(panel.cells)}: {scope_words([panel])}",
        f"{panel.title}; {words.better}",
        told,
        [],
        [0.21 * len(ranks.ranks) + 0.15],
        1,
        gaps=[0.05],
        left=left,
        right=right,
        below=0.5 + 0.15 * len(meanings(ranks)),
    )
    axes = page.panel(0, 0)
    draw_ranking(axes, ranks, 8.5, 1.0)
    ranking_ticks(axes, ranks)
    place = {r.series.key: i for i, r in enumerate(ranks.ranks)}
    series = sorted(panel.select(styles.series(list(panel.cells))), key=lambda s: place.get(s.key, len(place)))
    ratios = {r.series.label: r.ratio for r in ranks.ranks}
    lines = [line | {"time_over_full" if quantity.kind == "seconds" else "over_full": ratios.get(line["series"])}
             for line in _table(series, [panel], quantity)]  # fmt: skip
    return Picture(name, page.figure, pd.DataFrame(lines), told)


def _caption(rows: Rows, styles: Styles, panels: list[Panel], note: Note) -> str:
    cells = [c for p in panels for c in p.cells]
    shape = f"Shape: {shape_text(cells[0])}."
    others = elsewhere(panels, rows.of(cells[0].measure))
    return caption(rows, cells, note(cells), undrawn(panels, styles), shape, others)


def _page(sheet: Sheet[Panel], quantity: Quantity, words: Words, told: str) -> Page:
    parts = sheet.in_parts
    own = [c for place in sheet.places for s in place.own for c in s.cells]
    cells = {c.id: c for panel in sheet.panels for c in panel.cells}.values()  # those in the caption
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
        key=marks_key(cells, marks_in(own, quantity)),
    )
    fans = []
    for row in range(sheet.rows):
        fans += _draw_row(page, [p for p in sheet.places if p.row == row], quantity, parts)
    behind = f"{OTHERS}; the scales of the panels differ"
    notes = [words.better, FAN if any(fans) else "", behind if parts else ""]
    page.say("; ".join(filter(None, notes)))
    return page


def _table(series: list[Series], panels: list[Panel], quantity: Quantity) -> list[dict[str, Any]]:
    return [
        {
            "panel": p.title,
            **s.columns,
            "length": c.length,
            "status": c.status,
            "reason": c.reason,
            **quantity.columns(c),
            "marks": quantity.marks(c),
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
        axes = page.panel(place.row, place.column, share_y=shared)
        axes.set_title(place.title)
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
            draw_marks(axes, s, quantity)
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


def _number(name: str) -> Value:
    return lambda cell: cell.metric(name)


def _time_columns(cell: Cell) -> dict[str, Any]:
    return {
        **{k: cell.metric(f"time_s.{k}") for k in ("median", "ci_low", "ci_high", "min", "n")},
        "tokens_per_s": cell.metric("tokens_per_s"),
        "peak_fraction": cell.metric("peak_fraction"),
    }


TIME = Quantity(
    "seconds",
    "Time",
    "time per call",
    _number("time_s.median"),
    (_number("time_s.ci_low"), _number("time_s.ci_high")),
    _time_columns,
)
TOKEN_TIME = replace(TIME, label="time per token")


def time_of(cell: Cell) -> Quantity:
    return TOKEN_TIME if decodes(cell) else TIME


def speed(rows: Rows, styles: Styles) -> list[Picture]:
    return against_length("speed", rows, styles, time_of, repetitions)


FIGURES = (
    "peak_bytes",
    "weights_bytes",
    "activations_bytes",
    "workspace_bytes",
    "extra_bytes",
    "state_bytes",
    "rss_peak_bytes",
)


def _memory_columns(cell: Cell) -> dict[str, Any]:
    return {name: cell.metric(name) for name in FIGURES if cell.metric(name) is not None}


PEAK = Quantity(
    "bytes", "Peak memory", "peak memory", lambda cell: cell.metric("peak_bytes"), None, _memory_columns
)


def memory(rows: Rows, styles: Styles) -> list[Picture]:
    return against_length("memory", rows, styles, lambda _: PEAK, _note)


def _note(cells: list[Cell]) -> str:
    span = (
        "the step of one token, the state of those before it, inputs and weights"
        if decodes(cells[0])
        else "one call, inputs and weights"
    )
    return f"Peak of the counted memory pool during {span} included: exact, n = 1, no interval."
