"""Times against those of exact attention: as a multiple over length, and the length from which on
each variant is faster, one list for each panel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..layout.axes import beside, name_lines, span, text_width
from ..layout.caption import MEDIANS, caption, disturbed, floors_of, marks_key
from ..layout.page import Page, Picture
from ..layout.panels import Panel, Quantity, Value, by_length, drawn_series, length_axis, pages, scope_words
from ..layout.sheets import facets
from ..rows.crossing import (
    SEED,
    Crossing,
    Floor,
    Interval,
    Samples,
    central,
    draws,
    faster_from,
    find_crossing,
    searched_from,
    searches_of,
    sure,
)
from ..rows.read import Cell, Rows, ids, run_of
from ..rows.settings import marks_of, shape_text
from ..rows.style import GREY, Series, Styles
from .curves import TIME, Words, draw_pages


@dataclass(frozen=True)
class Timing:
    """The times of one series over length, in one panel."""

    series: Series
    medians: dict[int, float]
    samples: Samples
    intervals: dict[int, Interval]


def timing(series: Series) -> Timing:
    samples = {n: [v for c in own for v in c.visited()] for n, own in by_length(series).items()}
    return Timing(series, TIME.medians(series), samples, TIME.intervals(series))


def against_exact(series: list[Series], styles: Styles) -> Iterator[tuple[Timing, Timing]]:
    """Pairs each series with exact attention of the same run."""
    timed = {s.key: timing(s) for s in series}
    for s in series:
        full = styles.baseline(series, run_of(s.params))
        if full is not None:
            yield timed[s.key], timed[full.key]


@dataclass(frozen=True)
class Verdict:
    """A series compared with exact attention."""

    series: Series
    faster_from: str  # as the tables say
    crossing: Crossing
    baseline: Series
    is_searched: bool = False  # `attnbench run --find crossing` found it

    @property
    def marks(self) -> str:
        """Returns the marks of all times behind it."""
        return marks_of(c for s in (self.series, self.baseline) for c in s.cells if c.ok)


def verdicts(
    panel: Panel, series: list[Series], styles: Styles, rows: Rows
) -> list[Verdict]:
    """Returns a verdict on each series except exact attention, which cannot cross itself. Where a
    search compared the two, the verdict is the search's."""
    out = []
    shares, searches = floors_of(rows).shares(panel.cells), searches_of(rows)
    for own, full in against_exact(series, styles):
        if own.series.variant == full.series.variant:
            continue
        searched = searches.crossing(own.series.cells, full.series.cells)
        if searched is not None:
            said = searched_from(searched)
            out.append(Verdict(own.series, said, searched, full.series, is_searched=True))
            continue
        found = find_crossing(own.samples, full.samples, (own.medians, full.medians))
        if found is not None:
            floor = Floor(shares, own.medians, full.medians)
            said = faster_from(panel.lengths, own.intervals, full.intervals, floor)
            out.append(Verdict(own.series, said, found, full.series))
    return out


def ratio(own: Timing, full: Timing, length: int) -> tuple[float, float, float] | None:
    """Returns the time as a multiple of exact attention's, and its 95 % interval. The interval is
    the ratio itself where there are too few repetitions, and for exact attention."""
    if length not in own.medians or length not in full.medians:
        return None
    point = own.medians[length] / full.medians[length]
    pair = own.samples[length], full.samples[length]
    if own is full or not all(sure(samples) for samples in pair):
        return point, point, point
    rng = np.random.default_rng(SEED)
    low, high = central(draws(pair[0], rng) / draws(pair[1], rng))
    return point, min(low, point), max(high, point)


LABEL = "time, exact attention = \u00d71"
NOTE = (
    "Median time over that of exact attention at the same length; "
    f"bands are 95 % intervals of the ratio. {MEDIANS}"
)
Ratios = dict[str, tuple[float, float, float]]  # with its interval, by cell


def relative(rows: Rows, styles: Styles) -> list[Picture]:
    out = []
    for name, panels in pages("speed", rows.of("speed")):
        kept = [p for p in panels if p.is_curve and styles.baseline(p.select(drawn_series([p], styles)))]
        found: Ratios = {}
        for panel in kept:
            found |= ratios(panel, styles)
        if not any(value != 1 for value, _, _ in found.values()):
            continue
        quantity = _quantity(found, _behind(kept, styles))
        title = f"{quantity.title}: {scope_words(kept)}"
        words = Words(title, "below \u00d71 is faster than exact attention", lambda _: NOTE)
        stem = name.replace("speed-", "speed-relative-", 1)
        out += draw_pages(rows, styles, stem, _closed_up(kept), quantity, words)
    return out


def _closed_up(panels: list[Panel]) -> list[Panel]:
    """Closes the rows and columns that are empty because a panel was left out."""
    rows = sorted({p.row for p in panels})
    columns = sorted({p.column for p in panels})
    return [replace(p, row=rows.index(p.row), column=columns.index(p.column)) for p in panels]


def ratios(panel: Panel, styles: Styles) -> Ratios:
    out: Ratios = {}
    for own, full in against_exact(panel.select(drawn_series([panel], styles)), styles):
        for cell in own.series.cells:
            if cell.ok and cell.length:
                found = ratio(own, full, cell.length)
                if found:
                    out[cell.id] = found
    return out


def _behind(panels: list[Panel], styles: Styles) -> dict[str, str]:
    """Returns the marks of each ratio, which are those of both its times, by cell."""
    out: dict[str, str] = {}
    for panel in panels:
        for own, full in against_exact(panel.select(drawn_series([panel], styles)), styles):
            exact = by_length(full.series)
            out |= {c.id: marks_of([c, *exact.get(c.length or 0, [])]) for c in own.series.cells if c.ok}
    return out


def _quantity(ratios: Ratios, marks: dict[str, str]) -> Quantity:
    def part(index: int) -> Value:
        return lambda cell: ratios[cell.id][index] if cell.id in ratios else None

    def columns(cell: Cell) -> dict[str, Any]:
        names = ("time_over_exact", "ci_low", "ci_high")
        return dict(zip(names, ratios.get(cell.id, (None, None, None))))

    title = "Time relative to exact attention"
    return Quantity("ratio", title, LABEL, part(0), (part(1), part(2)), columns, lambda cell: marks.get(cell.id, ""))


LINE, HEAD = 0.18, 1.3  # inches of a variant, and lines for the columns' headings
SIZE = 8.0
RULE, SURE = 8, 145  # points from the panel's edge to the two columns of text
RIGHT = 3.15  # inches for them
Found = list[tuple[Panel, list[Verdict]]]


def crossings(rows: Rows, styles: Styles) -> list[Picture]:
    """Draws a page for each page of times. Many variants get a page for each panel instead."""
    out = []
    for name, panels in pages("speed", rows.of("speed")):
        shown = drawn_series(panels, styles)
        curves = [p for p in panels if p.is_curve]
        found = [(p, verdicts(p, p.select(shown), styles, rows)) for p in curves]
        found = [(panel, told) for panel, told in found if told]
        stem = name.replace("speed-", "crossing-", 1)
        if len(facets(shown, styles)) == 1:
            out += [_picture(rows, styles, stem, found)] if found else []
        else:
            out += [_picture(rows, styles, f"{stem}-{f[0].slug}", [f]) for f in found]
    return out


def _picture(rows: Rows, styles: Styles, name: str, found: Found) -> Picture:
    cells = [c for p, _ in found for c in p.cells]
    baseline = baseline_name(found, styles)
    words = caption(
        rows,
        [],
        f"Medians cross at the points (bars: 95 % intervals), later the whole interval of a time lies below that of {baseline}.",
        f"Surely faster from: as in the tables, the first measured length from which on "
        f"the whole 95 % interval lies below that of {baseline}. Crossings are interpolated in log-log "
        "between measured lengths, unless a search found them. An "
        "arrow: not within the measured lengths; no point: the interval holds all of them. "
        "\u2013: one of the two has no time at the longest length.",
        searches_of(rows).note,
        f"Shape: {shape_text(cells[0])}.",
        disturbed(cells),
        floors_of(rows).note(cells),
    )
    widest = max(text_width(v.series.label, SIZE) for _, told in found for v in told) / 72
    page = Page(
        f"Where variants overtake exact attention: {scope_words([found[0][0]])}",
        "further left is better",
        words,
        [],
        [LINE * (len(told) + HEAD) for _, told in found],
        1,
        width=max(7.2, 5.6 + widest),
        gaps=[0.32] + [0.74] * (len(found) - 1),
        left=0.3 + widest,
        right=RIGHT,
        key=marks_key(cells, "".join(v.marks for _, told in found for v in told)),
    )
    table: list[dict[str, Any]] = []
    for row, (panel, told) in enumerate(found):
        axes = page.panel(row, 0)
        axes.set_title(panel.title)
        _draw(axes, panel, told, baseline)
        table += [_columns(panel, v) for v in told]
    return Picture(name, page.figure, pd.DataFrame(table), words)


def baseline_name(found: Found, styles: Styles) -> str:
    """Names what the lines are compared with. Among several runs, each variant has its own run's
    baseline."""
    series = styles.series([c for p, _ in found for c in p.drawn])
    full = styles.baseline(series)
    runs = {run_of(s.params) for s in series}
    return "full" if full is None or len(runs) > 1 else full.label


def _draw(axes: Axes, panel: Panel, told: list[Verdict], baseline: str) -> None:
    length_axis(axes, panel.lengths)
    axes.set_ylim(len(told) - 0.4, -HEAD - 0.4)
    name_lines(axes, [v.series.label for v in told], fontsize=SIZE)
    _write(axes, -HEAD + 0.35, RULE, f"median crosses {baseline}'s", GREY)
    _write(axes, -HEAD + 0.35, SURE, "surely faster from", GREY)
    for y, verdict in enumerate(told):
        ink = verdict.series.look.ink
        _write(axes, y, RULE, verdict.crossing.text() + verdict.marks, ink)
        _write(axes, y, SURE, verdict.faster_from + verdict.marks if verdict.faster_from else "\u2013", ink)
        if not verdict.crossing.unclear:
            _mark(axes, y, verdict)


def _write(axes: Axes, y: float, points: float, text: str, color: Any) -> None:
    style = {"fontsize": SIZE, "color": color, "annotation_clip": False}
    beside(axes, text, (1, y), (points, 0), xycoords=axes.get_yaxis_transform(), **style)


def _mark(axes: Axes, y: float, verdict: Verdict) -> None:
    look, crossing = verdict.series.look, verdict.crossing
    first, last = axes.get_xlim()
    ends = [e for e in (crossing.low, crossing.high) if e is not None]
    reach = [min(max(e, first), last) for e in (*ends, crossing.length)]
    span(axes, (min(reach), max(reach)), y, look, linewidth=4, alpha=0.4)
    if not crossing.is_found:
        return
    at = reach[-1]
    marker = look.marker if crossing.within else "<" if at == first else ">"
    style = {**look.line(), "marker": marker, "linestyle": "none"}
    axes.plot([at], [y], **style, clip_on=False)


def _columns(panel: Panel, verdict: Verdict) -> dict[str, Any]:
    return {
        "panel": panel.title,
        **verdict.series.columns,
        "faster_than_full_from": verdict.faster_from,
        **_numbers(verdict.crossing),
        "marks": verdict.marks,
        "cell": ids(verdict.series.cells),
        "baseline_cell": ids(verdict.baseline.cells),
    }


def _numbers(c: Crossing) -> dict[str, Any]:
    def finite(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    return {
        "crossing": finite(c.length) if c.has_point else None,
        "ci_low": finite(c.low),
        "ci_high": finite(c.high),
        "text": c.text(),
        "measured_from": c.first,
        "measured_to": c.last,
    }
