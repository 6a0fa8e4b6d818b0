"""Draws a page of panels over length, for any quantity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .curves import (
    Value,
    bytes_text,
    draw_curve,
    draw_failures,
    length_axis,
    length_text,
    log_axis,
    seconds_text,
)
from .guides import slope_guides
from .page import Page, Picture, handles
from .panels import Panel, drawn_series
from .rows import FAILURES, Cell
from .style import Series, Styles

PANEL_HEIGHT = 2.25  # inches


@dataclass(frozen=True)
class Quantity:
    """What a page shows: the value, its band, and how its axis reads."""

    kind: str  # "seconds" or "bytes"
    label: str
    value: Value
    band: tuple[Value, Value] | None
    columns: Callable[[Cell], dict[str, Any]]  # of the CSV

    def text(self, value: float) -> str:
        return bytes_text(value) if self.kind == "bytes" else seconds_text(value)


# A strip of fixed lines under each panel: how many lines it needs, and what draws it.
Strip = tuple[Callable[[Panel, list[Series]], float], Callable[[Axes, Panel, list[Series]], None]]


def draw_page(
    styles: Styles,
    name: str,
    panels: list[Panel],
    quantity: Quantity,
    *,
    title: str,
    subtitle: str,
    words: str,
    strip: Strip | None = None,
) -> Picture:
    series = styles.series([c for p in panels for c in p.cells])
    shown = drawn_series(panels, styles)
    rows = sorted({p.row for p in panels})
    lines = {p.title: strip[0](p, p.select(shown)) if strip and p.is_curve else 0 for p in panels}
    heights, gaps = [], []
    for row in rows:
        in_strip = max(lines[p.title] for p in panels if p.row == row)
        heights += [PANEL_HEIGHT, 0.165 * in_strip + 0.05] if strip else [PANEL_HEIGHT]
        gaps += [0.3 if row == 0 else 0.78] + ([0.07 if in_strip else 0.0] if strip else [])
    page = Page(
        title,
        subtitle,
        words,
        handles(shown),
        heights,
        max(p.column for p in panels) + 1,
        gaps=gaps,
        left=0.85,
    )
    for row in rows:
        _draw_row(
            page,
            [p for p in panels if p.row == row],
            row * (2 if strip else 1),
            shown,
            quantity,
            strip,
            lines,
        )
    table = [
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
    return Picture(name, page.figure, pd.DataFrame(table), words)


def _draw_row(
    page: Page,
    panels: list[Panel],
    place: int,
    shown: list[Series],
    quantity: Quantity,
    strip: Strip | None,
    lines: dict[str, float],
) -> None:
    shared: Axes | None = None
    drawn: list[tuple[Axes, Panel]] = []
    for panel in panels:
        own = panel.select(shown)
        axes = page.panel(place, panel.column, share_y=shared if panel.is_curve else None)
        axes.set_title(panel.title)
        if not panel.is_curve:
            draw_dots(axes, own, quantity)
            continue
        draw_panel(axes, own, panel.lengths, quantity)
        drawn.append((axes, panel))
        if shared is None:
            shared = axes
            axes.set_ylabel(quantity.label)
        else:
            axes.tick_params(labelleft=False)
    finish([axes for axes, _ in drawn], [p.select(shown) for _, p in drawn], quantity)
    for axes, panel in drawn:
        under = axes
        if strip and lines[panel.title]:
            axes.tick_params(labelbottom=False)
            under = page.panel(place + 1, panel.column, share_x=axes)
            strip[1](under, panel, panel.select(shown))
            top = under.get_ylim()[1]  # strips side by side: the same height of a line
            under.set_ylim(top + max(lines[p.title] for p in panels), top)
        under.set_xlabel("sequence length (tokens, 1k = 1024)")


def draw_panel(axes: Axes, series: list[Series], lengths: list[int], quantity: Quantity) -> None:
    for s in series:
        draw_curve(axes, s, quantity.value, quantity.band)
    axes.set_yscale("log")
    length_axis(axes, lengths)


def finish(row: list[Axes], series: list[list[Series]], quantity: Quantity) -> None:
    """Limits, ticks, guides and failures, once all panels that share a value axis are drawn."""
    if not row:
        return
    failing = max(sum(any(c.status in FAILURES for c in s.cells) for s in own) for own in series)
    low, high = np.log(row[0].get_ylim())
    high += (high - low) * 0.1 * failing  # room for the crosses
    if high - low < np.log(20):  # a flat picture should look flat
        low, high = (low + high - np.log(20)) / 2, (low + high + np.log(20)) / 2
    row[0].set_ylim(np.exp(low), np.exp(high))
    for axes, own in zip(row, series):
        log_axis(axes, quantity.kind)
        slope_guides(axes, top=0.94 - 0.085 * failing)
        draw_failures(axes, own)


def draw_dots(axes: Axes, series: list[Series], quantity: Quantity) -> None:
    """One length only: a line per variant instead of curves of one point."""
    length = next(c.length for s in series for c in s.cells if c.status != "skipped")
    axes.set_xscale("log")
    for y, s in enumerate(series):
        for cell in s.cells:
            value = quantity.value(cell) if cell.ok else None
            if value:
                ends = (
                    [end(cell) or value for end in quantity.band]
                    if quantity.band
                    else [value, value]
                )
                axes.plot(
                    ends,
                    [y, y],
                    color=s.look.color,
                    linewidth=3.5,
                    alpha=0.45,
                    solid_capstyle="butt",
                )
                axes.plot([value], [y], **s.look.line())
                axes.annotate(
                    quantity.text(value),
                    (value, y),
                    xytext=(0, 5),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=8,
                )
            elif cell.status in FAILURES:
                axes.annotate(
                    f"\u2715 {cell.status}",
                    (0.02, y),
                    xycoords=axes.get_yaxis_transform(),
                    va="center",
                    fontsize=8,
                    color=s.look.ink,
                )
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.6, high * 1.6)
    axes.set_ylim(len(series) - 0.5, -0.7)
    axes.set_yticks(range(len(series)), [s.label for s in series])
    axes.xaxis.set_major_formatter(lambda v, _: quantity.text(v))
    axes.minorticks_off()
    axes.set_xlabel(f"{quantity.label} at length {length_text(length or 0)}")
