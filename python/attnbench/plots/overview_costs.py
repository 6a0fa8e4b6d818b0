"""The costs of the overview: from which length on a variant takes less than exact attention, and what it
takes at one length."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .answer_marks import marks_of
from .crossing import Crossing, crossing_length
from .memory import PEAK
from .panels import Panel
from .quantity import by_length
from .rows import Params, Rows, ids
from .runs import run_of
from .searched import searches_of
from .style import BASELINE, Series, Styles
from .timings import Verdict, ratio, timing, verdicts
from .units import bytes_text, length_text, seconds_text

NONE = "\u2013"  # where nothing was measured


@dataclass(frozen=True)
class Answer:
    """One number of the table as it is read: `text`, its interval or reason in `detail`, its marks."""

    text: str
    detail: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    marks: str = ""
    cell: str = ""  # ids, see rows.ids
    full: str = ""  # the amount of which `value` is a share

    @property
    def marked(self) -> str:
        return self.text + self.marks


EMPTY = Answer(NONE)


Answers = dict[tuple[str, Params], tuple[Answer, Answer]]  # from which length on, and at the longest


def times_of(panel: Panel, at: int, styles: Styles, rows: Rows) -> tuple[Answers, bool]:
    """Returns whether the crossings are those of a search, too."""
    series = styles.series(list(panel.cells))
    found = {v.series.key: v for v in verdicts(panel, series, styles, rows)}
    out: Answers = {}
    for s in series:
        full = styles.baseline(series, run_of(s.params))
        verdict = found.get(s.key)
        out[s.key] = (time_from(verdict) if verdict else EMPTY), _time_at(s, full, at)
    return out, any(v.is_searched for v in found.values())


def time_from(verdict: Verdict) -> Answer:
    """The verdict of the crossing pictures in a few words."""
    cells = [c for s in (verdict.series, verdict.baseline) for c in s.cells if c.ok]
    return _from(verdict.crossing, marks_of(cells), f"{ids(verdict.series.cells)} {ids(verdict.baseline.cells)}".strip())


def _from(c: Crossing, marks: str, cells: str) -> Answer:
    first, last = length_text(c.first), length_text(c.last)
    low, high = (_end(v, c) for v in (c.low, c.high))
    span = f"{low}\u2013{high}" if c.low is not None and c.low != c.high else ""
    if c.unclear:
        return Answer("undecided", f"{first}\u2013{last}", marks=marks, cell=cells)
    if c.length == math.inf:
        return Answer(f"never to {last}", span, marks=marks, cell=cells)
    if c.length == -math.inf:
        if c.high is None or c.high == -math.inf:
            return Answer("every length", f"{first}\u2013{last}", marks=marks, cell=cells)
        return Answer(f"before {first}", span, None, None, _finite(c.high), marks, cells)
    value = c.length if c.has_point else None
    text = f"{c.length:,.0f}" if c.has_point else f"at most {c.high:,.0f}"
    return Answer(text, span, value, _finite(c.low), _finite(c.high), marks, cells)


def _end(value: float | None, c: Crossing) -> str:
    if value is None:
        return ""
    if math.isinf(value):
        return f">{length_text(c.last)}" if value > 0 else f"<{length_text(c.first)}"
    return f"{value:,.0f}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _time_at(series: Series, full: Series | None, at: int) -> Answer:
    cells = by_length(series).get(at, [])
    if not cells:
        return _why(series, at)
    own = timing(series)
    amount = seconds_text(own.medians[at])
    if full is None:
        return Answer(amount, "", None, marks=marks_of(cells), cell=ids(cells), full=amount)
    if series.key == full.key:
        return Answer(amount, "", 1.0, 1.0, 1.0, marks_of(cells), ids(cells), amount)
    exact = by_length(full).get(at, [])
    found = ratio(own, timing(full), at)
    if found is None:
        return Answer(amount, "", None, marks=marks_of(cells), cell=ids(cells), full=amount)
    point, low, high = found
    span = f"{low:.3g}\u2013{high:.3g}" if low < high else ""
    both = [*cells, *exact]
    return Answer(f"{point:.3g}", span, point, low, high, marks_of(both), ids(both), amount)


def _why(series: Series, at: int) -> Answer:
    """What stands where a series has no number: how its cell ended, and why."""
    missing = next((c for c in series.cells if c.length == at and not c.ok), None)
    return Answer(missing.status, missing.reason or "", cell=missing.id) if missing else EMPTY


def peaks_of(panel: Panel, at: int, styles: Styles, rows: Rows) -> Answers:
    searches = searches_of(rows)
    series = styles.series(list(panel.cells))
    out: Answers = {}
    for s in series:
        full = styles.baseline(series, run_of(s.params))
        cells = by_length(s).get(at, [])
        there = _why(s, at)
        if cells:
            value = PEAK.medians(s)[at]
            there = Answer(bytes_text(value), "", value, value, value, marks_of(cells), ids(cells))
        exact = full is None or s.variant == BASELINE
        searched = None if exact else searches.crossing(s.cells, full.cells)
        if searched:
            cells = [c for one in (s, full) for c in one.cells if c.ok]
            out[s.key] = _from(searched, marks_of(cells), ids(cells)), there
        else:
            out[s.key] = (EMPTY if exact else _memory_from(s, full)), there
    return out


def _memory_from(series: Series, full: Series) -> Answer:
    """Peaks are exact: the crossing lies between two measured lengths, which are the interval."""
    own, exact = PEAK.medians(series), PEAK.medians(full)
    lengths = sorted(own.keys() & exact.keys())
    if len(lengths) < 2:
        return EMPTY
    curves = [np.array([m[n] for n in lengths]) for m in (own, exact)]
    at = float(crossing_length(lengths, *curves))
    cells = [c for s in (series, full) for c in s.cells if c.ok]
    first, last = lengths[0], lengths[-1]
    if math.isinf(at):
        return _from(Crossing(at, at, at, first, last), marks_of(cells), ids(cells))
    below = max(n for n in lengths if n <= at)
    above = min(n for n in lengths if n > at)
    return Answer(
        f"{above:,}", f"{length_text(below)}\u2013{length_text(above)}", above, below, above, marks_of(cells), ids(cells)
    )
