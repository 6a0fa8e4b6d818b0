"""Score against the bytes that decoding keeps: one panel for each task, one line through the sizes
of each variant."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from matplotlib.axes import Axes

from ..layout.axes import LEVELS, bar_line, byte_ticks, fixed_ticks, level_entry, score_axis, wrapped
from ..layout.caption import brief, unique
from ..layout.labels import Label, place_labels
from ..layout.page import Picture
from ..layout.panels import grey_lines
from ..layout.sheets import Place
from ..rows.read import Cell, Rows
from ..rows.scores import ONE_SEED, Score, TaskGroup, score, series_of, task_columns, task_groups
from ..rows.settings import marks_of, told_apart, winners
from ..rows.style import BEHIND, Look, Series, Styles, tag
from ..rows.units import bytes_text
from .accuracy import Line, TaskPage, task_pages

NOTE = (
    "State: what decoding keeps of one sequence at the task's length, all layers together. "
    "A line joins a variant's settings in the order of their state, named at the points, "
    f"the variant at its largest; bars are 95 % intervals: {ONE_SEED}, of several t-intervals."
)
# State in bytes, score over seeds, what tells it from its line, all that tells it.
Point = tuple[int, Score, str, str]
Families = dict[str, tuple[Look, list[Series]]]  # by name


def state(rows: Rows, styles: Styles) -> list[Picture]:
    cells, groups, families = found(rows, styles)

    def notes(shown: Sequence[TaskGroup], _: list[Series]) -> tuple[str, str]:
        return NOTE, _stateless(cells, shown, styles)

    kind = TaskPage(
        "accuracy-state",
        "Accuracy against decode state",
        "test score",
        ("up and to the left is better", "down and left"),
        [level_entry("best shortcut"), level_entry("chance")],
        height=2.2,
        row_gap=0.9,
        draw=partial(_draw, families),
        table=partial(_table, families),
        by_variant=True,
    )
    return task_pages(kind, rows, styles, groups, notes, [c for c in cells if not c.ok])


def found(rows: Rows, styles: Styles) -> tuple[list[Cell], list[TaskGroup], Families]:
    """Returns the cells of accuracy with the settings chosen on validation, the tasks whose states
    differ, and the lines through them."""
    cells = _every_size(rows.of("accuracy"))
    kept = [c for c in cells if c.ok and _bytes(c)]
    groups = [g for g in task_groups(kept) if len({_bytes(c) for c in g.cells}) > 1]
    return cells, groups, _families(series_of(groups, styles))


def _bytes(cell: Cell) -> int:
    return int(cell.metric("state_bytes") or 0)


def _every_size(cells: list[Cell]) -> list[Cell]:
    """Keeps every tuned setting that changes the state and chooses the others on validation. Cells
    compete only with cells of the same state."""

    def like(cell: Cell, *ignored: str) -> str:
        training = {k: v for k, v in cell.training.items() if k not in ignored}
        what = [cell.variant, cell.params, cell.task, cell.task_params, training]
        return json.dumps(what, sort_keys=True)

    sizes = {like(c): _bytes(c) for c in cells if c.ok}  # a seed that failed has that of another
    sizing = {
        name
        for name in {n for c in cells for n in c.tuned}
        if _differ((like(c, name), _bytes(c)) for c in cells if c.ok)
    }
    kept = winners(cells, lambda cell: sizes.get(like(cell)))
    return told_apart(
        [replace(c, tuned=tuple(n for n in c.tuned if n not in sizing)) for c in kept]
    )


def _differ(pairs: Iterable[tuple[str, int]]) -> bool:
    """Whether one key comes with several values."""
    first: dict[str, int] = {}
    return any(first.setdefault(key, value) != value for key, value in pairs)


def _families(series: list[Series]) -> Families:
    """Groups series by variant and by the settings that are no numbers. The name lists the settings
    that are numbers; the look is that of the defaults."""
    members: dict[Any, list[Series]] = {}
    for s in series:
        words = tuple((k, v) for k, v in s.params if not _is_number(v))
        members.setdefault((s.variant, words), []).append(s)
    out = {}
    for own in members.values():
        ordered = sorted(own, key=lambda s: [(k, float(v)) for k, v in s.params if _is_number(v)])
        out[_name(ordered)] = own[0].look, ordered
    return out


def _name(family: list[Series]) -> str:
    """Returns `linear heads=1, 2, 4`: the labels with a setting, or the variant alone."""
    labels = [s.label for s in family]
    return brief([x for x in labels if x != family[0].variant] or labels[:1])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _points(family: list[Series]) -> list[Point]:
    points = []
    for s in family:
        found = score(s.cells)
        if found:
            told = tag(s) if len(family) > 1 else ""
            points.append((_bytes(s.cells[0]), found, told, s.label))
    return sorted(points, key=lambda p: (p[0], p[2]))


def lines(families: Families, series: list[Series]) -> list[tuple[str, Look, list[Point]]]:
    """Returns the name, look and points of each family that has points."""
    keys = {s.key: s for s in series}
    found = [
        (name, look, _points([keys[s.key] for s in own if s.key in keys]))
        for name, (look, own) in families.items()
    ]
    return [line for line in found if line[-1]]


def _draw(families: Families, axes: Axes, place: Place[TaskGroup]) -> None:
    drawn = [(look, own) for _, look, own in lines(families, place.own)]
    points = [p for _, own in drawn for p in own]
    levels = place.panel.levels
    for level, value in levels.items():
        axes.axhline(value, **LEVELS[level], zorder=1.5)
    for look, own in drawn:
        for is_hollow in (False, True):
            if shown := [(p[0], p[1].mean, p[1].half or 0.0) for p in own if p[1].is_unfinished == is_hollow]:
                bar_line(axes, look, *zip(*shown), is_hollow=is_hollow)
    score_axis(axes, place.panel.metric, [*(p[1].mean for p in points), *levels.values()])
    _bytes_axis(axes, [p[0] for p in points])
    others = lines(families, place.others)
    behind = [[(p[0], p[1].mean) for p in own] for _, _, own in others]
    grey_lines(axes, behind)
    if behind:
        axes.plot(*zip(*(at for own in behind for at in own)), "o", color=BEHIND, markersize=3)
    cells = place.panel.cells
    labels = [
        Label(p[0], p[1].mean, 3.4, _told(own, p) + marks_of(c for c in cells if c.id in p[1].cell.split()), look.ink)
        for look, own in drawn
        for p in own
        if _told(own, p)
    ]
    taken = [(p[0], p[1].mean, 3.4) for p in points]
    bar = (-1, -0.5, 0.5, 1)
    taken += [(p[0], p[1].mean + t * p[1].half, 1.5) for p in points if p[1].half for t in bar]
    place_labels(axes, labels, list(levels.values()), size=8, points=taken)


def _told(line: list[Point], point: Point) -> str:
    """Returns the whole name at the largest state, and what differs at the others."""
    return wrapped(point[3]) if point is line[-1] else point[2]


def _bytes_axis(axes: Axes, values: list[int]) -> None:
    axes.set_xscale("log", base=2)
    low, high = math.log2(min(values)), math.log2(max(values))
    room = 0.07 * (high - low)
    axes.set_xlim(2 ** (low - room), 2 ** (high + room))
    fixed_ticks(axes.xaxis, byte_ticks(*axes.get_xlim(), 5), bytes_text)
    axes.set_xlabel("decode state of one sequence")


def _stateless(cells: list[Cell], groups: Sequence[TaskGroup], styles: Styles) -> str:
    tasks = {(g.cells[0].task, g.cells[0].task_params) for g in groups}
    none = [c for c in cells if c.ok and not _bytes(c) and (c.task, c.task_params) in tasks]
    names = unique(s.variant for s in styles.series(none))
    return f"Without a decode state: {', '.join(names)}." if names else ""


def _table(families: Families, group: TaskGroup, series: list[Series]) -> list[Line]:
    return [
        {
            **task_columns(group.cells[0]),
            "line": name,
            "point": told,
            "state_bytes": state_bytes,
            "metric": group.metric,
            "test": found.mean,
            "half_interval": found.half,
            "seeds": len(found.seeds),
            "chance": group.levels.get("chance"),
            "best_shortcut_score": group.levels.get("best shortcut"),
            "cell": found.cell,
        }
        for name, _, points in lines(families, series)
        for state_bytes, found, told, _ in points
    ]
