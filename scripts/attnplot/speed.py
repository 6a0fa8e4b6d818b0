"""Time against length, and in a strip under each panel where variants overtake full attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .caption import caption, repetitions
from .crossing import Crossing, find_crossing
from .curve_page import Quantity, draw_page
from .curves import by_length, shape_text
from .page import Picture
from .panels import Panel, pages
from .rows import Cell, Rows
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


def crossings(series: list[Series], styles: Styles) -> list[tuple[Series, Crossing]]:
    """Each series against full attention, over the cells of one panel."""
    full = styles.baseline(series)
    if full is None:
        return []
    samples = {
        s.key: {n: [t for c in cells for t in c.times()] for n, cells in by_length(s).items()}
        for s in series
    }
    medians = {
        s.key: {
            n: float(np.median([TIME.value(c) or np.nan for c in cells]))
            for n, cells in by_length(s).items()
        }
        for s in series
    }
    found = [
        (s, find_crossing(samples[s.key], samples[full.key], (medians[s.key], medians[full.key])))
        for s in series
        if s.variant != full.variant
    ]
    return [(s, c) for s, c in found if c is not None]


def draw_strip(
    axes: Axes, found: list[tuple[Series, Crossing]], *, size: float = 8, label: bool = True
) -> None:
    """A line per variant: where it overtakes full attention; an arrow: out of range."""
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
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
        axes.annotate(
            crossing.text(),
            (max(reach) if right else min(reach), y),
            va="center",
            fontsize=size,
            xytext=(7 if right else -7, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            color=look.ink,
        )
    if label:
        axes.annotate(
            "faster\nthan full\nfrom",
            (0, 0.5),
            xycoords="axes fraction",
            xytext=(-8, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=size,
            color=GREY,
        )


def speed(rows: Rows, styles: Styles) -> list[Picture]:
    pictures, table = [], []
    for name, panels in pages("speed", rows.of("speed")):
        found = {p.title: crossings(styles.series(list(p.cells)), styles) for p in panels}
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
    def draw(axes: Axes, panel: Panel, _: list[Series]) -> None:
        draw_strip(axes, found[panel.title], label=panel.column == 0)

    cells = [c for p in panels for c in p.cells]
    note = (
        "Strips: from which length on a variant is faster than full attention; interpolated in "
        "log-log between measured lengths, in brackets the 95 % bootstrap interval; an arrow: "
        "not within the measured range."
    )
    scope = str(cells[0].axes.get("scope") or "attention")
    return draw_page(
        styles,
        name,
        panels,
        TIME,
        title=f"Time against sequence length: {WORDS.get(scope, scope)}",
        subtitle="lower is better; the grey fan shows growth with n and with n\u00b2",
        words=caption(
            rows,
            cells,
            repetitions(cells),
            note if any(found.values()) else "",
            f"Shape: {shape_text(cells[0])}.",
        ),
        strip=(lambda panel, _: len(found[panel.title]), draw),
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
