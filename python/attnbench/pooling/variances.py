"""Variances of few observations, steadied by those of the other cells of a run: the rule of harness/compare/variances.cc, which `attnbench compare`
follows (Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3, article 3). Tests hold the two to each other's figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, polygamma

LEAST_CELLS = 8  # of fewer, a prior says more of chance than of the cells
SHARE, MOST_DEGREES, CELLS_OF_A_DEGREE = 1 / 3, 10.0, 6.0  # of the prior's weight


class Variance(NamedTuple):
    value: float
    degrees: float  # of freedom; 0 where a single visit tells nothing


def degrees_of_sum(parts: Iterable[Variance]) -> float:
    """The degrees of freedom of a sum of independent values with these variances (Satterthwaite 1946, Welch 1947); infinite where no part is an
    estimate, or one is NaN. Each part has degrees of freedom."""
    parts = list(parts)
    weighed = sum(v.value**2 / v.degrees for v in parts)
    return sum(v.value for v in parts) ** 2 / weighed if weighed > 0 else math.inf


def steadied(own: Sequence[Variance]) -> list[Variance]:
    """Each variance is drawn towards what is usual among them, by as much as they show that cells are alike, and gains degrees of freedom by that.
    Where cells differ widely, or fewer than eight have a variance above 0, each keeps nearly or exactly its own."""
    used = [v for v in own if v.value > 0 and v.degrees > 0]
    if len(used) < LEAST_CELLS:
        return list(own)
    values, half = np.array([v.value for v in used]), np.array([v.degrees for v in used]) / 2
    levels = np.log(values) - digamma(half) + np.log(half)
    scatter = levels.var(ddof=1) - polygamma(1, half).mean()  # beyond what chance alone gives
    degrees, usual = 2 * MOST_DEGREES / SHARE, math.exp(levels.mean())
    if scatter > 0:
        degrees = 2 * _inverse_trigamma(scatter)
        usual = math.exp(levels.mean() + digamma(degrees / 2) - math.log(degrees / 2))
    weight = min(SHARE * degrees, MOST_DEGREES, len(used) / CELLS_OF_A_DEGREE)
    return [_drawn(v, usual, weight) if v.degrees > 0 else v for v in own]


def _drawn(own: Variance, usual: float, weight: float) -> Variance:
    whole = weight + own.degrees
    return Variance((weight * usual + own.degrees * own.value) / whole, whole)


def _inverse_trigamma(value: float) -> float:
    """x of trigamma(x) = value > 0, by bisection: the function falls."""
    low, high = 1e-4, 1e4
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if polygamma(1, middle) > value else (low, middle)
    return low
