"""How sure a time is: draws of the time, from how its visits (processes) scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

DRAWS = 1000
Visits = Sequence[Sequence[float]]  # the samples of each visit, in seconds


def sure(visits: Visits) -> bool:
    """Returns whether an interval is possible: of two visits, or of three samples of a single
    visit."""
    return len(visits) >= 2 or any(len(visit) >= 3 for visit in visits)


def draws(visits: Visits, rng: np.random.Generator, count: int = DRAWS) -> np.ndarray:
    """Returns `count` times that agree with the samples; their 2.5 and 97.5 percentiles are the
    row's own interval. Several visits give Student's t about the logarithms of their medians:
    resampling three visits would give intervals that hold the truth in 75 of 100 cases. One visit
    gives medians of resamples, which do not tell how another process would differ."""
    if len(visits) == 1:
        values = np.asarray(visits[0], dtype=float)
        return np.median(values[rng.integers(0, len(values), size=(count, len(values)))], axis=-1)
    logs = np.log([float(np.median(visit)) for visit in visits])
    error = logs.std(ddof=1) / np.sqrt(len(logs))
    with np.errstate(over="ignore"):  # of two visits that disagree, a far draw may be infinite
        return np.exp(logs.mean() + error * rng.standard_t(len(logs) - 1, size=count))


def central(drawn: np.ndarray) -> tuple[Any, Any]:
    """Returns the ends of the middle 95 %, of each column where there are several. Both ends are
    draws, not values between draws: a crossing may lie at infinity, outside the measured lengths."""
    found, count = np.sort(drawn, axis=0), len(drawn)
    return found[int(0.025 * count)], found[math.ceil(0.975 * count) - 1]
