"""Markdown: what the weights of exact attention score under caches that forget, by the positions that they keep and by distance."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attnbench.plots.kinds.eviction import KEPT, budgets_of, by_method
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.scores import Score, TaskGroup, over_seeds, shortcut_words, task_groups
from attnbench.plots.rows.settings import CUT, is_error, marks_of
from attnbench.plots.rows.terms import EXACT
from attnbench.plots.rows.units import markdown

from .by_family import WIDEST

Tests = dict[int, float]  # scores by seed
PARTS = {2: "half", 3: "third", 4: "quarter", 5: "fifth"}
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
QUARTER = 4  # of the length: the budget of the tables by distance


def table(path: Path) -> str:
    """Of each task a line a method and a column a budget: the mean over seeds ± half of its 95 % interval, and the share of what exact attention
    scores with these seeds. Bold are the best of a budget and what is not told apart from it; where a training was cut off there is no best."""
    return "\n\n".join(f"{heading(g)}\n\n{scores(g)}" for g in _groups(path))


def distances(path: Path) -> str:
    """Of each task a line a method and a column a part of the labels by distance, at a quarter of the length."""
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


def heading(group: TaskGroup) -> str:
    every = _methods(group)[EXACT]
    exact = [c for c in every if c.ok]
    found, best = over_seeds([float(c.metric("test") or 0) for c in exact], exact[0].metric("test_stderr")), group.best_shortcut()
    beside = f"; the best shortcut, {shortcut_words(best[0])}, {best[1]:.3f}" if best else ""
    seeds = f"{len(exact)} seeds" if len(exact) > 1 else "1 seed"
    scored = f"{told(found, group.metric)}{marks_of(every)} ({seeds})"
    return f"`{group.cells[0].task}`, {exact[0].length} positions, {group.label}: exact attention scores {scored}{beside}."


def scores(group: TaskGroup) -> str:
    methods, budgets = _methods(group), budgets_of(group.cells)
    tests = {name: {b: _by_seed(own, b) for b in budgets} for name, own in methods.items()}
    every = len(methods[EXACT])
    exact = tests.pop(EXACT)
    is_ranked = CUT not in marks_of(group.cells)
    best = {b: leaders({n: t[b] for n, t in tests.items()}, is_error(group.metric)) if is_ranked else set() for b in budgets}
    lines = []
    for name, by in tests.items():
        line = [f"`{name}`"]
        for b in budgets:
            if not by[b]:
                line.append("—")
                continue
            score = told(over_seeds(list(by[b].values()), None), group.metric)
            score = f"**{score}**" if name in best[b] else score
            line.append(f"{score}{marks_of(methods[name])} ({share_of_exact(by[b], exact[b]):.0%}{_seeds(len(by[b]), every)})")
        lines.append(line)
    return markdown(["method", *(f"{b:g} kept" for b in budgets)], lines)


def _by_seed(cells: list[Cell], budget: float) -> Tests:
    return {c.axes["seed"]: float(c.metrics[KEPT][budget]["test"]) for c in cells if budget in c.metrics[KEPT]}


def _seeds(own: int, every: int) -> str:
    return f", {own} of {every} seeds" if own < every else ""


def share_of_exact(own: Tests, exact: Tests) -> float:
    """Of the means over the seeds that both have."""
    both = own.keys() & exact.keys()
    return float(np.mean([own[s] for s in both]) / np.mean([exact[s] for s in both]))


def leaders(tests: dict[str, Tests], less: bool) -> set[str]:
    """The method of the best mean among those with most seeds, and those whose difference from it, over the seeds that both have, has a 95 %
    interval that holds zero; nothing where all are equal."""
    known = {name: found for name, found in tests.items() if found}
    if len({tuple(sorted(found.items())) for found in known.values()}) < 2:
        return set()
    most = max(map(len, known.values()))
    whole = {name: float(np.mean(list(found.values()))) for name, found in known.items() if len(found) == most}
    best = known[(min if less else max)(whole, key=lambda name: whole[name])]
    apart = {name: [best[s] - found[s] for s in sorted(best.keys() & found.keys())] for name, found in known.items()}
    gaps = {name: over_seeds(found, None) for name, found in apart.items() if found}
    return {name for name, gap in gaps.items() if gap.half is not None and abs(gap.mean) <= gap.half}


def _far(group: TaskGroup, budget: float) -> str:
    """Each seed has borders of its own, so that a column is a part of its labels, and a note has what these span."""
    lines, parts = [], []
    for name, cells in _methods(group).items():
        kept = [c.metrics if name == EXACT else c.metrics[KEPT].get(budget, {}) for c in cells]
        known = [k["by_distance"] for k in kept if k.get("by_distance")]
        if known:
            parts = list(zip(*known, strict=True))
            scores = (told(over_seeds([float(b["accuracy"]) for b in of], None), group.metric) for of in parts)
            lines.append([f"`{name}`{_seeds(len(known), len(cells))}", *(score + marks_of(cells) for score in scores)])
    if len(lines) < 2:
        return ""
    heads = parts_of(len(parts))
    spans = (f"{head} {min(b['from'] for b in of)} to {max(b['to'] for b in of)}" for head, of in zip(heads, parts, strict=True))
    return f"{markdown(['method', *heads], lines)}\n\nDistances, over all seeds, whose borders differ: {'; '.join(spans)}."


def parts_of(count: int) -> list[str]:
    """`nearest fifth`, `second fifth` and so on to the farthest."""
    part = PARTS.get(count, f"of {count}")
    return [f"{'nearest' if not i else 'farthest' if i == count - 1 else ORDINALS[i]} {part}" for i in range(count)]


def told(found: Score, metric: str) -> str:
    """The mean ± half of its interval; the range of the seeds where that leaves what a score can be, or says nothing."""
    if found.half is None:
        return f"{found.mean:.3f}"
    low, high = found.mean - found.half, found.mean + found.half
    is_outside = low < 0 or (not is_error(metric) and (high > 1 or found.half > WIDEST))
    if is_outside and len(found.seeds) > 1 and found.half > 0:
        return f"{found.mean:.3f} ({min(found.seeds):.3f} to {max(found.seeds):.3f})"
    return f"{found.mean:.3f} ± {found.half:.3f}"
