"""How well rankings agree: ranks with ties, Kendall's W with its exact test, tau-b, and subsets of tasks."""

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


def tau(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """Kendall's tau-b; NaN where either ties all."""
    return float(stats.kendalltau(a, b).statistic)


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
