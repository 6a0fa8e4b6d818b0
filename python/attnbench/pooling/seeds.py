"""Scores are of seeds, not of machines: the same seed gives nearly the same training wherever it runs, and the same bits on one instruction set. So a
difference of scores has the error of its seeds; more machines with the same seeds tell no more of it, and machines with other seeds add theirs.
Random effects over machines would take the agreement of one seed with itself for certainty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .variances import Variance, degrees_of_sum

EXACTLY = math.inf  # degrees of freedom of an error that is no estimate
Scores = tuple[tuple[int, float], ...]  # (seed, score), by seed


@dataclass(frozen=True)
class Seeds:
    """A variant's scores and exact attention's. The standard errors are those over the test examples, for a side with a single seed."""

    own: Scores
    rival: Scores
    own_error: float
    rival_error: float

    @property
    def difference(self) -> tuple[float, float, float]:
        """The difference of the means, its standard error and its degrees of freedom, by Welch (1947). Of a single seed, the error is that over the
        test examples, which does not tell how seeds differ."""
        sides = [[score for _, score in side] for side in (self.own, self.rival)]
        variances = [
            Variance(float(np.var(scores, ddof=1)) / len(scores), len(scores) - 1) if len(scores) > 1 else Variance(error**2, EXACTLY)
            for scores, error in zip(sides, (self.own_error, self.rival_error), strict=True)
        ]
        return float(np.mean(sides[0]) - np.mean(sides[1])), math.sqrt(sum(v.value for v in variances)), degrees_of_sum(variances)


def together(every: Sequence[Seeds]) -> Seeds:
    """Of several runs or machines: each seed once, with the mean of its scores."""
    errors = [float(np.mean([getattr(one, name) for one in every])) for name in ("own_error", "rival_error")]
    return Seeds(_means(one.own for one in every), _means(one.rival for one in every), errors[0], errors[1])


def _means(every: Iterable[Scores]) -> Scores:
    by_seed: dict[int, list[float]] = {}
    for scores in every:
        for seed, score in scores:
            by_seed.setdefault(seed, []).append(score)
    return tuple((seed, float(np.mean(scores))) for seed, scores in sorted(by_seed.items()))
