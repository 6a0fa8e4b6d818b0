"""Steps in a short series of values: binary segmentation with a permutation test of the largest CUSUM.

The statistic is the standardised difference of the two means at the best place to cut (Page 1954;
Hinkley 1970); its distribution where nothing changes comes from permutations of the same values, so
no shape of the noise is assumed, only that the order of the values says nothing (exchangeability).
O(permutations * n) for each segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

LEAST = 6  # values of a segment that is tested: of 5 the smallest p is above 0.05
PERMUTATIONS = 1999
LEVEL = 0.05


@dataclass(frozen=True)
class Step:
    """Values from `at` on differ from those before it."""

    at: int
    before: float  # mean of the segment that ends at `at`
    after: float
    p: float


def largest(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns, of each row of `values` [series, n], the largest statistic and where it cuts."""
    n = values.shape[-1]
    k = np.arange(1, n)
    total = values.sum(axis=-1, keepdims=True)
    left = np.cumsum(values, axis=-1)[..., :-1]
    gap = np.abs(left / k - (total - left) / (n - k)) * np.sqrt(k * (n - k) / n)
    return gap.max(axis=-1), gap.argmax(axis=-1) + 1


@cache
def _orders(n: int) -> np.ndarray:
    """Permutations of n places [PERMUTATIONS, n], the same for every series of that length."""
    return np.argsort(np.random.default_rng(n).random((PERMUTATIONS, n)), axis=1)


def best_cut(values: Sequence[float]) -> tuple[float, int]:
    """Returns the p value of the best cut and its place. A permutation that ties counts as one that
    exceeds, so the share of false alarms is the level at most."""
    own = np.asarray(values, dtype=float)
    statistic, cut = largest(own[None, :])
    drawn, _ = largest(own[_orders(len(own))])
    exceeds = int((drawn >= statistic[0] * (1 - 1e-12)).sum())
    return (1 + exceeds) / (1 + PERMUTATIONS), int(cut[0])


def steps(values: Sequence[float], level: float = LEVEL) -> list[Step]:
    """Returns the steps of one series in their order; each segment on both sides of a step that is
    found is tested again."""
    cuts: dict[int, float] = {}
    segments = [(0, len(values))]
    while segments:
        begin, end = segments.pop()
        if end - begin < LEAST:
            continue
        p, cut = best_cut(values[begin:end])
        if p <= level:
            cuts[begin + cut] = p
            segments += [(begin, begin + cut), (begin + cut, end)]
    edges = [0, *sorted(cuts), len(values)]
    means = [float(np.mean(values[a:b])) for a, b in zip(edges, edges[1:])]
    return [Step(at, means[i], means[i + 1], cuts[at]) for i, at in enumerate(sorted(cuts))]
