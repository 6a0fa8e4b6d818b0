"""The ratio of two medians and its bootstrap interval over interleaved rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap

RESAMPLES, COVERAGE = 2000, 0.95
LEAST = 6  # rounds for an interval; of fewer, not even the full range covers 95 %


@dataclass(frozen=True)
class Ratio:
    """How many times longer the peer takes: above 1, attnbench is faster. `coverage` is of the
    interval; None: low and high are the range of the rounds' own ratios, too few for a level."""

    median: float
    low: float
    high: float
    coverage: float | None

    def text(self) -> str:
        brackets = "[]" if self.coverage else "()"
        return f"{self.median:.2f} {brackets[0]}{self.low:.2f}, {self.high:.2f}{brackets[1]}"


def ratio_of(ours: Sequence[float], peer: Sequence[float]) -> Ratio:
    """Sample i of both was taken in the same round, so rounds are resampled, not samples: what
    slows the whole machine for a while slows both."""
    n = len(ours)
    if n == 0 or n != len(peer):
        raise ValueError(f"a ratio needs pairs of samples, got {n} and {len(peer)}")
    mine, other = np.asarray(ours, float), np.asarray(peer, float)
    median = float(_of_medians(mine, other))
    if n < LEAST:
        ratios = [*(other / mine), median]
        return Ratio(median, float(min(ratios)), float(max(ratios)), None)
    found = bootstrap(
        (mine, other),
        _of_medians,
        paired=True,
        n_resamples=RESAMPLES,
        confidence_level=COVERAGE,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Ratio(median, float(found.low), float(found.high), COVERAGE)


def _of_medians(mine: np.ndarray, other: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.median(other, axis=axis) / np.median(mine, axis=axis)
