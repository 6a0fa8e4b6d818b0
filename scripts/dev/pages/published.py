"""Markdown: whether variants stand in the order here that published tables have them in, by Kendall's tau-b with its interval."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnbench.plots.rows.agreement import tau_interval, tau_of_pairs
from attnbench.plots.rows.learned import published as of_learned_settings
from attnbench.plots.rows.ranks import surely_better
from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.scores import TaskGroup, one_line, task_groups
from attnbench.plots.rows.settings import CUT, LOST, chosen_on_validation, is_error, marks_of
from attnbench.plots.rows.units import markdown

from .orders import named

FEWEST = 5  # variants; the interval of fewer is not defined
KEYS = {"name", "source", "unit", "tasks", "scores"}


@dataclass(frozen=True)
class Column:
    """One column of a published table."""

    table: str
    name: str
    task: str  # of attnbench
    scores: dict[str, float]  # by variant, as `named` writes it


@dataclass(frozen=True)
class Compared:
    """A column beside the trainings of one task."""

    column: Column
    trained: frozenset[str]  # the variants of both
    shared: tuple[str, ...]  # those whose trainings all ended by themselves, in the published order
    tau: float | None = None  # None of too few; NaN where all tie on one side

    @property
    def told(self) -> list[str]:
        """The variants, and tau-b with its interval or why there is none."""
        names = ", ".join(f"`{v}`" for v in self.shared) or "—"
        if self.tau is None:
            cut = len(self.trained) - len(self.shared)
            more = f"; {cut} more did not train to {'its' if cut == 1 else 'their'} end" if cut else ""
            return [names, f"not enough rows: {len(self.shared)} of {len(self.column.scores)} variants, {FEWEST} needed{more}"]
        if np.isnan(self.tau):
            return [names, "no order: all tie"]
        low, high = tau_interval(self.tau, len(self.shared))
        return [names, f"{self.tau:.2f} [{low:.2f}, {high:.2f}]"]


def columns(path: Path) -> list[Column]:
    """Of the file of published tables; ValueError where one is not whole."""
    found = []
    for table in tomllib.loads(path.read_text(encoding="utf-8"))["table"]:
        if set(table) != KEYS:
            raise ValueError(f"{path.name}: a table has the keys {sorted(table)}; expected {sorted(KEYS)}")
        for variant, scores in table["scores"].items():
            if len(scores) != len(table["tasks"]):
                raise ValueError(f"{path.name}: {table['name']}: {variant} has {len(scores)} scores; expected {len(table['tasks'])}")
        for place, (name, task) in enumerate(table["tasks"].items()):
            found.append(Column(table["name"], name, task, {v: float(s[place]) for v, s in table["scores"].items()}))
    return found


def table(path: Path, *files: Path) -> str:
    """A line for each published column, beside the rows file in which most of its variants trained to their end."""
    ours = [(file.name, group) for file in files for group in _groups(file)]
    lines = []
    for column in columns(path):
        found = [(file, group, own) for file, group in ours if (own := compared(column, group))]
        best = max(found, key=lambda f: (len(f[2].shared), len(f[2].trained)), default=None)
        about = [column.table, column.name, f"`{one_line(best[1]) if best else column.task}`"]
        lines.append([*about, best[0], *best[2].told] if best else [*about, "—", "—", "no rows"])
    return markdown(["published table", "column", "task here", "rows", "variants of both", "tau-b [95 %]"], lines)


def sources(path: Path) -> str:
    """A line a table: where its figures stand."""
    given = tomllib.loads(path.read_text(encoding="utf-8"))["table"]
    lines = [[t["name"], t["source"], t["unit"], ", ".join(f"`{v}`" for v in t["scores"])] for t in given]
    return markdown(["published table", "source", "figures", "variants that are here"], lines)


def _groups(path: Path) -> list[TaskGroup]:
    """The tasks of a file, without settings that their control has not learned."""
    rows = of_learned_settings(read_rows([path]), without_control=False)
    return task_groups(chosen_on_validation(rows.of("accuracy")))


def compared(column: Column, group: TaskGroup) -> Compared | None:
    """None where the group has none of the variants."""
    trained = {name for c in group.cells if (name := named(c.variant, c.params)) in column.scores}
    if group.cells[0].task != column.task or not trained:
        return None
    own = finished(group, column.scores)
    shared = tuple(sorted(own, key=lambda v: -column.scores[v]))
    if len(shared) < FEWEST:
        return Compared(column, frozenset(trained), shared)
    theirs = np.array([column.scores[v] for v in shared])
    tau = tau_of_pairs(np.sign(np.subtract.outer(theirs, theirs)), _above(group, [own[v] for v in shared]))
    return Compared(column, frozenset(trained), shared, tau)


def finished(group: TaskGroup, wanted: Sequence[str] | dict[str, Any]) -> dict[str, list[Cell]]:
    """The cells of each of these variants that has one choice of parameters and whose trainings all ended by themselves."""
    by: dict[str, dict[Any, list[Cell]]] = {}
    for cell in group.cells:
        name = named(cell.variant, cell.params)
        if name in wanted and cell.status != "skipped":
            by.setdefault(name, {}).setdefault(cell.params, []).append(cell)
    return {
        name: cells
        for name, choices in by.items()
        if len(choices) == 1 and not {CUT, LOST} & set(marks_of(cells := next(iter(choices.values()))))
    }


def _above(group: TaskGroup, own: list[list[Cell]]) -> np.ndarray:
    """Of each pair whether the first is surely better: as on the page of the reference runs, what is not, or does not exceed a
    shortcut, ties."""
    sign = -1.0 if is_error(group.metric) else 1.0
    seeds = min(len(cells) for cells in own)
    tests = np.array([[sign * float(c.metric("test") or 0) for c in cells[:seeds]] for cells in own])
    best = group.best_shortcut()
    better = surely_better(tests, sign * best[1] if best else None).astype(int)
    return better - better.T
