"""Whether the order of variants on one task is their order on another: Kendall's tau, and its interval.

The other task is one whose score is bits a token, such as `lm` on real text: what short tasks are made to predict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit  # scipy.stats takes over a second to load

from .scores import TaskGroup, one_line, score
from .settings import BITS, is_error

LEAST = 8  # variants; the interval of fewer says nothing
NOTE = (
    "Kendall's tau (b) between the mean scores of the variants that both tasks have, each with one choice of parameters and training to its "
    "end: 1 where both put them in the same order, -1 in the opposite one. The 95 % interval is that of Fieller, Hartley and Pearson (1957, Biometrika 44) with "
    f"Student's quantile, over variants; fewer than {LEAST} get none."
)


@dataclass(frozen=True)
class Agreement:
    task: str
    with_task: str  # that is scored in bits
    variants: int
    tau: float  # of better scores: greater is better on both
    interval: tuple[float, float] | None

    @property
    def interval_text(self) -> str:
        return f"{self.interval[0]:.2f} to {self.interval[1]:.2f}" if self.interval else ""


def agreements(groups: Sequence[TaskGroup]) -> list[Agreement]:
    """Of each task with each that is scored in bits; without pairs that share fewer than three
    variants, or of which one scores all of these alike."""
    found = []
    in_bits = [g for g in groups if g.metric == BITS]
    for place, other in enumerate(in_bits):
        for group in [*(g for g in groups if g.metric != BITS), *in_bits[:place]]:
            own, theirs = _merits(group), _merits(other)
            shared = sorted(own.keys() & theirs.keys())
            if len(shared) < 3:
                continue
            tau = kendall_tau([own[v] for v in shared], [theirs[v] for v in shared])
            if not math.isfinite(tau):  # all equal on one side
                continue
            interval = tau_interval(tau, len(shared)) if len(shared) >= LEAST else None
            found.append(Agreement(one_line(group), one_line(other), len(shared), tau, interval))
    return found


def kendall_tau(x: Sequence[float], y: Sequence[float]) -> float:
    """Returns tau-b, for which pairs that are equal on one side count as neither; NaN where one side is all equal."""
    return tau_of_pairs(*(np.sign(np.subtract.outer(v, v)) for v in (np.asarray(x), np.asarray(y))))


def tau_of_pairs(one: np.ndarray, other: np.ndarray) -> float:
    """The same of two matrices that say of each pair whether the first is above (1), below (-1), or neither (0)."""
    above = np.triu_indices(len(one), 1)
    a, b = one[above], other[above]
    counted = math.sqrt(float(np.sum(a * a) * np.sum(b * b)))
    return float(np.sum(a * b)) / counted if counted else math.nan


def tau_interval(tau: float, count: int) -> tuple[float, float]:
    """Returns the 95 % interval: the inverse hyperbolic tangent of tau has a variance of 0.437 / (count - 4). A tau of 1 is
    taken as if half a pair disagreed. With the normal quantile the intervals of few variants are too narrow where tau is
    large (87 of 100 of 8 hold a tau of 0.71); with Student's of count - 2 degrees 94 to 99 of 100 do."""
    most = 1 - 1 / math.comb(count, 2)
    middle = math.atanh(max(-most, min(most, tau)))
    reach = float(stdtrit(count - 2, 0.975)) * math.sqrt(0.437 / (count - 4))
    return max(-1.0, math.tanh(middle - reach)), min(1.0, math.tanh(middle + reach))


def _merits(group: TaskGroup) -> dict[tuple[str, object], float]:
    """The mean score of each variant and its parameters, greater for better; without what was cut off."""
    sign = -1.0 if is_error(group.metric) else 1.0
    cells: dict[tuple[str, object], list] = {}
    for cell in group.cells:
        cells.setdefault((cell.variant, cell.params), []).append(cell)
    scores = {key: score(own) for key, own in cells.items()}
    return {key: sign * found.mean for key, found in scores.items() if found and not found.is_unfinished}
