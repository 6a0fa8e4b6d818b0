"""Score against length, of weights trained at one: a panel a task, a line a variant x positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from .accuracy import CHANCE
from .caption import brief, caption, unique
from .curves import grey_lines, length_axis, length_text, length_ticks
from .ends import End, make_room, name_ends
from .metric import score_axis, unless_error
from .page import Picture
from .rows import Cell, Rows
from .sheets import Place
from .style import Series, Styles
from .task_panels import TaskLayout, TaskWords, bar_line, task_pages
from .tasks import ONE_SEED, TaskGroup, over_seeds, stand_ins, task_columns, task_groups
from .trained import told_apart
from .tuned import tuning_note, winners

TRAINED = {"color": "#b0b0b0", "linestyle": "-", "linewidth": 3.2, "alpha": 0.55}


def length(rows: Rows, styles: Styles) -> list[Picture]:
    scored = [c for c in winners(rows.of("accuracy")) if c.ok and _scored(c)]
    cells = told_apart(scored, always=("positions",))
    groups = [g for g in task_groups(cells) if len({n for c in g.cells for n in _scored(c)}) > 1]
    if not groups:
        return []
    series = styles.series([c for g in groups for c in g.cells])

    def words(shown: Sequence[TaskGroup]) -> str:
        drawn = [c for g in shown for c in g.cells]
        return caption(
            rows,
            drawn,
            "The same weights at multiples of the length that they were trained at; bars are 95 % "
            f"intervals: {ONE_SEED}, of several t-intervals over the seeds.",
            _positions(drawn),
            _skipped(shown, series),
            stand_ins(drawn),
            tuning_note(drawn),
        )

    def subtitle(shown: Sequence[TaskGroup]) -> str:
        better = unless_error(
            (g.metric for g in shown), "a line that falls does not generalise", "one that rises"
        )
        return f"test score beyond the length of training; {better}"

    legend = [
        (Line2D([], [], **CHANCE), "chance"),
        (Line2D([], [], **TRAINED), "length of training"),
    ]
    return task_pages(
        TaskWords("accuracy-length", "Accuracy by length", subtitle, words, legend),
        TaskLayout(most_columns=2, height=1.9, row_gap=1.03, below=0.68),
        groups,
        series,
        styles,
        _draw,
        _table,
    )


def _table(group: TaskGroup, series: list[Series]) -> list[dict[str, Any]]:
    return [line for s in series for c in s.cells for line in _lines(group, s, c)]


def _entries(cell: Cell) -> list[dict[str, Any]]:
    return list(cell.metrics.get("by_length") or [])


def _scored(cell: Cell) -> dict[int, dict[str, Any]]:
    """What has a score, by length."""
    return {int(e["length"]): e for e in _entries(cell) if e.get("test") is not None}


def _points(cells: tuple[Cell, ...]) -> list[tuple[int, float, float]]:
    """Length, mean over seeds and half an interval."""
    out = []
    for n in sorted({n for c in cells for n in _scored(c)}):
        entries = [e for c in cells if (e := _scored(c).get(n))]
        found = over_seeds([float(e["test"]) for e in entries], entries[0].get("stderr"))
        out.append((n, found.mean, found.half or 0.0))
    return out


def _draw(axes: Axes, place: Place[TaskGroup]) -> None:
    group = place.panel
    chances = {
        n: float(e["chance"])
        for c in group.cells
        for n, e in sorted(_scored(c).items())
        if e.get("chance") is not None
    }
    lengths = sorted({n for c in group.cells for n in _scored(c)})
    axes.plot(sorted(chances), [chances[n] for n in sorted(chances)], **CHANCE, zorder=1.5)
    for trained in sorted({_trained_at(c) for c in group.cells}):
        axes.axvline(trained, **TRAINED, zorder=1)
    values, ends = list(chances.values()), []
    for s in place.own:
        points = _points(s.cells)
        if not points:
            continue
        values += [mean for _, mean, _ in points]
        bar_line(axes, s.look, *zip(*points))
        ends.append(End(points[-1][:2], s.label, s.look))
    score_axis(axes, group.metric, values)
    length_axis(axes, lengths)
    share = make_room(axes, ends, max(lengths))
    length_ticks(axes, lengths, share)
    grey_lines(axes, ([p[:2] for p in _points(s.cells)] for s in place.others))
    factors = {n: int(e["factor"]) for c in group.cells for n, e in _scored(c).items()}
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda n, _: f"{length_text(n)}\n\u00d7{factors[round(n)]}")
    )
    name_ends(axes, ends, share)


def _trained_at(cell: Cell) -> int:
    entry = next((e for e in _entries(cell) if int(e["factor"]) == 1), None)
    if entry:
        return int(entry["length"])
    first = _entries(cell)[0]
    return int(first["length"]) // int(first["factor"])


def _positions(cells: list[Cell]) -> str:
    """The kind of positions, where all cells share one: else it tells the lines apart."""
    kinds = unique(str(c.training["positions"]) for c in cells if "positions" in c.training)
    return f"Positions: {kinds[0]}." if len(kinds) == 1 else ""


def _skipped(groups: Sequence[TaskGroup], series: list[Series]) -> str:
    """`No score: full learned at x2, x4 (why)`: equal reasons are told once."""
    told: dict[str, dict[str, list[int]]] = {}
    for group in groups:
        for s in group.select(series):
            for entry in (e for c in s.cells for e in _entries(c) if e.get("test") is None):
                factors = told.setdefault(str(entry.get("reason")), {}).setdefault(s.label, [])
                factors.append(int(entry["factor"]))
    parts = []
    for reason, labels in told.items():
        factors = sorted({f for own in labels.values() for f in own})
        times = ", ".join(f"\u00d7{f}" for f in factors)
        parts.append(f"{brief(list(labels))} at {times} ({reason})")
    return f"No score: {'; '.join(parts)}." if parts else ""


def _lines(group: TaskGroup, series: Series, cell: Cell) -> list[dict[str, Any]]:
    return [
        {
            **task_columns(cell),
            "series": series.label,
            "variant": series.variant,
            "positions": cell.training.get("positions"),
            "seed": cell.axes.get("seed"),
            "metric": group.metric,
            "trained_at": _trained_at(cell),
            "factor": entry["factor"],
            "length": entry["length"],
            "test": entry.get("test"),
            "stderr": entry.get("stderr"),
            "chance": entry.get("chance"),
            "reason": entry.get("reason"),
        }
        for entry in _entries(cell)
    ]
