"""Time against length, and in a strip under each panel where variants overtake full attention."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .caption import caption, repetitions
from .crossing import Crossing, find_crossing
from .curve_page import Quantity, draw_page
from .curves import by_length, shape_text
from .page import Picture
from .panels import Panel, decodes, drawn_series, pages, undrawn
from .rows import Cell, Rows
from .runs import run_of
from .style import GREY, Series, Styles

WORDS = {"attention": "attention alone", "layer": "encoder layer", "model": "whole model"}


def _number(name: str) -> Any:
    return lambda cell: cell.metric(name)


def _columns(cell: Cell) -> dict[str, Any]:
    return {
        **{k: cell.metric(f"time_s.{k}") for k in ("median", "ci_low", "ci_high", "min", "n")},
        "tokens_per_s": cell.metric("tokens_per_s"),
        "peak_fraction": cell.metric("peak_fraction"),
    }


TIME = Quantity(
    "seconds",
    "time per call",
    _number("time_s.median"),
    (_number("time_s.ci_low"), _number("time_s.ci_high")),
    _columns,
)


TOKEN_TIME = replace(TIME, label="time per token")


def time_of(cell: Cell) -> Quantity:
    return TOKEN_TIME if decodes(cell) else TIME


def heading(quantity: Quantity) -> str:
    return "Time of one token" if quantity is TOKEN_TIME else "Time"


STRIP_HEAD = 1.1  # lines of the strip's heading


def strip_lines(found: list[tuple[Series, Crossing]]) -> float:
    """The height of a strip in lines."""
    return len(found) + STRIP_HEAD if found else 0.0


def crossings(series: list[Series], styles: Styles) -> list[tuple[Series, Crossing]]:
    """Each series against full attention, over the cells of one panel."""
    if styles.baseline(series) is None:
        return []
    samples = {
        s.key: {n: [v for c in cells for v in c.visited()] for n, cells in by_length(s).items()}
        for s in series
    }
    medians = {
        s.key: {
            n: float(np.median([TIME.value(c) or np.nan for c in cells]))
            for n, cells in by_length(s).items()
        }
        for s in series
    }
    found = []
    for s in series:
        full = styles.baseline(series, run_of(s.params))
        if full is not None and s.variant != full.variant:
            pair = medians[s.key], medians[full.key]
            found.append((s, find_crossing(samples[s.key], samples[full.key], pair)))
    return [(s, c) for s, c in found if c is not None]


def draw_strip(
    axes: Axes, found: list[tuple[Series, Crossing]], baseline: str, *, size: float = 8
) -> None:
    """A line per variant: where it overtakes full attention; an arrow: out of range."""
    axes.set_ylim(len(found) - 0.4, -STRIP_HEAD - 0.4)
    axes.set_facecolor("#f5f5f5")
    axes.grid(axis="y", visible=False)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.annotate(
        f"faster than {baseline} from length \u2026",
        (0, -STRIP_HEAD + 0.05),
        xycoords=axes.get_yaxis_transform(),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=size,
        color=GREY,
    )
    first, last = axes.get_xlim()
    for y, (series, crossing) in enumerate(found):
        look = series.look
        inside = lambda x: min(max(x, first), last)  # noqa: E731
        at = inside(crossing.length)
        reach = [at]
        if crossing.within:
            reach += [inside(end) for end in (crossing.low, crossing.high) if end is not None]
            axes.plot(
                [min(reach), max(reach)],
                [y, y],
                color=look.color,
                linewidth=4,
                alpha=0.4,
                solid_capstyle="butt",
                clip_on=False,
            )
        marker = look.marker if crossing.within else "<" if at == first else ">"
        axes.plot(
            [at], [y], **{**look.line(), "marker": marker, "linestyle": "none"}, clip_on=False
        )
        right = at < math.sqrt(first * last)
        note = axes.annotate(
            f"{series.label}: {crossing.text()}",
            (max(reach) if right else min(reach), y),
            va="center",
            fontsize=size,
            xytext=(7 if right else -7, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            color=look.ink,
        )
        box, frame = note.get_window_extent(), axes.get_window_extent()
        if box.x0 < frame.x0 or box.x1 > frame.x1:  # no room: marker and colour name it
            note.set_text(crossing.text())


def baseline_name(series: list[Series], styles: Styles) -> str:
    """What the strip compares with: with several runs, each variant with its own run's."""
    full = styles.baseline(series)
    runs = {run_of(s.params) for s in series}
    return "full" if full is None or len(runs) > 1 else full.label


def speed(rows: Rows, styles: Styles) -> list[Picture]:
    pictures, table = [], []
    for name, panels in pages("speed", rows.of("speed")):
        series = drawn_series(panels, styles)
        found = {p.title: crossings(p.select(series), styles) for p in panels}
        pictures.append(_picture(rows, styles, name, panels, found))
        table += [
            {
                "page": name,
                "panel": p.title,
                "series": s.label,
                "variant": s.variant,
                **_crossing_columns(c),
            }
            for p in panels
            for s, c in found[p.title]
        ]
    if table:
        pictures.append(Picture("crossing", None, pd.DataFrame(table), ""))
    return pictures


def _picture(
    rows: Rows,
    styles: Styles,
    name: str,
    panels: list[Panel],
    found: dict[str, list[tuple[Series, Crossing]]],
) -> Picture:
    def draw(axes: Axes, panel: Panel, own: list[Series]) -> None:
        draw_strip(axes, found[panel.title], baseline_name(own, styles))

    cells = [c for p in panels for c in p.cells]
    quantity = time_of(cells[0])
    note = (
        "Grey strips: interpolated in log-log between measured lengths, in brackets the 95 % "
        "interval; an arrow: the crossing is not within the measured range."
    )
    scope = str(cells[0].axes.get("scope") or "attention")
    return draw_page(
        styles,
        name,
        panels,
        quantity,
        title=f"{heading(quantity)} against sequence length: {WORDS.get(scope, scope)}",
        subtitle="lower is better; the grey fan shows growth with n and with n\u00b2",
        words=caption(
            rows,
            cells,
            repetitions(cells),
            note if any(found.values()) else "",
            undrawn(panels, styles),
            f"Shape: {shape_text(cells[0])}.",
        ),
        strip=(lambda panel, _: strip_lines(found[panel.title]), draw),
    )


def _crossing_columns(c: Crossing) -> dict[str, Any]:
    finite = {
        k: v if v is not None and math.isfinite(v) else None
        for k, v in (("length", c.length), ("low", c.low), ("high", c.high))
    }
    return {
        "crossing": finite["length"],
        "ci_low": finite["low"],
        "ci_high": finite["high"],
        "text": c.text(),
        "measured_from": c.first,
        "measured_to": c.last,
    }
