"""Markdown: scores and ranks of variants by task, their stability over seeds, and which tasks and steps are
redundant."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attnbench.plots.rows.agreement import kendall_tau
from attnbench.plots.rows.ranks import (
    alike_groups,
    critical_difference,
    exact_p,
    kendall_w,
    order_of,
    ranks_of,
    smallest_subset,
    sure_ranks,
)
from attnbench.plots.rows.scores import over_seeds
from attnbench.plots.rows.units import markdown

from .by_family import Scores, scores_of
from .trainings import trainings

DRAWS, SEED = 2000, 20240607
SHARES = (0.25, 0.5, 0.75)  # of the steps of a training
FEWEST_TASKS = 2  # of an order over tasks
ALIKE = 0.9  # mean tau-b from which two orders are called the same


def table(path: Path, other: Path | None = None) -> str:
    """`other`: rows of another sweep, whose order of the same variants is compared. What was cut off has a score and no rank, and a
    task on which a variant was cut off says nothing of the order over tasks."""
    tasks = scores_of(path)
    variants = sorted({v for t in tasks for v in t.variants}, key=lambda v: (v != "full", v))
    common = [v for v in variants if all(v in t.variants for t in tasks)]
    whole = [t for t in tasks if set(common) <= set(t.finished)]
    parts = [_scores(tasks, variants), trainings(path), _seeds(tasks)]
    if len(common) < 2:
        return "\n\n".join(parts)
    if len(whole) < FEWEST_TASKS:
        names = ", ".join(f"`{t.task[0]}`" for t in whole)
        parts.append(
            f"There is no order over tasks: the {len(common)} variants that run on all {len(tasks)} tasks all trained to their end on "
            f"{len(whole) or 'none'} of them{f' ({names})' if names else ''}."
        )
        return "\n\n".join(parts)
    parts += _over_tasks(whole, common)
    parts.append(_over_steps(whole))
    if other:
        parts.append(_compared(whole, common, scores_of(other), other.name))
    return "\n\n".join(parts)


def _entry(scores: Scores, variant: str) -> str:
    """`0.934 ±0.117 (2)`: mean over seeds, half its 95 % interval, rank."""
    if variant not in scores.variants:
        return "—"
    found = over_seeds(list(scores.test[scores.variants.index(variant)]), None)
    spread = "" if found.half is None else f" ±{found.half:.3f}"
    place = f" ({_ranks(scores)[scores.finished.index(variant)]:g})" if variant in scores.finished else ""
    return f"{abs(found.mean):.3f}{scores.marks[variant]}{spread}{place}"


def _ranks(scores: Scores, common: list[str] | None = None) -> np.ndarray:
    """Of these variants, or all that trained to their end."""
    return sure_ranks(_tests(scores, scores.finished if common is None else common), scores.floor)


def _tests(scores: Scores, variants: list[str]) -> np.ndarray:
    return scores.test[[scores.variants.index(v) for v in variants]]


def _scores(tasks: list[Scores], variants: list[str]) -> str:
    lines = []
    for t in tasks:
        entries = [_entry(t, v) for v in variants]
        shortcut = "—" if t.best_shortcut is None else f"{t.best_shortcut:.3f}"
        lines.append([f"`{t.task[0]}`", *entries, shortcut])
    return markdown(["task", *(f"`{v}`" for v in variants), "best shortcut"], lines)


def _by_seed(scores: Scores) -> np.ndarray:
    """[seeds, variants] of those that trained to their end; what a shortcut scores too is a tie."""
    tests = _tests(scores, scores.finished)
    return np.stack([ranks_of(column) for column in (tests if scores.floor is None else np.maximum(tests, scores.floor)).T])


def _seeds(tasks: list[Scores]) -> str:
    lines = []
    for t in tasks:
        count, seeds = len(t.finished), t.test.shape[1]
        ranks = _by_seed(t) if count > 1 and seeds > 1 else None
        w = kendall_w(ranks) if ranks is not None else float("nan")
        found = "—" if np.isnan(w) else f"{w:.2f}"
        p = "—" if ranks is None or np.isnan(w) else f"{exact_p(ranks):.2g}"
        lines.append([f"`{t.task[0]}`", f"{count} of {len(t.variants)}", f"{seeds}", found, p])
    return markdown(["task", "trained to their end", "seeds", "Kendall's W over seeds", "p"], lines)


def _over_tasks(tasks: list[Scores], common: list[str]) -> list[str]:
    ranks = np.stack([_ranks(t, common) for t in tasks])
    if (ranks == ranks[:, :1]).all():
        return [f"On no task is one of {', '.join(f'`{v}`' for v in common)} surely better than another."]
    rng = np.random.default_rng(SEED)
    best = order_of(ranks)[0]
    drawn = ranks[rng.integers(0, len(tasks), (DRAWS, len(tasks)))]  # [draws, tasks, variants]
    low, high = np.nanpercentile([kendall_w(one) for one in drawn], (2.5, 97.5))
    means_of_draws = drawn.mean(axis=1)
    ends = np.percentile(means_of_draws, (2.5, 97.5), axis=0)
    best_in = float(np.mean(means_of_draws[:, best] <= means_of_draws.min(axis=1) + 1e-9))
    means = ", ".join(
        f"`{common[i]}` {ranks[:, i].mean():.2f} ({ends[0, i]:.2f} to {ends[1, i]:.2f})" for i in order_of(ranks)
    )
    difference = critical_difference(len(common), len(tasks))
    groups = "; ".join(
        ", ".join(f"`{common[i]}`" for i in group) for group in alike_groups(ranks.mean(axis=0), difference)
    )
    subset, share = smallest_subset(ranks, [t.seconds for t in tasks])
    taus = [kendall_tau(ranks[i], ranks[j]) for i in range(len(tasks)) for j in range(i)]
    defined = [t for t in taus if not np.isnan(t)]
    whole = sum(t.seconds for t in tasks)
    part = sum(tasks[i].seconds for i in subset)
    between = (
        f"Between two tasks tau-b is {np.median(defined):.2f} in the median, {min(defined):.2f} at least and {max(defined):.2f} at most, over "
        f"{len(defined)} pairs; {len(taus) - len(defined)} pairs have a task on which all tie."
        if defined
        else "No two tasks have orders to compare."
    )
    return [
        f"Over the {len(tasks)} tasks, of the {len(common)} variants that run on all of them, Kendall's W is {kendall_w(ranks):.2f} "
        f"({low:.2f} to {high:.2f}). Mean ranks: {means}. `{common[best]}` has the best mean rank, alone or with another, in {best_in:.0%} of draws.",
        f"Mean ranks tell two variants apart at 5 % from {difference:.2f} on (Nemenyi's test over all pairs). Groups of what they do "
        f"not tell apart: {groups}.",
        between,
        f"The fewest tasks with the same order as all: {', '.join(f'`{tasks[i].task[0]}`' for i in subset)}, with {part / whole:.0%} of the seconds of "
        f"training; {share:.0%} of all choices of {_count(len(subset), 'task')} give that order, so that the choice is fitted to these rows."
        if share > 0
        else "Two variants have the same mean rank over all tasks.",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _at(curve: dict[int, float], share: float) -> float:
    """The best validation up to that share of the steps; NaN before the first."""
    last = max(curve, default=0)
    return max((v for step, v in curve.items() if step <= share * last), default=float("nan"))


def _over_steps(tasks: list[Scores]) -> str:
    found = {}
    for share in SHARES:
        taus = []
        for t in tasks:
            whole = [seeds for v, seeds in zip(t.variants, t.curves, strict=True) if v in t.finished]
            early, late = (np.array([np.mean([_at(c, part) for c in seeds]) for seeds in whole]) for part in (share, 1.0))
            if t.floor is not None:
                early, late = np.maximum(early, t.floor), np.maximum(late, t.floor)
            if not np.isnan(early).any():
                taus.append(kendall_tau(ranks_of(early), ranks_of(late)))
        defined = [x for x in taus if not np.isnan(x)]
        if defined:
            found[share] = float(np.mean(defined))
    words = ", ".join(f"{value:.2f} at {share:.0%}" for share, value in found.items())
    enough = [s for s in found if all(found[r] >= ALIKE for r in found if r >= s)]
    then = f"from {min(enough):.0%} of the steps on it stays at {ALIKE:g} or above" if enough else f"before the end it does not stay at {ALIKE:g}"
    return f"Tau-b between the ranks by the best validation score so far and those at the end, the mean over tasks: {words}; {then}."


def _compared(tasks: list[Scores], common: list[str], others: list[Scores], name: str) -> str:
    shared = [v for v in common if all(v in t.finished for t in others)]
    if len(shared) < 2:
        return f"{name} has fewer than two of these variants, trained to their end, on all of its tasks: there is no order to compare."
    means = [np.stack([_ranks(t, shared) for t in each]).mean(axis=0) for each in (tasks, others)]
    tau = kendall_tau(*means)
    return (
        f"Tau-b between these mean ranks and those of {name} ({', '.join(f'`{t.task[0]}`' for t in others)}), over "
        f"{', '.join(f'`{v}`' for v in shared)}: {'not defined, since all of one side tie' if np.isnan(tau) else f'{tau:.2f}'}."
    )
