"""Test score of exact attention's weights under caches that forget, against the positions that they keep: a panel for
each task, a line for each method of eviction, and one for exact attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ..layout.axes import LEVELS, entry, level_entries
from ..layout.page import Picture
from ..layout.panels import grey_lines
from ..layout.sheets import Place
from ..rows.kept import BUDGET, EVICT, entries_of
from ..rows.learned import setting_key
from ..rows.read import FAILURES, Cell, Rows
from ..rows.scores import ONE_SEED, TaskGroup, over_seeds, series_of, task_groups
from ..rows.settings import SETTING, marks_of, told_apart, winners
from ..rows.style import Series, Styles
from ..rows.terms import EXACT
from .accuracy import Line, Points, TaskPage, cell_lines, draw_lines, task_pages

NOTE = (
    "Weights are trained once with exact attention and scored with every position as a step of a decoder that keeps so many positions of each "
    "head, beside its own; quest keeps all and reads so many, in pages of 16, and has no point below one. "
    f"Bars are 95 % intervals: {ONE_SEED}, of several t-intervals over the seeds."
)
KEPT = "kept"  # the metric of by_method's cells: scores by budget
Kept = dict[float, Line]  # entries of `by_params` by their budget, ascending


def kept_by(cell: Cell, method: str) -> Kept:
    """Returns the scores of the cell's weights under the method, with nothing else changed."""
    found = {float(dict(params)[BUDGET]): entry for params, entry in entries_of(cell) if dict(params)[EVICT] == method}
    return dict(sorted(found.items()))


def methods_of(cell: Cell) -> list[str]:
    """Returns the methods that the weights of the cell were scored under, in the order of the row."""
    return list(dict.fromkeys(dict(params)[EVICT] for params, _ in entries_of(cell)))


def by_method(rows: Rows) -> Rows:
    """Returns each cell of exact attention that has such scores, with its own score at every budget, and again for each
    method as if that were a variant. A training that failed, of which another seed has scores, is there without any:
    the scores of the others carry its mark."""
    cells = [c for c in winners(rows.of("accuracy")) if c.variant == EXACT]
    methods: dict[str, dict[str, None]] = {}
    for cell in cells:
        methods.setdefault(setting_key(cell), {}).update(dict.fromkeys(methods_of(cell)))
    out: list[Cell] = []
    for cell in told_apart([c for c in cells if (methods_of(c) if c.ok else c.status in FAILURES and methods[setting_key(c)])]):
        settings = tuple((k, v) for k, v in cell.params if k.startswith(SETTING))
        each = {method: kept_by(cell, method) for method in methods[setting_key(cell)]}
        own = {"test": cell.metric("test"), "stderr": cell.metric("test_stderr")}
        each = {EXACT: {budget: own for kept in each.values() for budget in kept}, **each}
        out += [replace(cell, variant=m, params=settings, metrics={**cell.metrics, KEPT: kept}) for m, kept in each.items()]
    # A method may have the name of a variant, whose place in the catalogue says nothing of the look of its line.
    runs = [{name: value for name, value in run.items() if name != "variants"} for run in rows.runs]
    return replace(rows, cells=out, runs=runs)


def points_by_budget(cells: Sequence[Cell]) -> Points:
    out = []
    for budget in budgets_of(cells):
        entries = [e for c in cells if (e := c.metrics[KEPT].get(budget))]
        found = over_seeds([float(e["test"]) for e in entries], entries[0].get("stderr"))
        out.append((budget, found.mean, found.half or 0.0))
    return out


def budgets_of(cells: Sequence[Cell]) -> list[float]:
    return sorted({budget for c in cells for budget in c.metrics[KEPT]})


def eviction(rows: Rows, _: Styles) -> list[Picture]:
    """A share of the positions and a number of them are not one axis: a task has the budgets of its rows, of one kind."""
    held = by_method(rows)
    groups, styles = task_groups(held.of("accuracy")), Styles(held)
    kind = TaskPage(
        "accuracy-eviction",
        "Accuracy under caches that forget",
        "test score of the weights of exact attention",
        ("further up and to the left is better", "further down and to the left"),
        [*(entry(s.look.line(), s.label) for s in series_of(groups, styles)), *level_entries(g.levels for g in groups)],
        draw=_draw,
        table=_table,
    )
    return task_pages(kind, held, styles, groups, lambda *_: (NOTE,))


def _draw(axes: Axes, place: Place[TaskGroup]) -> None:
    """All lines end in one point, that of the whole cache: the legend names them, and the panel's title has their marks."""
    axes.set_title(axes.get_title(loc="left") + marks_of(place.panel.cells), pad=16)
    levels = place.panel.levels
    for level, value in levels.items():
        axes.axhline(value, **LEVELS[level], zorder=1.5)
    draw_lines(axes, place, points_by_budget, levels.values())
    budgets = budgets_of(place.panel.cells)
    axes.set_xscale("log", base=2)
    room = (budgets[-1] / budgets[0]) ** 0.06
    axes.set_xlim(budgets[0] / room, budgets[-1] * room)
    axes.xaxis.set_major_locator(FixedLocator(budgets))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:g}"))
    axes.set_xlabel("share of the positions that is kept" if budgets[-1] < 1 else "positions that are kept")
    grey_lines(axes, ([p[:2] for p in points_by_budget(s.cells)] for s in place.others))


def _table(group: TaskGroup, series: list[Series]) -> list[Line]:
    def lines(cell: Cell) -> list[Line]:
        told: Line = {"seed": cell.axes.get("seed"), "metric": group.metric}
        return [told | {"budget": b, "test": e["test"], "stderr": e["stderr"]} for b, e in cell.metrics[KEPT].items()]

    return cell_lines(series, lines)
