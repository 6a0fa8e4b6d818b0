"""Accuracy against the distance of what a label depends on: a panel a task, a line a variant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy.special import stdtrit

from .accuracy import CHANCE, head
from .caption import caption
from .metric import label_scores, score_axis, unless_error
from .page import Page, Picture, handles
from .rows import Cell, Rows
from .style import Series, Styles
from .tasks import TaskGroup, stand_ins, task_groups
from .tuned import chosen_on_validation, tuning_note

HEIGHT = 1.75  # inches of a panel
Bin = tuple[int, int]  # distances, both ends included


def distance(rows: Rows, styles: Styles) -> list[Picture]:
    cells = [c for c in chosen_on_validation(rows.of("accuracy")) if c.ok and _bins(c)]
    groups = [g for g in task_groups(cells) if len(_all_bins(g.cells)) > 1]
    if not groups:
        return []
    drawn = [c for g in groups for c in g.cells]
    series = styles.series(drawn)
    metrics = [g.metric for g in groups]
    columns = min(3, len(groups))
    grid_rows = math.ceil(len(groups) / columns)
    words = caption(
        rows,
        drawn,
        "Test labels in bins of about equal counts, drawn at the bin's middle, by the number of "
        "positions from the first to the last evidence that a label depends on; bars are 95 % "
        "intervals: of one seed over the test sequences, of several t-intervals over the seeds.",
        stand_ins(drawn),
        tuning_note(drawn),
    )
    page = Page(
        "Accuracy by distance",
        "test score of labels whose evidence lies so far apart; "
        + unless_error(metrics, "a line that falls forgets", "one that rises"),
        words,
        [*handles(series), (Line2D([], [], **CHANCE), "chance")],
        [HEIGHT] * grid_rows,
        columns,
        gaps=[0.46] + [0.85] * (grid_rows - 1),
        between=0.42 if len(set(metrics)) == 1 else 0.66,
        right=0.2,
        below=0.55,
    )
    table: list[dict[str, Any]] = []
    for index, group in enumerate(groups):
        axes = page.panel(index // columns, index % columns)
        _draw(axes, group, group.select(series))
        label_scores(axes, group.metric, metrics[index - 1] if index % columns else None)
        table += _table(group, group.select(series))
    return [Picture("accuracy-distance", page.figure, pd.DataFrame(table), words)]


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
        scores = [value[0] for _, value in entries]
        if len(scores) > 1:
            spread = float(np.std(scores, ddof=1)) / math.sqrt(len(scores))
            half = float(stdtrit(len(scores) - 1, 0.975)) * spread
        else:
            half = 1.96 * entries[0][1][1]
        points.append((middle, float(np.mean(scores)), half))
    return points


def _draw(axes: Axes, group: TaskGroup, series: list[Series]) -> None:
    head(axes, group)
    chance = group.reference("chance")
    if chance is not None:
        axes.axhline(chance, **CHANCE, zorder=1.5)
    highest = [chance or 0.0]
    for s in series:
        points = _points(s.cells)
        if not points:
            continue
        highest += [value for _, value, _ in points]
        x, y, half = (np.array(column) for column in zip(*points))
        axes.plot(x, y, **s.look.line())
        axes.errorbar(x, y, yerr=half, color=s.look.color, elinewidth=1, capsize=2.4, fmt="none")
    score_axis(axes, group.metric, highest)
    axes.set_xlabel("distance, positions")


def _table(group: TaskGroup, series: list[Series]) -> list[dict[str, Any]]:
    return [
        {
            "task": cell.task,
            "task_params": " ".join(f"{k}={v}" for k, v in cell.task_params),
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
