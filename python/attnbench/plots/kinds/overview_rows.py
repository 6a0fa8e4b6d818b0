"""The numbers of the overview, a line for each variant, all of the same parameters: its costs
against exact attention, its scores, and which tasks say something."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..layout.panels import Panel, by_length, pages
from ..rows.crossing import Crossing, crossing_length, searches_of
from ..rows.read import RUN, Cell, Params, Rows, ids, run_of
from ..rows.scores import TaskGroup, score, short_titles, task_groups
from ..rows.settings import (
    MEANINGS,
    MODES,
    SCOPES,
    chosen_on_validation,
    is_error,
    marks_of,
    mode_of,
    scope_of,
    shape_of,
    trained_width,
    without_settings,
    written,
)
from ..rows.style import BASELINE, Series, Styles
from ..rows.units import bytes_text, length_text, seconds_text
from .crossing import Verdict, ratio, timing, verdicts
from .curves import PEAK

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
    return _from(verdict.crossing, verdict.marks, f"{ids(verdict.series.cells)} {ids(verdict.baseline.cells)}".strip())


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
    # Curves that meet at a measured length cross a rounding beside it, perhaps outside all lengths.
    upper = int(np.clip(np.searchsorted(lengths, at * (1 + 1e-9), "right"), 1, len(lengths) - 1))
    below, above = lengths[upper - 1 : upper + 1]
    return Answer(
        f"{above:,}", f"{length_text(below)}\u2013{length_text(above)}", above, below, above, marks_of(cells), ids(cells)
    )


@dataclass(frozen=True)
class Task:
    """A column of scores."""

    title: str
    group: TaskGroup
    where: str  # the score was measured: `64 tokens, causal`
    shape: str  # of the trained models' attention: `2 heads of 32`
    warning: str  # why its scores say little; empty where they do

    @property
    def is_bar(self) -> bool:
        return not is_error(self.group.metric)


def tasks_of(groups: list[TaskGroup], styles: Styles) -> Iterator[Task]:
    """Tasks whose scores say something come before those whose scores do not."""
    titles = dict(zip(map(id, groups), short_titles(groups), strict=True))
    found = [Task(titles[id(g)], g, _measured_at(g), _heads(g), warning(g, styles)) for g in groups]
    yield from sorted(found, key=lambda task: bool(task.warning))


def _measured_at(group: TaskGroup) -> str:
    lengths = sorted({c.length for c in group.cells if c.length})
    span = "\u2013".join(length_text(n) for n in dict.fromkeys((lengths[0], lengths[-1]))) if lengths else ""
    causal = any(c.axes.get("causal") for c in group.cells)
    return ", ".join(filter(None, [f"{span} tokens" if span else "", "causal" if causal else ""]))


def _heads(group: TaskGroup) -> str:
    """`2 heads of 32`; empty where the rows do not say, or say several."""
    told = {(c.training.get("heads"), trained_width(c)) for c in group.cells}
    heads, width = told.pop()
    if told or not (isinstance(heads, int) and isinstance(width, int) and heads > 0):
        return ""
    return f"{heads} head{'s' if heads > 1 else ''} of {width // heads}"


def warning(group: TaskGroup, styles: Styles) -> str:
    """Why scores of a task compare nothing: a shortcut solves it, or exact attention has not learned it."""
    if group.control:
        return f"{group.control} solves it"
    exact = styles.baseline(styles.series(list(group.cells)))
    found = score(exact.cells) if exact else None
    if found is None:
        return f"no score of {BASELINE}"
    if found.is_unfinished:
        return f"the training of {BASELINE} was cut off"
    best = group.best_shortcut()
    sign = -1 if is_error(group.metric) else 1
    if best and not sign * (found.mean - best[1]) > (found.half or 0.0):
        return f"{BASELINE} has no lift"
    return ""


def score_of(series: Series, group: TaskGroup) -> Answer:
    own = [c for c in group.cells if c.variant == series.variant and without_settings(c.params) == series.params]
    first = own[0].params if own else ()  # of several settings of training the first
    cells = tuple(c for c in own if c.params == first)
    found = score(cells)
    if found is None:
        ended = next(iter(cells), None)
        return EMPTY if ended is None else Answer(ended.status, ended.reason or "", cell=ended.id)
    span = "" if found.half is None else f"\u00b1{found.half:.2g}" if is_error(group.metric) else f"\u00b1{found.half:.3f}"
    ends = (None, None) if found.half is None else (found.mean - found.half, found.mean + found.half)
    return Answer(written(found.mean, group.metric), span, found.mean, *ends, marks_of(cells), found.cell)


@dataclass(frozen=True)
class Line:
    """A variant with one set of parameters."""

    series: Series
    params: str  # `window 16`
    is_baseline: bool
    time_from: Answer
    time: Answer
    memory_from: Answer
    memory: Answer
    scores: tuple[Answer, ...]

    @property
    def answers(self) -> dict[str, Answer]:
        return {
            "less time from": self.time_from,
            "time": self.time,
            "less memory from": self.memory_from,
            "memory": self.memory,
        }


@dataclass(frozen=True)
class Overview:
    """The whole table. `time_at` and `memory_at` are the lengths of its costs, 0 where there are none."""

    lines: tuple[Line, ...]
    tasks: tuple[Task, ...]
    time: Panel | None
    memory: Panel | None
    time_at: int
    memory_at: int
    is_searched: bool  # crossings are those of a search

    @property
    def baseline(self) -> str:
        """Names what all lines are compared with: `full (kernel tiled)`."""
        found = next((line for line in self.lines if line.is_baseline), None)
        return BASELINE if found is None or not found.params else f"{BASELINE} ({found.params})"

    @property
    def marks(self) -> dict[str, str]:
        """Returns the marks that the table holds, and what they mean."""
        held = {mark for line in self.lines for a in (*line.answers.values(), *line.scores) for mark in a.marks}
        return {mark: words for mark, words in MEANINGS.items() if mark in held}


def overview_of(rows: Rows, styles: Styles) -> Overview | None:
    """Returns None where rows hold neither times nor memory beside another measure of two variants."""
    time = telling_panel("speed", rows)
    memory = telling_panel("memory", rows, time)
    groups = task_groups(chosen_on_validation(rows.of("accuracy")))
    groups = [g for g in groups if any(c.ok for c in g.cells)]
    time_at, memory_at = _lengths(time, memory, styles)
    keys = _keys(styles, time, memory, time_at, memory_at, groups)
    parts = [part for part in (time, memory, groups) if part]
    if len(parts) < 2 or len(keys) < 2:
        return None
    tasks = tuple(tasks_of(groups, styles))
    timed, searched = times_of(time, time_at, styles, rows) if time else ({}, False)
    held = peaks_of(memory, memory_at, styles, rows) if memory else {}
    lines = []
    for series in keys:
        from_time, at_time = timed.get(series.key, (EMPTY, EMPTY))
        from_memory, at_memory = held.get(series.key, (EMPTY, EMPTY))
        scores = tuple(score_of(series, task.group) for task in tasks)
        is_baseline = series.variant == BASELINE
        told = _params_text(series, styles)
        lines.append(Line(series, told, is_baseline, from_time, at_time, from_memory, at_memory, scores))
    lines.sort(key=lambda line: not line.is_baseline)
    return Overview(tuple(lines), tasks, time, memory, time_at, memory_at, searched)


def telling_panel(measure: str, rows: Rows, beside: Panel | None = None) -> Panel | None:
    """Returns the panel with the most curves: that of the conditions and the shape of `beside` if there is
    one, else bare attention before a layer, forward before others, then not causal."""
    other = _conditions(beside) if beside else None

    def rank(panel: Panel) -> tuple[Any, ...]:
        cell = panel.cells[0]
        scope, mode = scope_of(cell), mode_of(cell)
        return (
            not panel.is_curve,
            other is not None and _conditions(panel) != other,
            scope in SCOPES and SCOPES.index(scope),
            mode in MODES and MODES.index(mode),
            bool(cell.axes.get("causal")),
            -len(panel.lengths),
        )

    panels = [p for _, page in pages(measure, rows.of(measure)) for p in page if any(c.ok for c in p.cells)]
    return min(panels, key=rank, default=None)


def _conditions(panel: Panel) -> tuple[Any, ...]:
    cell = panel.cells[0]
    return scope_of(cell), mode_of(cell), bool(cell.axes.get("causal")), shape_of(cell)


def _baseline_lengths(panel: Panel | None, styles: Styles) -> set[int]:
    """The lengths at which the baseline has a number; without a baseline those of all."""
    if panel is None:
        return set()
    series = styles.series(list(panel.cells))
    full = styles.baseline(series)
    return set(by_length(full)) if full else {n for s in series for n in by_length(s)}


def _lengths(time: Panel | None, memory: Panel | None, styles: Styles) -> tuple[int, int]:
    """The longest length that both measures have, else the longest of each."""
    times, peaks = _baseline_lengths(time, styles), _baseline_lengths(memory, styles)
    both = times & peaks
    alike = bool(time and memory and both) and _conditions(time) == _conditions(memory)
    return (max(both), max(both)) if alike else (max(times, default=0), max(peaks, default=0))


def _keys(
    styles: Styles,
    time: Panel | None,
    memory: Panel | None,
    time_at: int,
    memory_at: int,
    groups: list[TaskGroup],
) -> list[Series]:
    """Returns a series for each variant and run: the parameters that answer most of the three questions, then
    those with scores on most tasks, of equals the default ones. Exact attention is there with its default parameters alone."""
    cells = [c for panel in (time, memory) if panel for c in panel.cells]
    cells += [_plain(c) for g in groups for c in g.cells]
    found: dict[tuple[str, Any], list[Series]] = {}
    for series in styles.series(cells):
        found.setdefault((series.variant, run_of(series.params)), []).append(series)

    def told(series: Series) -> tuple[int, int]:
        at = {("speed", time_at), ("memory", memory_at)}
        costs = {(c.measure, c.length) for c in series.cells if c.ok}
        scored = {(c.task, c.task_params) for c in series.cells if c.ok and c.measure == "accuracy"}
        return len(at & costs) + bool(scored), len(scored)

    chosen = [own[0] if variant == BASELINE else max(own, key=told) for (variant, _), own in found.items()]
    names = [series.variant for series in chosen]
    return [replace(s, look=styles.look(s.variant)) if names.count(s.variant) == 1 else s for s in chosen]


def _plain(cell: Cell) -> Cell:
    return replace(cell, params=without_settings(cell.params))


def _params_text(series: Series, styles: Styles) -> str:
    """The numbers among its parameters, and what else is not as by default; of exact attention all."""
    usual = dict(styles.defaults(series.variant))
    told = []
    for name, value in series.params:
        is_number = value.replace(".", "", 1).isdigit()
        if name != RUN and (is_number or series.variant == BASELINE or usual.get(name) != value):
            told.append(f"{name.replace('_', ' ')} {value}")
    run = run_of(series.params)
    return ", ".join([*told, *([f"({run})"] if run else [])])
