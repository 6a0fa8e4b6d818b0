"""Markdown: what the weights of exact attention score under caches that forget, by the positions that they keep and by distance."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attnbench.plots.kinds.eviction import KEPT, budgets_of, by_method
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.scores import Score, TaskGroup, over_seeds, shortcut_words, task_groups
from attnbench.plots.rows.settings import is_error, marks_of
from attnbench.plots.rows.terms import EXACT
from attnbench.plots.rows.units import markdown

QUARTER = 4  # of the length: the budget of the tables by distance


def table(path: Path) -> str:
    """Of each task a line a method and a column a budget: the mean over seeds ± half of its 95 % interval, and the share of what exact attention scores.
    Bold are the best of a budget and what is not told apart from it; where a training was cut off there is no best."""
    return "\n\n".join(f"{_heading(g)}\n\n{_scores(g)}" for g in _groups(path))


def distances(path: Path) -> str:
    """Of each task a line a method and a column a range of distances, at a quarter of the length."""
    parts = []
    for group in _groups(path):
        budget = budgets_of(group.cells)[-1] / QUARTER
        if lines := _far(group, budget):
            parts.append(f"`{group.cells[0].task}`, {budget:g} positions kept:\n\n{lines}")
    return "\n\n".join(parts)


def _groups(path: Path) -> list[TaskGroup]:
    groups = task_groups(by_method(published(read_rows([path]), without_control=False)).of("accuracy"))
    if not groups:
        raise ValueError(f"{path.name} has no scores under eviction; give rows with --test-with evict=…")
    return groups


def _methods(group: TaskGroup) -> dict[str, list[Cell]]:
    """The cells of each by seed, exact attention last."""
    names = sorted(dict.fromkeys(c.variant for c in group.cells), key=lambda name: name == EXACT)
    return {name: sorted((c for c in group.cells if c.variant == name), key=lambda c: c.axes["seed"]) for name in names}


def _heading(group: TaskGroup) -> str:
    exact = _methods(group)[EXACT]
    found, best = over_seeds([float(c.metric("test") or 0) for c in exact], exact[0].metric("test_stderr")), group.best_shortcut()
    beside = f"; the best shortcut, {shortcut_words(best[0])}, {best[1]:.3f}" if best else ""
    seeds = f"{len(exact)} seeds" if len(exact) > 1 else "1 seed"
    return f"`{group.cells[0].task}`, {exact[0].length} positions, {group.label}: exact attention scores {_told(found)}{marks_of(exact)} ({seeds}){beside}."


def _scores(group: TaskGroup) -> str:
    methods, budgets = _methods(group), budgets_of(group.cells)
    tests = {name: {b: [float(c.metrics[KEPT][b]["test"]) for c in own if b in c.metrics[KEPT]] for b in budgets} for name, own in methods.items()}
    exact = tests.pop(EXACT)
    best = {b: set() if marks_of(group.cells) else leaders({n: t[b] for n, t in tests.items()}, is_error(group.metric)) for b in budgets}
    lines = []
    for name, by in tests.items():
        line = [f"`{name}`"]
        for b in budgets:
            if not by[b]:
                line.append("—")
                continue
            found = over_seeds(by[b], None)
            told = f"**{_told(found)}**" if name in best[b] else _told(found)
            line.append(f"{told}{marks_of(methods[name])} ({found.mean / np.mean(exact[b]):.0%})")
        lines.append(line)
    return markdown(["method", *(f"{b:g} kept" for b in budgets)], lines)


def leaders(tests: dict[str, list[float]], less: bool) -> set[str]:
    """The method of the best mean, and those whose difference from it over the same seeds has a 95 % interval that holds zero; nothing where all are
    equal."""
    known = {name: found for name, found in tests.items() if found}
    if len({tuple(found) for found in known.values()}) < 2:
        return set()
    best = (min if less else max)(known, key=lambda name: float(np.mean(known[name])))
    apart = {name: over_seeds([a - b for a, b in zip(known[best], found, strict=True)], None) for name, found in known.items()}
    return {name for name, gap in apart.items() if gap.half is not None and abs(gap.mean) <= gap.half}


def _far(group: TaskGroup, budget: float) -> str:
    lines, heads = [], []
    for name, cells in _methods(group).items():
        kept = [c.metrics if name == EXACT else c.metrics[KEPT].get(budget, {}) for c in cells]
        bins = [of for each in zip(*(k.get("by_distance") or [] for k in kept), strict=False) if len(of := list(each)) == len(cells)]
        if bins:
            heads = [f"{min(b['from'] for b in of)} to {max(b['to'] for b in of)}" for of in bins]
            lines.append([f"`{name}`", *(_told(over_seeds([float(b["accuracy"]) for b in of], None)) + marks_of(cells) for of in bins)])
    return markdown(["method", *heads], lines) if len(lines) > 1 else ""


def _told(found: Score) -> str:
    return f"{found.mean:.3f}" + ("" if found.half is None else f" ± {found.half:.3f}")
