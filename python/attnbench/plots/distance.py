"""Accuracy against the distance of what a label depends on: one panel for each task, one line for
each variant."""

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
from .tasks import ONE_SEED, TaskGroup, over_seeds, task_groups
from .tuned import chosen_on_validation

NOTE = (
    "Test labels by the distance between the first and the last evidence, in bins of about equal counts. "
    "Points are at the middle of a bin; the distance is the number of positions. "
    f"Bars are 95 % intervals: {ONE_SEED}, of several t-intervals over the seeds."
)
Bin = tuple[int, int]  # distances, both ends included


def by_distance(rows: Rows) -> list[TaskGroup]:
    """Returns the tasks with labels of several distances."""
    cells = [c for c in chosen_on_validation(rows.of("accuracy")) if c.ok and _bins(c)]
    return [g for g in task_groups(cells) if len({b for c in g.cells for b in _bins(c)}) > 1]


def distance(rows: Rows, styles: Styles) -> list[Picture]:
    kind = TaskPage(
        "accuracy-distance",
        "Accuracy by distance",
        "test score of labels whose evidence lies so far apart",
        ("a line that falls forgets", "one that rises"),
        [level_entry("chance")],
        height=1.9,
        row_gap=0.85,
        below=0.55,
        draw=_draw,
        table=_table,
    )
    return task_pages(kind, rows, styles, by_distance(rows), lambda *_: [NOTE])


def _bins(cell: Cell) -> dict[Bin, tuple[float, float, int]]:
    """Returns accuracy, standard error and number of labels by bin."""
    return {
        (int(b["from"]), int(b["to"])): (float(b["accuracy"]), float(b["stderr"]), int(b["labels"]))
        for b in cell.metrics.get("by_distance") or []
        if b.get("accuracy") is not None
    }


def points(cells: Sequence[Cell]) -> Points:
    """Returns points at the middles of the bins. Seeds with different bins are pooled by the bins'
    order."""
    found_at = []
    for entries in zip(*(sorted(_bins(c).items()) for c in cells)):
        middle = float(np.mean([(low + high) / 2 for (low, high), _ in entries]))
        found = over_seeds([value[0] for _, value in entries], entries[0][1][1])
        found_at.append((middle, found.mean, found.half or 0.0))
    return found_at


def _draw(axes: Axes, place: Place[TaskGroup]) -> None:
    chance = place.panel.reference("chance")
    if chance is not None:
        axes.axhline(chance, **CHANCE, zorder=1.5)
    ends = draw_lines(axes, place, points, [chance or 0.0])
    middles = [middle for s in place.own for middle, _, _ in points(s.cells)]
    first, last = min(middles, default=0.0), max(middles, default=1.0)
    axes.set_xlim(left=first - 0.06 * (last - first))
    share = make_room(axes, ends, last)
    ticks = MaxNLocator(4 if share > 0.6 else 3, integer=True).tick_values(first, last)
    axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if first <= t <= last]))
    axes.set_xlabel("distance, positions")
    finish_lines(axes, place, points, ends, share)


def _table(group: TaskGroup, series: list[Series]) -> list[Line]:
    def lines(cell: Cell) -> list[Line]:
        return [
            {
                "seed": cell.axes.get("seed"),
                "from": low,
                "to": high,
                "labels": labels,
                "accuracy": score,
                "stderr": error,
                "metric": group.metric,
            }
            for (low, high), (score, error, labels) in sorted(_bins(cell).items())
        ]

    return cell_lines(series, lines)
