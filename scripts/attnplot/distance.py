"""Accuracy against the distance of what a label depends on: a panel a task, a line a variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator

from .accuracy import CHANCE
from .caption import caption
from .curves import grey_lines
from .ends import End, make_room, name_ends
from .metric import score_axis, unless_error
from .page import Picture
from .rows import Cell, Rows
from .sheets import Place
from .style import Series, Styles
from .task_panels import TaskLayout, TaskWords, bar_line, task_pages
from .tasks import ONE_SEED, TaskGroup, over_seeds, stand_ins, task_columns, task_groups
from .tuned import chosen_on_validation, tuning_note

Bin = tuple[int, int]  # distances, both ends included


def distance(rows: Rows, styles: Styles) -> list[Picture]:
    cells = [c for c in chosen_on_validation(rows.of("accuracy")) if c.ok and _bins(c)]
    groups = [g for g in task_groups(cells) if len(_all_bins(g.cells)) > 1]
    if not groups:
        return []

    def words(shown: Sequence[TaskGroup]) -> str:
        drawn = [c for g in shown for c in g.cells]
        return caption(
            rows,
            drawn,
            "Test labels in bins of about equal counts, drawn at the bin's middle, by the number "
            "of positions from the first to the last evidence that a label depends on; bars are "
            f"95 % intervals: {ONE_SEED}, of several t-intervals over the seeds.",
            stand_ins(drawn),
            tuning_note(drawn),
        )

    def subtitle(shown: Sequence[TaskGroup]) -> str:
        better = unless_error(
            (g.metric for g in shown), "a line that falls forgets", "one that rises"
        )
        return f"test score of labels whose evidence lies so far apart; {better}"

    return task_pages(
        TaskWords(
            "accuracy-distance",
            "Accuracy by distance",
            subtitle,
            words,
            [(Line2D([], [], **CHANCE), "chance")],
        ),
        TaskLayout(most_columns=2, height=1.9, row_gap=0.85, below=0.55),
        groups,
        styles.series([c for g in groups for c in g.cells]),
        styles,
        _draw,
        _table,
    )


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


def _draw(axes: Axes, place: Place[TaskGroup]) -> None:
    chance = place.panel.reference("chance")
    if chance is not None:
        axes.axhline(chance, **CHANCE, zorder=1.5)
    values: list[float] = [chance or 0.0]
    ends: list[End] = []
    places: list[float] = []
    for s in place.own:
        points = _points(s.cells)
        if not points:
            continue
        values += [value for _, value, _ in points]
        places += [x for x, _, _ in points]
        bar_line(axes, s.look, *zip(*points))
        ends.append(End(points[-1][:2], s.label, s.look))
    score_axis(axes, place.panel.metric, values)
    first, last = min(places, default=0.0), max(places, default=1.0)
    axes.set_xlim(left=first - 0.06 * (last - first))
    share = make_room(axes, ends, last)
    grey_lines(axes, ([p[:2] for p in _points(s.cells)] for s in place.others))
    ticks = MaxNLocator(4 if share > 0.6 else 3, integer=True).tick_values(first, last)
    axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if first <= t <= last]))
    axes.set_xlabel("distance, positions")
    name_ends(axes, ends, share)


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
