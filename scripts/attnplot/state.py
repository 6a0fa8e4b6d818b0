"""Score against the bytes that decoding keeps: a panel a task, a line through a variant's sizes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from .accuracy import CHANCE, SHORTCUT
from .caption import brief, caption, unique
from .curves import bytes_text, grey_lines
from .ends import wrapped
from .families import tag
from .looks import BEHIND
from .metric import score_axis, unless_error
from .page import Picture
from .place import Label, place_labels
from .rows import Cell, Rows
from .sheets import Place
from .style import Look, Series, Styles
from .task_panels import TaskLayout, TaskWords, bar_line, task_pages
from .tasks import ONE_SEED, Score, TaskGroup, score, stand_ins, task_columns, task_groups
from .trained import told_apart
from .tuned import tuning_note, winners

# State in bytes, score over seeds, what tells it from its line, all that tells it.
Point = tuple[int, Score, str, str]


def state(rows: Rows, styles: Styles) -> list[Picture]:
    cells = _every_size(rows.of("accuracy"))
    drawn = [c for c in cells if c.ok and _bytes(c)]
    groups = [g for g in task_groups(drawn) if len({_bytes(c) for c in g.cells}) > 1]
    if not groups:
        return []
    series = styles.series([c for g in groups for c in g.cells])
    families = _families(series)

    def words(shown: Sequence[TaskGroup]) -> str:
        own = [c for g in shown for c in g.cells]
        return caption(
            rows,
            [c for c in cells if any(c.task == g.cells[0].task for g in shown)],
            "State: what decoding keeps of one sequence at the task's length, all layers together. "
            "A line joins a variant's settings in the order of their state, named at the points, "
            f"the variant at its largest; bars are 95 % intervals: {ONE_SEED}, of several "
            "t-intervals.",
            _stateless(cells, shown, styles),
            stand_ins(own),
            tuning_note(own),
        )

    def subtitle(shown: Sequence[TaskGroup]) -> str:
        better = unless_error(
            (g.metric for g in shown), "up and to the left is better", "down and left"
        )
        return f"test score; {better}"

    def draw(axes: Axes, place: Place[TaskGroup]) -> None:
        def lines(chosen: list[Series]) -> list[tuple[Look, list[Point]]]:
            keys = {s.key: s for s in chosen}
            found = [
                (look, _points([keys[s.key] for s in own if s.key in keys]))
                for look, own in families.values()
            ]
            return [(look, points) for look, points in found if points]

        _draw(axes, place.panel, lines(place.own), lines(place.others))

    def table(group: TaskGroup, chosen: list[Series]) -> list[dict[str, Any]]:
        keys = {s.key: s for s in chosen}
        return [
            _line(group, name, point)
            for name, (_, own) in families.items()
            for point in _points([keys[s.key] for s in own])
        ]

    legend = [
        (Line2D([], [], **SHORTCUT), "best shortcut"),
        (Line2D([], [], **CHANCE), "chance"),
    ]
    return task_pages(
        TaskWords("accuracy-state", "Accuracy against decode state", subtitle, words, legend),
        TaskLayout(most_columns=2, height=2.2, row_gap=0.9, below=0.55),
        groups,
        series,
        styles,
        draw,
        table,
        by_variant=True,
    )


def _bytes(cell: Cell) -> int:
    return int(cell.metric("state_bytes") or 0)


def _every_size(cells: list[Cell]) -> list[Cell]:
    """Tuned settings that change the state are kept, the others chosen on validation: cells compete
    only with those of the same state."""

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


def _families(series: list[Series]) -> dict[str, tuple[Look, list[Series]]]:
    """By variant and by what is no number among its settings; the name lists those that are, the
    look is that of the defaults."""
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
    """`linear heads=1, 2, 4`: the labels with a setting, or the variant alone."""
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


def _draw(
    axes: Axes,
    group: TaskGroup,
    lines: list[tuple[Look, list[Point]]],
    others: list[tuple[Look, list[Point]]],
) -> None:
    points = [p for _, own in lines for p in own]
    chance, shortcut = group.reference("chance"), group.best_shortcut()
    levels = [*([chance] if chance is not None else []), *([shortcut[1]] if shortcut else [])]
    for value, look in zip((chance, shortcut and shortcut[1]), (CHANCE, SHORTCUT)):
        if value is not None:
            axes.axhline(value, **look, zorder=1.5)
    for look, own in lines:
        bar_line(axes, look, *zip(*((p[0], p[1].mean, p[1].half or 0.0) for p in own)))
    score_axis(axes, group.metric, [*(p[1].mean for p in points), *levels])
    _bytes_axis(axes, [p[0] for p in points])
    behind = [[(p[0], p[1].mean) for p in own] for _, own in others]
    grey_lines(axes, behind)
    if behind:
        axes.plot(*zip(*(at for own in behind for at in own)), "o", color=BEHIND, markersize=3)
    labels = [
        Label(p[0], p[1].mean, 3.4, _told(own, p), look.ink)
        for look, own in lines
        for p in own
        if _told(own, p)
    ]
    taken = [(p[0], p[1].mean, 3.4) for p in points]
    bar = (-1, -0.5, 0.5, 1)
    taken += [(p[0], p[1].mean + t * p[1].half, 1.5) for p in points if p[1].half for t in bar]
    place_labels(axes, labels, levels, size=8, points=taken)


def _told(line: list[Point], point: Point) -> str:
    """All at the largest state, at the others what differs."""
    return wrapped(point[3]) if point is line[-1] else point[2]


def _bytes_axis(axes: Axes, values: list[int]) -> None:
    axes.set_xscale("log", base=2)
    low, high = math.log2(min(values)), math.log2(max(values))
    room = 0.07 * (high - low)
    axes.set_xlim(2 ** (low - room), 2 ** (high + room))
    step = max(1, math.ceil((high - low) / 5))
    ticks = [2.0**p for p in range(math.ceil(low - room), math.floor(high + room) + 1, step)]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(bytes_text))
    axes.set_xlabel("decode state of one sequence")


def _stateless(cells: list[Cell], groups: Sequence[TaskGroup], styles: Styles) -> str:
    tasks = {(g.cells[0].task, g.cells[0].task_params) for g in groups}
    none = [c for c in cells if c.ok and not _bytes(c) and (c.task, c.task_params) in tasks]
    names = unique(s.variant for s in styles.series(none))
    return f"Without a decode state: {', '.join(names)}." if names else ""


def _line(group: TaskGroup, name: str, point: Point) -> dict[str, Any]:
    state_bytes, found, told, _ = point
    shortcut = group.best_shortcut()
    return {
        **task_columns(group.cells[0]),
        "line": name,
        "point": told,
        "state_bytes": state_bytes,
        "metric": group.metric,
        "test": found.mean,
        "half_interval": found.half,
        "seeds": len(found.seeds),
        "chance": group.reference("chance"),
        "best_shortcut_score": shortcut[1] if shortcut else None,
    }
