"""How sure a time is: draws of it, from how its visits (processes) scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Visits = Sequence[Sequence[float]]  # the samples of each visit, in seconds


def sure(visits: Visits) -> bool:
    """Whether there is enough for an interval: two visits, or three samples of a single one."""
    return len(visits) >= 2 or any(len(visit) >= 3 for visit in visits)


def draws(visits: Visits, rng: np.random.Generator, count: int) -> np.ndarray:
    """`count` times that the samples are compatible with; their 2.5 and 97.5 percentiles are the
    row's own interval. Of several visits: Student's t about the logarithms of their medians, since
    resampling three visits would give intervals that hold the truth in 75 of 100 cases. Of one:
    medians of resamples, which say nothing of how another process would differ."""
    if len(visits) == 1:
        values = np.asarray(visits[0], dtype=float)
        return np.median(values[rng.integers(0, len(values), size=(count, len(values)))], axis=-1)
    logs = np.log([float(np.median(visit)) for visit in visits])
    error = logs.std(ddof=1) / np.sqrt(len(logs))
    with np.errstate(over="ignore"):  # of two visits that disagree, a far draw may be infinite
        return np.exp(logs.mean() + error * rng.standard_t(len(logs) - 1, size=count))
