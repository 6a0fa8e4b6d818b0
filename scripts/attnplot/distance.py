"""Accuracy against the distance of what a label depends on: a panel a task, a line a variant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .accuracy import CHANCE
from .caption import caption
from .metric import score_axis, unless_error
from .page import Picture, handles
from .rows import Cell, Rows
from .style import Series, Styles
from .task_panels import TaskPage, bar_line
from .tasks import TaskGroup, over_seeds, stand_ins, task_columns, task_groups
from .tuned import chosen_on_validation, tuning_note

Bin = tuple[int, int]  # distances, both ends included


def distance(rows: Rows, styles: Styles) -> list[Picture]:
    cells = [c for c in chosen_on_validation(rows.of("accuracy")) if c.ok and _bins(c)]
    groups = [g for g in task_groups(cells) if len(_all_bins(g.cells)) > 1]
    if not groups:
        return []
    drawn = [c for g in groups for c in g.cells]
    series = styles.series(drawn)
    words = caption(
        rows,
        drawn,
        "Test labels in bins of about equal counts, drawn at the bin's middle, by the number of "
        "positions from the first to the last evidence that a label depends on; bars are 95 % "
        "intervals: of one seed over the test sequences, of several t-intervals over the seeds.",
        stand_ins(drawn),
        tuning_note(drawn),
    )
    page = TaskPage(
        "Accuracy by distance",
        "test score of labels whose evidence lies so far apart; "
        + unless_error((g.metric for g in groups), "a line that falls forgets", "one that rises"),
        words,
        [*handles(series), (Line2D([], [], **CHANCE), "chance")],
        groups,
        most_columns=3,
        height=1.75,
        row_gap=0.85,
        below=0.55,
    )
    table: list[dict[str, Any]] = []
    for axes, group in page.panels():
        _draw(axes, group, group.select(series))
        table += _table(group, group.select(series))
    return [Picture("accuracy-distance", page.page.figure, pd.DataFrame(table), words)]


def _bins(cell: Cell) -> dict[Bin, tuple[float, float, int]]:
    """Accuracy, its standard error and the number of labels of each bin."""
    return {
        (int(b["from"]), int(b["to"])): (float(b["accuracy"]), float(b["stderr"]), int(b["labels"]))
        for b in cell.metrics.get("by_distance") or []
        if b.get("accuracy") is not None
    }


def _all_bins(cells: tuple[Cell, ...]) -> set[Bin]:
    return {b for c in cells for b in _bins(c)}


def _points(cells: tuple[Cell, ...]) -> list[tuple[float, float, float]]:
    """Middle, mean over seeds and half an interval; seeds whose bins differ are pooled by place."""
    if not cells:
        return []
    sorted_bins = [sorted(_bins(c).items()) for c in cells]
    count = min(len(b) for b in sorted_bins)
    points = []
    for place in range(count):
        entries = [b[place] for b in sorted_bins]
        middle = float(np.mean([(low + high) / 2 for (low, high), _ in entries]))
        found = over_seeds([value[0] for _, value in entries], entries[0][1][1])
        points.append((middle, found.mean, found.half or 0.0))
    return points


def _draw(axes: Axes, group: TaskGroup, series: list[Series]) -> None:
    chance = group.reference("chance")
    if chance is not None:
        axes.axhline(chance, **CHANCE, zorder=1.5)
    highest = [chance or 0.0]
    for s in series:
        points = _points(s.cells)
        if not points:
            continue
        highest += [value for _, value, _ in points]
        bar_line(axes, s.look, *zip(*points))
    score_axis(axes, group.metric, highest)
    axes.set_xlabel("distance, positions")


def _table(group: TaskGroup, series: list[Series]) -> list[dict[str, Any]]:
    return [
        {
            **task_columns(cell),
            "series": s.label,
            "variant": s.variant,
            "seed": cell.axes.get("seed"),
            "from": low,
            "to": high,
            "labels": labels,
            "accuracy": score,
            "stderr": error,
            "metric": group.metric,
        }
        for s in series
        for cell in s.cells
        for (low, high), (score, error, labels) in sorted(_bins(cell).items())
    ]
