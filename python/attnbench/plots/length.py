"""Score against length, of weights trained at one length: one panel for each task, one line for
each variant and kind of positions."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from .caption import brief, unique
from .curves import length_axis, length_ticks
from .ends import make_room
from .marks import CHANCE, entry, level_entry
from .page import Picture
from .rows import Cell, Rows, canonical
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
from .trained import told_apart
from .tuned import winners
from .units import length_text

TRAINED = {"color": "#b0b0b0", "linestyle": "-", "linewidth": 3.2, "alpha": 0.55}
NOTE = (
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
        height=1.9,
        row_gap=1.03,
        below=0.68,
        draw=_draw,
        table=_table,
    )
    return task_pages(kind, rows, styles, beyond_training(rows), _notes)


def _notes(shown: Sequence[TaskGroup], series: list[Series]) -> tuple[str, ...]:
    return NOTE, _positions([c for g in shown for c in g.cells]), _skipped(shown, series)


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


def points(cells: Sequence[Cell]) -> Points:
    out = []
    for n in sorted({n for c in cells for n in _scored(c)}):
        entries = [e for c in cells if (e := _scored(c).get(n))]
        found = over_seeds([float(e["test"]) for e in entries], entries[0].get("stderr"))
        out.append((n, found.mean, found.half or 0.0))
    return out


def _draw(axes: Axes, place: Place[TaskGroup]) -> None:
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
    ends = draw_lines(axes, place, points, chances.values())
    length_axis(axes, lengths)
    share = make_room(axes, ends, max(lengths))
    length_ticks(axes, lengths, share)
    factors = {n: e["factor"] for c in group.cells for n, e in _scored(c).items()}
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda n, _: f"{length_text(n)}\n\u00d7{factors[round(n)]:.3g}")
    )
    finish_lines(axes, place, points, ends, share)


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


def _table(group: TaskGroup, series: list[Series]) -> list[Line]:
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
