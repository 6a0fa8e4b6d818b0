"""The panels of the pictures over length (time and memory, with ratios and crossings), over
distance (how far an input moves an output), and over the bytes that decoding keeps."""

from __future__ import annotations

import math
from typing import Any

from attnbench.plots.kinds import reach as picture
from attnbench.plots.kinds.crossing import Verdict, against_exact, ratio, verdicts
from attnbench.plots.kinds.curves import PEAK, time_of
from attnbench.plots.kinds.ranking import at_length
from attnbench.plots.kinds.state import NOTE, found, lines
from attnbench.plots.layout.caption import disturbed, floors_of, repetitions
from attnbench.plots.layout.panels import Panel, Quantity, by_length, failed_at, pages
from attnbench.plots.rows.settings import is_error, key_of, marks_of
from attnbench.plots.rows.style import Series

from .book import Book, Json, facets, hollow, rounded, section, table

Ratios = dict[tuple[Any, int], tuple[float, float, float]]  # by series and length
LENGTH = {"title": "sequence length (tokens)", "kind": "length"}
OVERTAKES = (
    ("panel", "text"),
    ("variant", "series"),
    ("surely faster from", "text"),
    ("medians cross at (95 % interval)", "text"),
    ("compared with", "series"),
    ("cells", "cells"),
)


OVERTAKEN = (
    " The table below tells at which length the median of a variant crosses that of exact attention, and from which measured "
    "length on it is surely faster."
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
        shown.append(_panel(panel, series, quantity, ratios, book))
        overtakes += [_overtake(panel, v, book) for v in told]
    kept = [c for c in cells if c.status != "skipped"]
    return section(
        "speed",
        "Speed",
        "Median time; lower is better. Bars are 95 % intervals." + (OVERTAKEN if overtakes else ""),
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
    told = {"title": f"{quantity.heading(cell)}: {panel.title}", "facets": facets(cell)}
    if not panel.is_curve:
        return told | _list(panel, series, quantity, book)
    return told | {
        "x": LENGTH,
        "y": {"title": quantity.label, "kind": quantity.kind, "log": True},
        "lines": [line for s in series if (line := _line(s, quantity, ratios, book))["points"]],
        "failed": [
            [book.series(s), length, status] for s in series for length, status in failed_at(s)
        ],
    }


def _list(panel: Panel, series: list[Series], quantity: Quantity, book: Book) -> Json:
    """Of one length: a line a variant, best first."""
    lines = []
    for s in series:
        for middle in quantity.medians(s).values():
            low, high = quantity.intervals(s)[panel.lengths[0]] if quantity.ends else (None, None)
            point = [rounded(middle), None, rounded(low), rounded(high), book.cells(s.cells)]
            lines.append({"series": book.series(s), "mark": marks_of(s.cells), "points": [point]})
    return {
        "kind": "scores",
        "context": "; ".join(key_of(panel.cells)),
        "x": {"title": f"{quantity.label} {at_length(panel.cells)}", "kind": quantity.kind, "log": True},
        "y": {"title": "", "kind": "series"},
        "lines": sorted(lines, key=lambda line: line["points"][0][0]),
        "failed": [[book.series(s), None, status] for s in series for _, status in failed_at(s)],
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


def reach(book: Book) -> Json | None:
    panels = [
        _depth_panel(depth, which, told, book)
        for which, told, depths in picture.depths(book.rows)
        for depth in depths
    ]
    if not panels:
        return None
    floor = min(picture.floor_of(c) for c in book.rows.of("reach") if c.ok)
    return section(
        "reach",
        "Reach",
        "Relative change of an output where one input is replaced, by their distance, in a stack of encoder layers with "
        "initial weights: what can arrive, not what a trained model uses.",
        panels,
        note=f"Medians over pairs of positions and over the seeds; changes below {floor:g} are not drawn.",
    )


def _depth_panel(depth: picture.Depth, which: str, told: str, book: Book) -> Json:
    lines = []
    for s in depth.select(book.styles.series(list(depth.cells))):
        points = [(d, v) for d, v in depth.points(s.cells) if math.isfinite(v)]
        if points:
            own = book.cells(s.cells)
            drawn = [[d, rounded(v), None, None, own] for d, v in points]
            lines.append({"series": book.series(s), "points": drawn})
    return {
        "title": f"{depth.title}, {which}",
        "facets": {"mask": which, "shape": told},
        "x": {"title": "distance, positions", "kind": "number", "log": True, "base": 2},
        "y": {"title": "relative change", "kind": "number", "log": True},
        "lines": lines,
    }


def state(book: Book) -> Json | None:
    _, groups, families = found(book.rows, book.styles)
    panels = []
    for group in groups:
        drawn = []
        every = [s for _, own in families.values() for s in own]
        for name, _, found_at in lines(families, group.select(every)):
            first = families[name][1][0]
            for is_hollow in (False, True):
                points = [
                    [size, rounded(score.mean), *ends(score.mean, score.half), book.cells_named(score.cell)]
                    for size, score, _, _ in found_at
                    if score.is_unfinished == is_hollow
                ]
                if points:
                    drawn.append({"series": book.series(first), "name": name, "points": points} | hollow(is_hollow))
        panels.append(
            {
                "title": group.title.replace("\n", ", ").rstrip(", "),
                "facets": {"task": str(group.cells[0].task)},
                "x": {"title": "decode state of one sequence", "kind": "bytes", "log": True},
                "y": {"title": group.label, "kind": "score", "log": is_error(group.metric)},
                "lines": drawn,
                "levels": [[level, level, rounded(v)] for level, v in group.levels.items()],
            }
        )
    if not panels:
        return None
    return section(
        "state",
        "Recall against state",
        "Test score by the bytes that decoding keeps of one sequence: up and to the left is better.",
        panels,
        note=NOTE,
    )


def ends(mean: float, half: float | None) -> list[float | None]:
    return [None, None] if half is None else [rounded(mean - half), rounded(mean + half)]
