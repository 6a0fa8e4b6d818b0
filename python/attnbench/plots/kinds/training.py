"""Validation score while a model trains: against steps, and against seconds and FLOPs of training.
One panel for each task, one line for each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from ..layout.axes import LEVELS, End, level_entries, log_ticks, make_room, name_ends, ring, score_axis
from ..layout.page import Picture
from ..layout.panels import grey_lines
from ..layout.sheets import Place
from ..rows.learning import curve_of
from ..rows.read import FAILURES, Cell, Rows
from ..rows.scores import TaskGroup, task_groups
from ..rows.settings import chosen_on_validation, marks_of
from ..rows.settings import name as name_of
from ..rows.style import Series, Styles
from ..rows.units import seconds_text, thousands_text
from .accuracy import Line, Points, TaskPage, cell_lines, draw_over_numbers, task_pages

STEPS = "steps of training"
LEVELS_NOTE = "Chance and the best shortcut were scored on the test split."
LEARNING_NOTE = (
    "Lines are means over the seeds, bands run from the lowest seed to the highest. "
    "Scores are those on the validation split while training went on. A training that ended before that of another seed, at its target or out of "
    "patience, keeps its last score. " + LEVELS_NOTE
)
Spread = list[tuple[float, float, float, float]]  # step, mean, least and most of the seeds


class Validated(TaskGroup):
    """A task whose axis is the validation score."""

    @property
    def label(self) -> str:
        return super().label.replace("test", "validation", 1)

    @property
    def is_course(self) -> bool:
        return True


def while_training(rows: Rows) -> list[TaskGroup]:
    """Returns the tasks with scores at several steps. A variant with a score at one step, because it
    learned within it, is a single point."""
    cells = [c for c in chosen_on_validation(rows.trainings()) if c.ok and curve_of(c)]
    return [Validated(g.title, g.cells) for g in task_groups(cells) if any(len(curve_of(c)) > 1 for c in g.cells)]


def learning(rows: Rows, styles: Styles) -> list[Picture]:
    groups = while_training(rows)
    kind = TaskPage(
        "accuracy-learning",
        "Learning curves",
        "validation score while training goes on",
        ("a line that rises early learns fast", "one that falls early"),
        level_entries(g.levels for g in groups),
        draw=_draw_learning,
        table=_learning_table,
    )
    return task_pages(kind, rows, styles, groups, lambda *_: [LEARNING_NOTE])


def spread(cells: Sequence[Cell]) -> Spread:
    """Returns points from the first step that every seed has."""
    curves = [sorted(own.items()) for c in cells if c.ok and (own := curve_of(c))]
    first = max((curve[0][0] for curve in curves), default=0)
    found = []
    for step in sorted({s for curve in curves for s, _ in curve if s >= first}):
        held = [[v for s, v in curve if s <= step][-1] for curve in curves]
        found.append((float(step), float(np.mean(held)), min(held), max(held)))
    return found


def _means(cells: Sequence[Cell]) -> Points:
    return [(step, mean, 0.0) for step, mean, _, _ in spread(cells)]


def _draw_learning(axes: Axes, place: Place[TaskGroup]) -> None:
    draw_over_numbers(axes, place, _means, [*place.own, *place.others], STEPS)
    for s in place.own:
        if own := spread(s.cells):
            at, mean, low, high = zip(*own, strict=True)
            axes.fill_between(at, low, high, color=s.look.color, alpha=0.18, linewidth=0, zorder=2)
            if len(own) == 1:
                ring(axes, s.look, (at[0], mean[0]))
    axes.xaxis.set_major_formatter(lambda n, _: thousands_text(n))


def _learning_table(group: TaskGroup, series: list[Series]) -> list[Line]:
    def lines(cell: Cell) -> list[Line]:
        return [
            {"seed": cell.axes.get("seed"), "step": step, "validation": score, "metric": group.metric}
            for step, score in sorted(curve_of(cell).items())
        ]

    return cell_lines(series, lines)


EFFORT_NOTE = (
    "Lines are means over the seeds, bands run from the lowest seed to the highest. Validation score against the time of training alone and "
    "against its FLOPs as counted; a seed that stopped early keeps its last score. " + LEVELS_NOTE
)
EFFORTS = {"seconds": "seconds of training", "flops": "FLOPs of training"}
# Effort, and over the seeds the mean, lowest and highest score.
EffortPoints = list[tuple[float, float, float, float]]


def _seconds(value: float) -> str:
    return seconds_text(value) if value < 999.5 else f"{value:,.0f} s"


TEXTS = {"seconds": _seconds, "flops": thousands_text}


@dataclass(frozen=True)
class Effort(TaskGroup):
    """The cells of a task, drawn against one kind of effort."""

    kind: str = "seconds"

    @property
    def label(self) -> str:
        return name_of(self.metric).replace("test", "validation", 1)

    @property
    def slug(self) -> str:
        return f"{super().slug}-{self.kind}"


def efforts(rows: Rows) -> list[Effort]:
    """Returns two panels for each task that was validated several times."""
    cells = [c for c in chosen_on_validation(rows.trainings()) if curve(c, "seconds")]
    return [
        Effort(g.title, g.cells, kind)
        for g in task_groups(cells)
        for kind in EFFORTS
        if any(len(curve(c, kind)) > 1 for c in g.cells)
    ]


def effort(rows: Rows, styles: Styles) -> list[Picture]:
    groups = efforts(rows)
    kind = TaskPage(
        "accuracy-effort",
        "Score against effort",
        "validation score while the model trains",
        ("up and to the left is better", "down and to the left"),
        level_entries(g.levels for g in groups),
        row_gap=0.95,
        draw=_draw_effort,
        table=_effort_table,
    )
    failed = [c for c in rows.of("accuracy") if c.status in FAILURES]
    return task_pages(kind, rows, styles, groups, lambda *_: [EFFORT_NOTE], failed)


def curve(cell: Cell, kind: str) -> dict[int, tuple[float, float]]:
    """Returns effort and validation score by step; empty where the row does not tell them."""
    if not cell.ok or not isinstance(cell.samples, list):
        return {}
    each = _flops_of_step(cell)
    found = {}
    for point in cell.samples:
        at = point["seconds"] if kind == "seconds" else each and each * point["step"]
        if at and point.get("validation") is not None:
            found[int(point["step"])] = float(at), float(point["validation"])
    return found


def _flops_of_step(cell: Cell) -> float | None:
    """The counters give the FLOPs of an example, and every step takes as many examples."""
    flops, examples, steps = (cell.metric(name) for name in ("flops", "examples", "steps"))
    return flops * examples / steps if flops and examples and steps else None


def points_by_effort(cells: Sequence[Cell], kind: str) -> EffortPoints:
    """Means over seeds, of those that are still training for the effort, of all for the score."""
    curves = [found for c in cells if (found := curve(c, kind))]
    out: EffortPoints = []
    for step in sorted({step for found in curves for step in found}):
        spent = [found[step][0] for found in curves if step in found]
        scores = [score for found in curves if (score := _score_at(found, step)) is not None]
        out.append((float(np.mean(spent)), float(np.mean(scores)), min(scores), max(scores)))
    return out


def _score_at(found: dict[int, tuple[float, float]], step: int) -> float | None:
    """The last score until the step."""
    return next((found[s][1] for s in sorted(found, reverse=True) if s <= step), None)


def _draw_effort(axes: Axes, place: Place[Effort]) -> None:
    kind, levels = place.panel.kind, place.panel.levels
    for level, value in levels.items():
        axes.axhline(value, **LEVELS[level], zorder=1.5)
    drawn = [(s, own) for s in place.own if (own := points_by_effort(s.cells, kind))]
    for s, own in drawn:
        at, middle, low, high = zip(*own, strict=True)
        axes.plot(at, middle, **s.look.line(), clip_on=False, zorder=3)
        if len(own) == 1:
            ring(axes, s.look, (at[0], middle[0]))
        axes.fill_between(at, low, high, color=s.look.color, alpha=0.18, linewidth=0, zorder=2)
    values = [v for _, own in drawn for p in own for v in p[1:]]
    score_axis(axes, place.panel.metric, [*levels.values(), *values])
    axes.set_xscale("log")
    spent = [p[0] for _, own in drawn for p in own] or [1.0]
    axes.set_xlim(min(spent) / 1.15, max(spent) * 1.15)
    ends = [End(own[-1][:2], s.label + marks_of(s.cells), s.look) for s, own in drawn]
    share = make_room(axes, ends, max(spent))
    log_ticks(axes, axes.xaxis, TEXTS[kind])
    axes.set_xlabel(EFFORTS[kind])
    grey_lines(axes, ([p[:2] for p in points_by_effort(s.cells, kind)] for s in place.others))
    name_ends(axes, ends, share)


def _effort_table(group: TaskGroup, series: list[Series]) -> list[Line]:
    kind = group.kind if isinstance(group, Effort) else "seconds"

    def lines(cell: Cell) -> list[Line]:
        return [
            {
                "seed": cell.axes.get("seed"),
                "metric": group.metric,
                "effort": kind,
                "at": at,
                "step": step,
                "validation": score,
            }
            for step, (at, score) in curve(cell, kind).items()
        ]

    return cell_lines(series, lines)
