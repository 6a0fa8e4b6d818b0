"""Test score by slice: by the groups of examples, or of labels, that a task names, such as hops or whether a byte repeats an
earlier span. One panel for each task and slice, one line for each variant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..layout.axes import level_entries
from ..layout.page import Picture
from ..layout.sheets import Place
from ..rows.read import Cell, Rows
from ..rows.scores import ONE_SEED, TaskGroup, over_seeds, task_groups
from ..rows.settings import chosen_on_validation
from ..rows.style import Series, Styles
from .accuracy import Line, Points, TaskPage, cell_lines, draw_over_numbers, task_pages

NOTE = (
    "Test labels by a number of each example or label, which `attnbench info TASK` explains. Points are at the middle of the numbers of a "
    "bin. Chance and the best shortcut are those of all labels. "
    f"Bars are 95 % intervals: {ONE_SEED}, of several t-intervals over the seeds."
)
Bin = dict[str, Any]


@dataclass(frozen=True)
class SliceGroup(TaskGroup):
    """Cells of one task with the same parameters, by one of its slices."""

    name: str = ""

    @property
    def words(self) -> str:
        return self.name.replace("_", " ")

    @property
    def slug(self) -> str:
        return f"{super().slug}-{self.name}"


def by_slice(rows: Rows) -> list[SliceGroup]:
    """Returns each slice of each task that parts its labels."""
    cells = [c for c in chosen_on_validation(rows.of("accuracy")) if c.ok and c.metrics.get("slices")]
    out = []
    for group in task_groups(cells):
        for name in dict.fromkeys(name for c in group.cells for name in c.metrics["slices"]):
            own = tuple(c for c in group.cells if _bins(c, name))
            if len(points_by_slice(own, name)) > 1:
                task, _, told = group.title.partition("\n")
                title = f"{task}\n{', '.join(filter(None, [told, 'by ' + name.replace('_', ' ')]))}"
                out.append(SliceGroup(title, own, name))
    return out


def points_of(group: SliceGroup) -> Callable[[Sequence[Cell]], Points]:
    return partial(points_by_slice, name=group.name)


def points_by_slice(cells: Sequence[Cell], name: str) -> Points:
    """Returns scores at the middles of the bins. Seeds are pooled value by value; where a bin holds several values, from a power
    of two to the next one."""
    seeds = [bins for c in cells if (bins := _bins(c, name))]
    wide = any(b["from"] != b["to"] for bins in seeds for b in bins)
    key: Callable[[float], Any] = _octave if wide else float
    out = []
    for place in sorted({key(b["from"]) for bins in seeds for b in bins}):
        parts = [own for bins in seeds if (own := [b for b in bins if key(b["from"]) == place])]
        every = [b for own in parts for b in own]
        middle = _mean([(b["from"] + b["to"]) / 2 for b in every], every)
        error = float(every[0]["stderr"]) if len(every) == 1 else None
        found = over_seeds([_mean([b["test"] for b in own], own) for own in parts], error)
        out.append((middle, found.mean, found.half or 0.0))
    return out


def slices(rows: Rows, styles: Styles) -> list[Picture]:
    groups = by_slice(rows)
    kind = TaskPage(
        "accuracy-slices",
        "Accuracy by slice",
        "test score of labels with such a number",
        ("a line that falls loses there", "one that rises"),
        level_entries(g.levels for g in groups),
        draw=_draw,
        table=_table,
    )
    return task_pages(kind, rows, styles, groups, lambda shown, _: (NOTE,))


def _bins(cell: Cell, name: str) -> list[Bin]:
    return (cell.metrics.get("slices") or {}).get(name) or []


def _octave(value: float) -> tuple[int, int]:
    """The sign, and the power of two below the value: as the program bins what has many values."""
    sign = (value > 0) - (value < 0)
    return sign, sign * math.frexp(value)[1]


def _mean(values: Sequence[float], bins: Sequence[Bin]) -> float:
    return float(np.average(values, weights=[b["labels"] for b in bins]))


def _draw(axes: Axes, place: Place[TaskGroup]) -> None:
    group = place.panel
    assert isinstance(group, SliceGroup)
    ends = [float(b[end]) for c in group.cells for b in _bins(c, group.name) for end in ("from", "to")]
    draw_over_numbers(axes, place, points_of(group), place.own, group.words, whole=all(e.is_integer() for e in ends))


def _table(group: TaskGroup, series: list[Series]) -> list[Line]:
    assert isinstance(group, SliceGroup)

    def lines(cell: Cell) -> list[Line]:
        told = {"seed": cell.axes.get("seed"), "metric": group.metric, "slice": group.name}
        return [told | b for b in _bins(cell, group.name)]

    return cell_lines(series, lines)
