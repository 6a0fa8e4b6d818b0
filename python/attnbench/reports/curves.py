"""Time and memory against length: the panels of the pictures, with ratios and crossings."""

from __future__ import annotations

import math
from typing import Any

from attnbench.plots.kinds.crossing import Verdict, against_exact, ratio, verdicts
from attnbench.plots.kinds.curves import PEAK, time_of
from attnbench.plots.layout.caption import disturbed, floors_of, repetitions
from attnbench.plots.layout.panels import Panel, Quantity, by_length, failed_at, pages
from attnbench.plots.rows.style import Series

from .book import Book
from .section import Json, facets, rounded, section, table

Ratios = dict[tuple[Any, int], tuple[float, float, float]]  # by series and length
LENGTH = {"title": "sequence length (tokens)", "kind": "length"}
OVERTAKES = (
    ("panel", "text"),
    ("variant", "series"),
    ("faster from", "text"),
    ("crossing (95 % interval)", "text"),
    ("compared with", "series"),
    ("cells", "cells"),
)


def speed(book: Book) -> Json | None:
    cells = book.rows.of("speed")
    found = [p for _, panels in pages("speed", cells) for p in panels]
    if not any(c.ok for c in cells) or not found:
        return None
    floors = floors_of(book.rows)
    shown, overtakes = [], []
    for panel in found:
        series = measured(panel, book)
        told = verdicts(panel, series, book.styles, book.rows) if panel.is_curve else []
        ratios = _ratios(series, book)
        quantity = time_of(panel.cells[0])
        shown.append(_panel(panel, series, quantity, ratios, book) | {"crossings": _marks(told, book)})
        overtakes += [_overtake(panel, v, book) for v in told]
    kept = [c for c in cells if c.status != "skipped"]
    return section(
        "speed",
        "Speed",
        "Median time by sequence length; lower is better. Bars are 95 % intervals. A bar along the "
        "lower edge is the interval of the length at which a variant crosses exact attention.",
        shown,
        table("overtakes", "Where variants overtake exact attention", OVERTAKES, overtakes),
        note=" ".join(filter(None, (repetitions(kept, "bars"), disturbed(kept), floors.note(kept)))),
    )


def memory(book: Book) -> Json | None:
    cells = book.rows.of("memory")
    found = [p for _, panels in pages("memory", cells) for p in panels]
    if not any(c.ok for c in cells) or not found:
        return None
    shown = []
    for panel in found:
        series = measured(panel, book)
        shown.append(_panel(panel, series, PEAK, _peak_ratios(series, book), book))
    return section(
        "memory",
        "Memory",
        "Peak bytes of the counted memory pool by sequence length, inputs and weights included; "
        "lower is better.",
        shown,
        note="Peaks are exact: n = 1, no interval.",
    )


def measured(panel: Panel, book: Book) -> list[Series]:
    """Returns every series that ran, those of a single length too."""
    return book.styles.series([c for c in panel.cells if c.status != "skipped"])


def _panel(
    panel: Panel, series: list[Series], quantity: Quantity, ratios: Ratios, book: Book
) -> Json:
    cell = panel.cells[0]
    return {
        "title": f"{quantity.heading(cell)}: {panel.title}",
        "facets": facets(cell),
        "x": LENGTH,
        "y": {"title": quantity.label, "kind": quantity.kind, "log": True},
        "lines": [line for s in series if (line := _line(s, quantity, ratios, book))["points"]],
        "failed": [
            [book.series(s), length, status] for s in series for length, status in failed_at(s)
        ],
    }


def _line(series: Series, quantity: Quantity, ratios: Ratios, book: Book) -> Json:
    intervals, cells = quantity.intervals(series), by_length(series)
    points, relative = [], []
    for length, middle in quantity.medians(series).items():
        low, high = intervals[length] if quantity.ends else (None, None)
        own = [length, rounded(middle), rounded(low), rounded(high), book.cells(cells[length])]
        points.append(own)
        relative.append([rounded(v) for v in ratios.get((series.key, length), ())])
    return {"series": book.series(series), "points": points, "relative": relative}


def _ratios(series: list[Series], book: Book) -> Ratios:
    out: Ratios = {}
    for own, full in against_exact(series, book.styles):
        for length in own.medians:
            if found := ratio(own, full, length):
                out[own.series.key, length] = found
    return out


def _peak_ratios(series: list[Series], book: Book) -> Ratios:
    out: Ratios = {}
    for own, full in against_exact(series, book.styles):
        peaks, exact = PEAK.medians(own.series), PEAK.medians(full.series)
        for length in peaks.keys() & exact.keys():
            out[own.series.key, length] = (peaks[length] / exact[length],) * 3
    return out


def _overtake(panel: Panel, verdict: Verdict, book: Book) -> list[Any]:
    told = facets(panel.cells[0])
    return [
        f"{panel.title}; {told['scope']}; {told['shape']}",
        book.series(verdict.series),
        verdict.faster_from or "\u2013",
        verdict.crossing.text(),
        book.series(verdict.baseline),
        book.cells([*verdict.series.cells, *verdict.baseline.cells]),
    ]


def _marks(told: list[Verdict], book: Book) -> list[list[Any]]:
    """Returns [series, crossing, low, high] of the crossings within the measured lengths."""
    out = []
    for verdict in told:
        c = verdict.crossing
        if c.has_point:
            ends = (c.low or c.length, c.high or c.length)
            low, high = max(ends[0], c.first), min(ends[1], c.last)
            assert math.isfinite(low) and math.isfinite(high)
            out.append([book.series(verdict.series), *map(rounded, (c.length, low, high))])
    return out
