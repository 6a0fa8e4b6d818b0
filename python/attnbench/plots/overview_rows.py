"""The table of the overview: a line for each variant, with all of its numbers of the same parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .answer_marks import MEANINGS
from .context import MODES, SCOPES, mode_of, scope_of, shape_of
from .overview_costs import EMPTY, Answer, peaks_of, times_of
from .overview_scores import Task, score_of, tasks_of
from .panels import Panel, pages
from .quantity import by_length
from .rows import Cell, Rows
from .runs import RUN, run_of
from .style import BASELINE, Series, Styles
from .tasks import TaskGroup, task_groups
from .trained import without_settings
from .tuned import chosen_on_validation


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
