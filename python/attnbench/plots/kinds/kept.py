"""Score against the bytes that decoding keeps: of each task a panel of exact attention that forgets, trained once and scored under
each cache, and one of the other caches and states; one line a family."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from ..layout.axes import LEVELS, bar_line, beside, byte_ticks, entry, fixed_ticks, halo, level_entries, score_axis
from ..layout.caption import caption
from ..layout.page import Page, Picture
from ..rows.kept import BUDGET, evicts, is_exact_cache, is_whole, kv_heads, line_of, scored
from ..rows.read import FAILURES, Cell, Rows
from ..rows.scores import ONE_SEED, Score, TaskGroup, score, task_columns, task_groups
from ..rows.settings import chosen_on_validation, is_error, key_of, marks_of, unless_error, without_settings
from ..rows.style import BASELINE, COLORS, Look, Styles, exact, look
from ..rows.units import bytes_text

WIDTH, HEIGHT = 4.4, 1.9  # inches; a phone shows the width whole
FORGETS, OTHERS = "exact attention that forgets", "other caches and states"
NOTE = (
    "Bytes: what decoding keeps of one sequence, all layers. Exact attention is trained once; its weights are "
    f"scored under each cache. A line joins the sizes of one family. Bars are 95 % intervals: {ONE_SEED}, of several t-intervals."
)


@dataclass(frozen=True)
class Point:
    """One setting of a family: its bytes, its score over seeds, the words that tell it, and its cells."""

    size: int
    score: Score
    told: str
    cells: tuple[Cell, ...]

    @property
    def marks(self) -> str:
        return marks_of(self.cells)


@dataclass(frozen=True)
class Panel:
    """Lines of a task, by name."""

    group: TaskGroup
    what: str
    lines: dict[str, list[Point]]

    @property
    def points(self) -> list[Point]:
        return [p for own in self.lines.values() for p in own]


def kept(rows: Rows, _: Styles) -> list[Picture]:
    panels = panels_of(rows)
    if not panels:
        return []
    cells = [c for p in panels for point in p.points for c in point.cells]
    looks = looks_of(panels)
    words = caption(rows, list({id(c): c for c in cells}.values()), NOTE)
    metrics = [p.group.metric for p in panels]
    page = Page(
        "Score against what decoding keeps",
        "up and to the left is better" + (", of errors and bits down" if unless_error(metrics, "", "x") else ""),
        words,
        [*(entry(own.line(), name) for name, own in looks.items()), *level_entries(p.group.levels for p in panels)],
        [HEIGHT] * len(panels),
        1,
        width=WIDTH,
        left=0.56,
        gaps=[0.3] + [0.68] * (len(panels) - 1),
        key=" \u00b7 ".join(key_of(cells)),
    )
    for place, panel in enumerate(panels):
        _draw(page.panel(place, 0), panel, looks)
    return [Picture("accuracy-kept", page.figure, pd.DataFrame([line for p in panels for line in _table(p)]), words)]


def panels_of(rows: Rows) -> list[Panel]:
    """None where no row was scored under several caches."""
    cells = [c for c in scored(chosen_on_validation(rows.of("accuracy"))) if c.metric("state_bytes") or c.status in FAILURES]
    if not any(evicts(c) for c in cells if c.ok):
        return []
    panels = []
    for group in task_groups(cells):
        forgetting = [c for c in group.cells if evicts(c)]
        exactly = [c for c in group.cells if is_whole(c)]
        whole = [c for c in exactly if is_exact_cache(c)]
        others = [c for c in group.cells if c.variant != BASELINE]
        if forgetting:
            panels.append(Panel(group, FORGETS, lines_of([*whole, *forgetting])))
        if others or len(exactly) > len(whole):
            panels.append(Panel(group, OTHERS, lines_of([*exactly, *others])))
    return [p for p in panels if p.points]


def lines_of(cells: Iterable[Cell]) -> dict[str, list[Point]]:
    """The points of each line in the order of their bytes, exact attention first."""
    settings: dict[str, dict[Any, list[Cell]]] = {}
    for cell in cells:
        key = without_settings(cell.params), kv_heads(cell)
        settings.setdefault(line_of(cell), {}).setdefault(key, []).append(cell)
    found = {}
    for name in sorted(settings, key=lambda name: name != BASELINE):
        points = [
            Point(int(next(c.metric("state_bytes") or 0 for c in own if c.ok)), of, told_of(own[0]), tuple(own))
            for own in settings[name].values()
            if (of := score(own))
        ]
        if points:
            found[name] = sorted(points, key=lambda p: p.size)
    return found


def told_of(cell: Cell) -> str:
    """What tells a point from the others of its line: `budget=8`, `kv_heads=2`, `window=16`."""
    params = dict(without_settings(cell.params))
    if evicts(cell):
        return f"budget={float(params[BUDGET]):g}"
    own, heads = kv_heads(cell)
    if cell.variant == BASELINE:
        return f"kv_heads={own}" if own != heads else ""
    return ", ".join(f"{k}={v}" for k, v in params.items())


def looks_of(panels: Iterable[Panel]) -> dict[str, Look]:
    """A marker, a dash and a colour a line; the same in every panel."""
    names = dict.fromkeys(name for p in panels for name in p.lines)
    others = [name for name in names if name != BASELINE]
    return {BASELINE: exact(0)} | {name: look(i, i % (len(COLORS) - 1)) for i, name in enumerate(others)}


def _draw(axes: Axes, panel: Panel, looks: dict[str, Look]) -> None:
    task = " ".join(panel.group.title.split("\n")[:1])
    axes.set_title(f"{task}: {panel.what}")
    for level, value in panel.group.levels.items():
        axes.axhline(value, **LEVELS[level], zorder=1.5)
    for name, points in panel.lines.items():
        for is_hollow in (False, True):
            own = [(p.size, p.score.mean, p.score.half or 0.0) for p in points if p.score.is_unfinished == is_hollow]
            if own:
                bar_line(axes, looks[name], *zip(*own), is_hollow=is_hollow)
        for p in points:
            if p.marks:
                beside(axes, p.marks, (p.size, p.score.mean), (4, -5), color=looks[name].ink, path_effects=halo())
    sizes = [p.size for p in panel.points]
    score_axis(axes, panel.group.metric, [*(p.score.mean for p in panel.points), *panel.group.levels.values()])
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes) / 1.2, max(sizes) * 1.2)
    fixed_ticks(axes.xaxis, byte_ticks(*axes.get_xlim(), 5), bytes_text)
    axes.set_xlabel("bytes kept of one sequence")
    axes.set_ylabel(panel.group.label + (" (less is better)" if is_error(panel.group.metric) else ""))


def _table(panel: Panel) -> list[dict[str, Any]]:
    return [
        {
            **task_columns(panel.group.cells[0]),
            "panel": panel.what,
            "line": name,
            "point": p.told,
            "state_bytes": p.size,
            "metric": panel.group.metric,
            "test": p.score.mean,
            "half_interval": p.score.half,
            "seeds": len(p.score.seeds),
            "marks": p.marks,
            "chance": panel.group.levels.get("chance"),
            "best_shortcut_score": panel.group.levels.get("best shortcut"),
            "cell": p.score.cell,
        }
        for name, points in panel.lines.items()
        for p in points
    ]
