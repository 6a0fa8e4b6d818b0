"""How rankings agree, and what they tell apart: ranks with ties, Kendall's W with its exact test, the fewest tasks of one
order, and the groups of Nemenyi's test."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import stats

RESOLUTION = 0.01  # scores that round to the same hundredth are a tie
MOST_ORDERS = 20_000  # of the exact test


def ranks_of(scores: np.ndarray) -> np.ndarray:
    """1 for the greatest of the last axis; scores that round alike share the mean of their ranks."""
    return np.asarray(stats.rankdata(-np.round(scores / RESOLUTION), axis=-1))


def surely_better(scores: np.ndarray, floor: float | None = None) -> np.ndarray:
    """[items, items] of `scores` [items, seeds]: whether the first has the greater mean, by more than RESOLUTION / 2 and
    beyond a 95 % interval of the difference (Welch 1947). What is at or below `floor`, the score of a rule without
    attention, learned nothing: none of these is better than another."""
    means, seeds = scores.mean(axis=1), scores.shape[1]
    if floor is not None:
        means = np.maximum(means, floor)
    apart = means[:, None] - means[None, :]
    if seeds == 1:
        return apart > RESOLUTION / 2
    of_mean = scores.var(axis=1, ddof=1) / seeds
    both = of_mean[:, None] + of_mean[None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = (seeds - 1) * both**2 / (of_mean[:, None] ** 2 + of_mean[None, :] ** 2)
    reach = stats.t.ppf(0.975, np.where(both > 0, freedom, 1.0)) * np.sqrt(both)
    return apart > np.maximum(reach, RESOLUTION / 2)


def sure_ranks(scores: np.ndarray, floor: float | None = None) -> np.ndarray:
    """1 for what is surely better than all others: one more than the items that are better, and half of those of which
    it is not known."""
    better = surely_better(scores, floor)
    undecided = ~better & ~better.T  # each item with itself too
    return np.asarray(1 + better.sum(axis=0) + (undecided.sum(axis=0) - 1) / 2)


def kendall_w(ranks: np.ndarray) -> float:
    """Kendall's coefficient of concordance of `ranks` [judges, items], corrected for ties (Kendall and Babington Smith
    1939): 1 where all judges agree, about 1/judges for random orders. NaN where every judge ties all."""
    judges, items = ranks.shape
    alike = (ranks[:, :, None] == ranks[:, None, :]).sum(axis=2)  # of each item, itself included
    ties = float((alike**2 - 1).sum())
    most = judges**2 * (items**3 - items) - judges * ties
    return 12 * float(_spread(ranks.sum(axis=0), judges)) / most if most > 0 else float("nan")


def _spread(sums: np.ndarray, judges: int) -> np.ndarray:
    """Squares of the items' sums of ranks about their mean, summed over the last axis."""
    return np.square(sums - judges * (sums.shape[-1] + 1) / 2).sum(axis=-1)


def exact_p(ranks: np.ndarray) -> float:
    """The share of all orders of each judge's ranks but the first's that give at least this W."""
    judges, items = ranks.shape
    orders = list(itertools.permutations(range(items)))
    if len(orders) ** (judges - 1) > MOST_ORDERS:
        raise ValueError(f"{judges} rankings of {items} have too many orders for an exact test")
    sums = ranks[:1]
    for row in ranks[1:]:  # an order moves ties with their ranks: W differs by the spread alone
        sums = (sums[:, None] + row[np.array(orders)]).reshape(-1, items)
    return float(np.mean(_spread(sums, judges) >= _spread(ranks.sum(axis=0), judges) - 1e-9))


def order_of(ranks: np.ndarray) -> tuple[int, ...]:
    """Items from the best mean rank to the worst, of `ranks` [tasks, items]."""
    return tuple(int(i) for i in np.argsort(ranks.mean(axis=0), kind="stable"))


def smallest_subset(ranks: np.ndarray, seconds: Sequence[float]) -> tuple[tuple[int, ...], float]:
    """The fewest tasks, of these the least seconds, whose mean ranks order the items as all tasks do; and the share of
    all choices of so many tasks that do."""
    tasks, wanted = len(ranks), order_of(ranks)
    for size in range(1, tasks + 1):
        choices = list(itertools.combinations(range(tasks), size))
        same = [c for c in choices if order_of(ranks[list(c)]) == wanted and _is_strict(ranks[list(c)])]
        if same or size == tasks:
            best = min(same or choices, key=lambda c: sum(seconds[i] for i in c))
            return best, len(same) / len(choices)
    raise ValueError("there is no task")


def _is_strict(ranks: np.ndarray) -> bool:
    """Whether no two items have the same mean rank."""
    means = ranks.mean(axis=0)
    return len(np.unique(np.round(means, 9))) == len(means)


def critical_difference(items: int, judges: int) -> float:
    """Two mean ranks of `items` over so many `judges` that lie this far apart differ at 5 %, all pairs together (Nemenyi's
    test, as Demšar 2006, JMLR 7, has it)."""
    quantile = float(stats.studentized_range.ppf(0.95, items, np.inf)) / np.sqrt(2)
    return quantile * float(np.sqrt(items * (items + 1) / (6 * judges)))


def alike_groups(means: np.ndarray, difference: float) -> list[tuple[int, ...]]:
    """The largest sets of items whose mean ranks lie less than `difference` apart, from the best on; an item that has
    nobody near is a set of its own."""
    order = [int(i) for i in np.argsort(means, kind="stable")]
    groups: list[tuple[int, ...]] = []
    for first in range(len(order)):
        group = tuple(i for i in order[first:] if means[i] - means[order[first]] < difference)
        if not groups or not set(group) <= set(groups[-1]):
            groups.append(group)
    return groups
