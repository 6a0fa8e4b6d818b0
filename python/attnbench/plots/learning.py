"""Validation score against steps of training: one panel for each task, one line for each variant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator

from .ends import make_room
from .marks import CHANCE, level_entry
from .page import Picture
from .rows import Cell, Rows
from .sheets import Place
from .style import Series, Styles
from .task_panels import (
    Line,
    Points,
    TaskPage,
    cell_lines,
    draw_lines,
    finish_lines,
    task_pages,
)
from .tasks import TaskGroup, task_groups
from .tuned import chosen_on_validation
from .units import thousands_text

STEPS = "steps of training"
NOTE = (
    "Scores on the validation split while training went on: the mean over the seeds, and a band of all seeds. "
    "A training that ended before that of another seed, at its target or out of "
    "patience, keeps its last score."
)
Spread = list[tuple[float, float, float, float]]  # step, mean, least and most of the seeds


class Validated(TaskGroup):
    """A task whose axis is the validation score."""

    @property
    def label(self) -> str:
        return super().label.replace("test", "validation", 1)


def while_training(rows: Rows) -> list[TaskGroup]:
    """Returns the tasks with scores at several steps."""
    cells = [c for c in chosen_on_validation(rows.of("accuracy")) if c.ok and len(_curve(c)) > 1]
    return [Validated(g.title, g.cells) for g in task_groups(cells)]


def learning(rows: Rows, styles: Styles) -> list[Picture]:
    kind = TaskPage(
        "accuracy-learning",
        "Learning curves",
        "validation score while training goes on",
        ("a line that rises early learns fast", "one that falls early"),
        [level_entry("chance")],
        height=1.9,
        row_gap=0.85,
        below=0.55,
        draw=_draw,
        table=_table,
    )
    return task_pages(kind, rows, styles, while_training(rows), lambda *_: [NOTE])


def _curve(cell: Cell) -> dict[int, float]:
    """Returns the validation score by step."""
    held = cell.samples if isinstance(cell.samples, list) else []
    return {int(p["step"]): float(p["validation"]) for p in held if p.get("validation") is not None}


def spread(cells: Sequence[Cell]) -> Spread:
    """Returns points from the first step that every seed has."""
    curves = [sorted(own.items()) for c in cells if c.ok and (own := _curve(c))]
    first = max((curve[0][0] for curve in curves), default=0)
    found = []
    for step in sorted({s for curve in curves for s, _ in curve if s >= first}):
        held = [[v for s, v in curve if s <= step][-1] for curve in curves]
        found.append((float(step), float(np.mean(held)), min(held), max(held)))
    return found


def _means(cells: Sequence[Cell]) -> Points:
    return [(step, mean, 0.0) for step, mean, _, _ in spread(cells)]


def _draw(axes: Axes, place: Place[TaskGroup]) -> None:
    chance = place.panel.reference("chance")
    if chance is not None:
        axes.axhline(chance, **CHANCE, zorder=1.5)
    ends = draw_lines(axes, place, _means, [chance or 0.0])
    for s in place.own:
        if own := spread(s.cells):
            at, _, low, high = zip(*own)
            axes.fill_between(at, low, high, color=s.look.color, alpha=0.18, linewidth=0, zorder=2)
    steps = [step for s in (*place.own, *place.others) for step, *_ in spread(s.cells)]
    first, last = min(steps, default=0.0), max(steps, default=1.0)
    axes.set_xlim(left=first - 0.06 * (last - first))
    share = make_room(axes, ends, last)
    ticks = MaxNLocator(4 if share > 0.6 else 3, integer=True).tick_values(first, last)
    axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if first <= t <= last]))
    axes.xaxis.set_major_formatter(lambda n, _: thousands_text(n))
    axes.set_xlabel(STEPS)
    finish_lines(axes, place, _means, ends, share)


def _table(group: TaskGroup, series: list[Series]) -> list[Line]:
    def lines(cell: Cell) -> list[Line]:
        return [
            {"seed": cell.axes.get("seed"), "step": step, "validation": score, "metric": group.metric}
            for step, score in sorted(_curve(cell).items())
        ]

    return cell_lines(series, lines)
