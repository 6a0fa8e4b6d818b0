"""The numbers of the board: ratios of times to exact attention of the same run, scores over seeds, bytes. No time of one
machine stands beside that of another: across machines there are ratios alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from attnbench.plots.rows.learned import best_of_nothing
from attnbench.plots.rows.read import FAILURES, OF_RUN, RUN, Cell, Params
from attnbench.plots.rows.scores import score
from attnbench.plots.rows.settings import (
    chosen_on_validation,
    contract,
    is_error,
    marks_of,
    mode_of,
    scope_of,
    scope_text,
    shape_text,
)
from attnbench.pooling.figures import Figure
from attnbench.pooling.ratios import LogTime, difference, log_times

from .runs import LONG, SHORT, Machine, Place, Run, runs_of
from .safe import plain
from .submissions import Submission

SPEED, SCORES, MEMORY = "speed", "scores", "memory"
MOST_LOG = 700.0  # of an end of an interval: more is no number
LEFT_OUT = ("seed", "repetitions")  # axes in which a cell and its reference may differ


@dataclass(frozen=True)
class Number:
    """One line of a table of the board. `low` and `high` are the ends of a 95 % interval, None where there is none; `value`
    is None where the measurement failed, and `marks` then says how."""

    measure: str
    place: Place
    submission: Submission
    machine: Machine
    member: str  # the rows file in the archive
    variant: str
    params: Params
    family: str
    mode: str
    causal: bool
    length: int | None
    task: str
    setting: str
    value: float | None
    low: float | None
    high: float | None
    marks: str
    cells: tuple[str, ...]  # ids, those of the reference last
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, Params]:
        return self.variant, self.params


def numbers_of(submission: Submission) -> list[Number]:
    """Times and bytes are compared within a run; the seeds and the choices of a training may be spread over several."""
    runs = list(runs_of(submission))
    trained: dict[tuple[Place, Machine, str], Run] = {}
    for run in runs:
        key = run.place, run.machine, run.member
        trained[key] = replace(trained[key], cells=[*trained[key].cells, *run.cells]) if key in trained else run
    found = [n for run in runs for n in (*_speed(run), *_memory(run))]
    return [*found, *(n for run in trained.values() for n in _scores(run))]


def _number(run: Run, measure: str, cell: Cell, value: float | None, marks: str, cells: Iterable[Cell], **others: Any) -> Number:
    params = tuple((plain(k, SHORT), plain(v, LONG)) for k, v in cell.params if k != RUN)
    name = plain(cell.variant)
    task = _words(cell.task or "", cell.task_params)
    setting = [task] if measure == SCORES else [scope_text(scope_of(cell)), shape_text(cell)]
    told = {"low": None, "high": None, **others}
    return Number(
        measure,
        run.place,
        run.submission,
        run.machine,
        run.member,
        name,
        params,
        "stacks" if "+" in name else run.families.get(name, "other") or "other",
        "" if measure == SCORES else plain(mode_of(cell)),
        contract(cell) == "causal",
        cell.length,
        plain(cell.task or ""),
        plain(", ".join(filter(None, setting)), LONG),
        value,
        marks=marks,
        cells=tuple(dict.fromkeys(plain(c.id.partition(OF_RUN)[0]) for c in cells)),
        **told,
    )


def _words(name: str, params: Params) -> str:
    return f"{name}[{','.join(f'{k}={v}' for k, v in params)}]" if params else name


def _place_in_run(cell: Cell) -> str:
    axes = {k: v for k, v in cell.axes.items() if k not in LEFT_OUT}
    return json.dumps(axes, sort_keys=True)


def _references(run: Run, measure: str) -> dict[str, Cell]:
    return {_place_in_run(c): c for c in run.of(measure) if run.is_exact(c) and c.ok}


def _speed(run: Run) -> Iterator[Number]:
    """Ratios as `attnbench pool` has them. What has no exact attention at its shape in its run has no ratio, and stands on the
    page of its archive alone."""
    references = _references(run, "speed")
    known = [c for c in run.of("speed") if c.ok and all(time > 0 for time in (*c.times(), c.metric("time_s.median") or 0))]
    times = dict(zip([c.id for c in known], log_times(known), strict=True))
    for cell in run.of("speed"):
        reference = references.get(_place_in_run(cell))
        if reference is None or run.is_exact(cell):
            continue
        if cell.status in FAILURES:
            yield _number(run, SPEED, cell, None, cell.status, [cell, reference])
        elif cell.id in times and reference.id in times:
            value, low, high = ratio(times[cell.id], times[reference.id])
            yield _number(run, SPEED, cell, value, marks_of([cell, reference]), [cell, reference], low=low, high=high)


def ratio(own: LogTime, reference: LogTime) -> tuple[float, float | None, float | None]:
    """Returns the ratio of two times with its 95 % interval, or without, where one was measured in a single visit."""
    found = Figure(0, *difference(own, reference))
    low, high = (None if math.isnan(end) else math.exp(min(end, MOST_LOG)) for end in found.interval)
    return math.exp(found.value), low, high


def _scores(run: Run) -> Iterator[Number]:
    groups: dict[str, list[Cell]] = {}
    for cell in chosen_on_validation(run.of("accuracy")):
        axes = {k: v for k, v in cell.axes.items() if k not in (*LEFT_OUT, "threads")}
        key = json.dumps([cell.variant, cell.params, cell.task, cell.task_params, axes], sort_keys=True)
        groups.setdefault(key, []).append(cell)
    for cells in groups.values():
        found, first = score(cells), cells[0]
        if found is None:
            statuses = " ".join(sorted({c.status for c in cells if c.status in FAILURES}))
            if statuses:
                yield _number(run, SCORES, first, None, statuses, cells)
            continue
        scored = next(c for c in cells if c.ok)
        ends = (None, None) if found.half is None else (found.mean - found.half, found.mean + found.half)
        more = {
            "metric": plain(scored.scored_by),
            "less": is_error(scored.scored_by),
            "floor": best_of_nothing(scored),
            "seeds": len(found.seeds),
            "unfinished": found.is_unfinished,
            "tests": {c.id.partition(OF_RUN)[0]: float(c.metric("test") or 0.0) for c in cells if c.ok},
        }
        yield _number(run, SCORES, first, found.mean, marks_of(cells), cells, low=ends[0], high=ends[1], more=more)


def _memory(run: Run) -> Iterator[Number]:
    references = _references(run, "memory")
    for cell in run.of("memory"):
        if cell.status in FAILURES:
            yield _number(run, MEMORY, cell, None, cell.status, [cell])
            continue
        peak, reference = cell.metric("peak_bytes"), references.get(_place_in_run(cell))
        whole = reference.metric("peak_bytes") if reference else None
        more = {"state": cell.metric("state_bytes"), "ratio": peak / whole if peak is not None and whole else None}
        yield _number(run, MEMORY, cell, peak, marks_of([cell]), [cell], more=more)
