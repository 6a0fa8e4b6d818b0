"""Test score by the distance of what a label depends on, and by length, of weights trained at one
length. One panel for each task, one line for each variant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ..layout.axes import CHANCE, entry, level_entries, level_entry, make_room
from ..layout.caption import brief, unique
from ..layout.page import Picture
from ..layout.panels import length_axis, length_ticks
from ..layout.sheets import Place
from ..rows.read import Cell, Rows, canonical
from ..rows.scores import ONE_SEED, TaskGroup, over_seeds, task_groups
from ..rows.settings import BITS, chosen_on_validation, told_apart, winners
from ..rows.style import Series, Styles
from ..rows.units import length_text
from .accuracy import (
    Line,
    Points,
    TaskPage,
    cell_lines,
    draw_lines,
    draw_over_numbers,
    finish_lines,
    task_pages,
)

DISTANCE_NOTE = (
    "Test labels by the distance between the first and the last evidence, in bins of about equal counts. "
    "Points are at the middle of a bin; the distance is the number of positions. "
    f"Bars are 95 % intervals: {ONE_SEED}, of several t-intervals over the seeds."
)
BITS_NOTE = "Of bits the distance is the number of tokens before the position: what the context is worth."
BITS_DISTANCE = "test bits of labels behind so many tokens"
Bin = tuple[int, int]  # distances, both ends included


def by_distance(rows: Rows) -> list[TaskGroup]:
    """Returns the tasks with labels of several distances."""
    cells = [c for c in chosen_on_validation(rows.of("accuracy")) if c.ok and _bins(c)]
    return [g for g in task_groups(cells) if len({b for c in g.cells for b in _bins(c)}) > 1]


def distance(rows: Rows, styles: Styles) -> list[Picture]:
    groups = by_distance(rows)
    only_bits = all(g.metric == BITS for g in groups)
    kind = TaskPage(
        "accuracy-distance",
        "Accuracy by distance",
        BITS_DISTANCE if only_bits else "test score of labels whose evidence lies so far apart",
        ("a line that falls forgets", "a line that falls learns from the context" if only_bits else "one that rises"),
        level_entries(g.levels for g in groups),
        draw=_draw_distance,
        table=_distance_table,
    )
    return task_pages(kind, rows, styles, groups, lambda shown, _: distance_notes(shown))


def distance_notes(groups: Sequence[TaskGroup]) -> list[str]:
    """What the distances of the labels are."""
    bits = [g.metric == BITS for g in groups]
    return [*([] if all(bits) else [DISTANCE_NOTE]), *([BITS_NOTE] if any(bits) else [])]


def _bins(cell: Cell) -> dict[Bin, tuple[float, float, int]]:
    """Returns accuracy, standard error and number of labels by bin."""
    return {
        (int(b["from"]), int(b["to"])): (float(b["accuracy"]), float(b["stderr"]), int(b["labels"]))
        for b in cell.metrics.get("by_distance") or []
        if b.get("accuracy") is not None
    }


def points_by_distance(cells: Sequence[Cell]) -> Points:
    """Returns points_by_distance at the middles of the bins. Seeds with different bins are pooled by the bins'
    order."""
    found_at = []
    for entries in zip(*(sorted(_bins(c).items()) for c in cells)):
        middle = float(np.mean([(low + high) / 2 for (low, high), _ in entries]))
        found = over_seeds([value[0] for _, value in entries], entries[0][1][1])
        found_at.append((middle, found.mean, found.half or 0.0))
    return found_at


def _draw_distance(axes: Axes, place: Place[TaskGroup]) -> None:
    draw_over_numbers(axes, place, points_by_distance, place.own, "distance, positions")


def _distance_table(group: TaskGroup, series: list[Series]) -> list[Line]:
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


TRAINED = {"color": "#b0b0b0", "linestyle": "-", "linewidth": 3.2, "alpha": 0.55}
LENGTH_NOTE = (
    "The same weights at other lengths than the one that they were trained at. "
    f"Bars are 95 % intervals: {ONE_SEED}, of several t-intervals over the seeds."
)


def beyond_training(rows: Rows) -> list[TaskGroup]:
    """Returns the tasks with scores at several lengths of the same weights."""
    scored = [c for c in winners(rows.of("accuracy")) if c.ok and _scored(c)]
    cells = told_apart(scored, always=("positions",))
    return [g for g in task_groups(cells) if len(_lengths(g)) > 1]


def length(rows: Rows, styles: Styles) -> list[Picture]:
    kind = TaskPage(
        "accuracy-length",
        "Accuracy by length",
        "test score beyond the length of training",
        ("a line that falls does not generalise", "one that rises"),
        [level_entry("chance"), entry(TRAINED, "length of training")],
        row_gap=1.03,
        below=0.68,
        draw=_draw_length,
        table=_length_table,
    )
    return task_pages(kind, rows, styles, beyond_training(rows), _notes)


def _notes(shown: Sequence[TaskGroup], series: list[Series]) -> tuple[str, ...]:
    return LENGTH_NOTE, _positions([c for g in shown for c in g.cells]), _skipped(shown, series)


def _entries(cell: Cell) -> list[Line]:
    """Returns scores at multiples of the training length and on the task at other lengths, in
    ascending order, each length once."""
    entries = {int(e["length"]): e for e in cell.metrics.get("by_length") or []}
    other = [e for e in map(lambda e: _by_factor(cell, e), cell.metrics.get("by_task") or []) if e]
    if other:
        told = {"stderr": cell.metric("test_stderr"), "chance": cell.metric("chance")}
        trained = {"factor": 1, "length": cell.length, "test": cell.metric("test"), "reason": None}
        other.append({**trained, **told})
    for e in other:
        entries.setdefault(int(e["length"]), e)
    return [entries[n] for n in sorted(entries)]


def _by_factor(cell: Cell, entry: Line) -> Line | None:
    """Returns a score on the task with other parameters as one by length, None where more than the
    length of its sequences is another."""
    own, other = dict(cell.task_params), dict(canonical(entry["params"]))
    differing = {name for name in own | other if own.get(name) != other.get(name)}
    if "length" not in differing or not differing <= {"length", "min_length"} or not cell.length:
        return None
    factor = float(other["length"]) / float(own["length"])
    length = int(entry["length"]) or round(factor * cell.length)
    return {**entry, "factor": int(factor) if factor.is_integer() else factor, "length": length}


def _scored(cell: Cell) -> dict[int, Line]:
    """Returns the entries that have a score, by length."""
    return {int(e["length"]): e for e in _entries(cell) if e.get("test") is not None}


def _lengths(group: TaskGroup) -> list[int]:
    return sorted({n for c in group.cells for n in _scored(c)})


def points_by_length(cells: Sequence[Cell]) -> Points:
    out = []
    for n in sorted({n for c in cells for n in _scored(c)}):
        entries = [e for c in cells if (e := _scored(c).get(n))]
        found = over_seeds([float(e["test"]) for e in entries], entries[0].get("stderr"))
        out.append((n, found.mean, found.half or 0.0))
    return out


def _draw_length(axes: Axes, place: Place[TaskGroup]) -> None:
    group, lengths = place.panel, _lengths(place.panel)
    chances = {
        n: float(e["chance"])
        for c in group.cells
        for n, e in sorted(_scored(c).items())
        if e.get("chance") is not None
    }
    axes.plot(sorted(chances), [chances[n] for n in sorted(chances)], **CHANCE, zorder=1.5)
    for trained in sorted({_trained_at(c) for c in group.cells}):
        axes.axvline(trained, **TRAINED, zorder=1)
    ends = draw_lines(axes, place, points_by_length, chances.values())
    length_axis(axes, lengths)
    share = make_room(axes, ends, max(lengths))
    length_ticks(axes, lengths, share)
    factors = {n: e["factor"] for c in group.cells for n, e in _scored(c).items()}
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda n, _: f"{length_text(n)}\n\u00d7{factors[round(n)]:.3g}")
    )
    finish_lines(axes, place, points_by_length, ends, share)


def _trained_at(cell: Cell) -> int:
    entry = next((e for e in _entries(cell) if e["factor"] == 1), None)
    if entry:
        return int(entry["length"])
    first = _entries(cell)[0]
    return int(first["length"]) // int(first["factor"])


def _positions(cells: list[Cell]) -> str:
    """Returns the kind of positions if all cells share one. Otherwise the names of the lines tell
    the kinds."""
    kinds = unique(str(c.training["positions"]) for c in cells if "positions" in c.training)
    return f"Positions: {kinds[0]}." if len(kinds) == 1 else ""


def _skipped(groups: Sequence[TaskGroup], series: list[Series]) -> str:
    """Returns `No score: full learned at x2, x4 (why)`. Equal reasons are told once."""
    told: dict[str, dict[str, list[float]]] = {}
    for group in groups:
        for s in group.select(series):
            for entry in (e for c in s.cells for e in _entries(c) if e.get("test") is None):
                factors = told.setdefault(str(entry.get("reason")), {}).setdefault(s.label, [])
                factors.append(entry["factor"])
    parts = []
    for reason, labels in told.items():
        factors = sorted({f for own in labels.values() for f in own})
        times = ", ".join(f"\u00d7{f:.3g}" for f in factors)
        parts.append(f"{brief(list(labels))} at {times} ({reason})")
    return f"No score: {'; '.join(parts)}." if parts else ""


def _length_table(group: TaskGroup, series: list[Series]) -> list[Line]:
    def lines(cell: Cell) -> list[Line]:
        return [
            {
                "positions": cell.training.get("positions"),
                "seed": cell.axes.get("seed"),
                "metric": group.metric,
                "trained_at": _trained_at(cell),
                **{key: e[key] for key in ("factor", "length")},
                **{key: e.get(key) for key in ("test", "stderr", "chance", "reason")},
            }
            for e in _entries(cell)
        ]

    return cell_lines(series, lines)
