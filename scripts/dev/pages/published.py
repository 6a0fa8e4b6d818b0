"""Markdown: which pairs of variants stand in the order here that published tables have them in; of enough variants Kendall's tau-b with its interval."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnbench.plots.rows.agreement import LEAST, tau_interval, tau_of_pairs
from attnbench.plots.rows.learned import published as of_learned_settings
from attnbench.plots.rows.ranks import surely_better
from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.scores import TaskGroup, one_line, task_groups
from attnbench.plots.rows.settings import CUT, LOST, chosen_on_validation, is_error, marks_of
from attnbench.plots.rows.units import markdown

from .orders import named

NORMAL = 1.96  # standard errors of a 95 % interval
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

    shared: tuple[str, ...]  # the variants of both that count, in the published order
    theirs: np.ndarray  # of each pair of these whether the first is above (1), below (-1), or neither (0)
    ours: np.ndarray
    left_out: tuple[str, ...]  # the other variants of both, and why

    @property
    def told(self) -> list[str]:
        """The variants; pairs in the same order, in the opposite one, not told apart here, equal there; tau-b; what does not count."""
        above = np.triu_indices(len(self.shared), 1)
        theirs, ours = self.theirs[above], self.ours[above]
        counts = [np.sum(theirs * ours > 0), np.sum(theirs * ours < 0), np.sum((ours == 0) & (theirs != 0)), np.sum(theirs == 0)]
        return [_listed(self.shared), *map(str, counts), self.tau, ", ".join(self.left_out) or "—"]

    @property
    def tau(self) -> str:
        """With its interval, or why there is none."""
        if len(self.shared) < LEAST:
            return f"fewer than {LEAST} variants"
        tau = tau_of_pairs(self.theirs, self.ours)
        if np.isnan(tau):
            return "all tie"
        low, high = tau_interval(tau, len(self.shared))
        return f"{tau:.2f} [{low:.2f}, {high:.2f}]"


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
    """A line for each published column, beside the rows file of which most of its variants count."""
    ours = [(file.name, group) for file in files for group in _groups(file)]
    lines = []
    for column in columns(path):
        found = [(file, group, own) for file, group in ours if (own := compared(column, group))]
        best = max(found, key=lambda f: (len(f[2].shared), len(f[2].left_out)), default=None)
        about = [column.table, column.name, f"`{one_line(best[1]) if best else column.task}`"]
        lines.append([*about, best[0], *best[2].told] if best else [*about, "no rows", *["—"] * 7])
    heads = ["published table", "column", "task here", "rows", "variants of both", "same order", "opposite", "not told apart here", "equal there"]
    return markdown([*heads, "tau-b [95 %]", "do not count"], lines)


def sources(path: Path) -> str:
    """A line a table: where its figures stand."""
    given = tomllib.loads(path.read_text(encoding="utf-8"))["table"]
    lines = [[t["name"], t["source"], t["unit"], _listed(list(t["scores"]))] for t in given]
    return markdown(["published table", "source", "figures", "variants that are here"], lines)


def _groups(path: Path) -> list[TaskGroup]:
    """The tasks of a file, without settings that their control has not learned."""
    rows = of_learned_settings(read_rows([path]), without_control=False)
    return task_groups(chosen_on_validation(rows.of("accuracy")))


def compared(column: Column, group: TaskGroup) -> Compared | None:
    """None where the group has none of the variants."""
    trained = _trained(group, column.scores)
    if group.cells[0].task != column.task or not trained:
        return None
    best = group.best_shortcut()
    reasons = {name: _reason(choices, best[1] if best else None) for name, choices in trained.items()}
    own = {name: next(iter(trained[name].values())) for name, reason in reasons.items() if not reason}
    shared = tuple(sorted(own, key=lambda v: -column.scores[v]))
    theirs = np.array([column.scores[v] for v in shared])
    left_out = tuple(f"`{name}` ({reason})" for name, reason in reasons.items() if reason)
    return Compared(shared, np.sign(np.subtract.outer(theirs, theirs)), _above(group, [own[v] for v in shared]), left_out)


def _trained(group: TaskGroup, wanted: dict[str, Any]) -> dict[str, dict[Any, list[Cell]]]:
    """The cells of each of these variants, by its parameters."""
    by: dict[str, dict[Any, list[Cell]]] = {}
    for cell in group.cells:
        name = named(cell.variant, cell.params)
        if name in wanted and cell.status != "skipped":
            by.setdefault(name, {}).setdefault(cell.params, []).append(cell)
    return by


def _reason(choices: dict[Any, list[Cell]], shortcut: float | None) -> str:
    """Why a variant does not count; empty where it does."""
    if len(choices) > 1:
        return f"{len(choices)} choices of parameters"
    cells = next(iter(choices.values()))
    marks = marks_of(cells)
    if LOST in marks:
        return "a seed failed"
    if CUT in marks:
        return "cut off"
    low = 0 if shortcut is None else sum(_is_at_most(cell, shortcut) for cell in cells)
    return f"{low} of {len(cells)} at the shortcut" if low else ""


def _is_at_most(cell: Cell, shortcut: float) -> bool:
    """Whether the 95 % interval of the test score, over its examples, does not lie beyond that of the best shortcut. Such a plateau
    tells only that the training did not find the solution: with another rate, or more examples, the same layer may."""
    test, reach = float(cell.metric("test") or 0.0), NORMAL * float(cell.metric("test_stderr") or 0.0)
    return test + reach >= shortcut if is_error(cell.scored_by) else test - reach <= shortcut


def _above(group: TaskGroup, own: list[list[Cell]]) -> np.ndarray:
    """Of each pair whether the first is surely better, as on the page of the reference runs."""
    if not own:
        return np.zeros((0, 0))
    sign = -1.0 if is_error(group.metric) else 1.0
    seeds = min(len(cells) for cells in own)
    better = surely_better(np.array([[sign * float(c.metric("test") or 0) for c in cells[:seeds]] for cells in own])).astype(int)
    return better - better.T


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "—"
