"""A figure with its 95 % interval, and what is made of such figures; crossings of `attnbench table
--crossings` as figures: the length from which on a variant takes less than exact attention."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit  # scipy.stats takes over a second to load

from attnbench.plots.rows.crossing import central, draws, sure
from attnbench.plots.rows.read import Cell

SEED = 20240607
Z = 1.959964  # of a 95 % interval of a normal distribution


@dataclass(frozen=True)
class Estimate:
    """`low` and `high` are the ends of the 95 % interval; equal to `value` where it is exact. Where `among` is not 1 they are
    farther apart: the intervals of so many findings of one entry hold all their figures together in 95 % of cases."""

    value: float
    low: float
    high: float
    among: int = 1

    @property
    def exact(self) -> bool:
        return self.low == self.value == self.high

    def mapped(self, change: Callable[[float], float]) -> Estimate:
        """Of an increasing function of the figure."""
        return Estimate(change(self.value), change(self.low), change(self.high), self.among)

    def __truediv__(self, divisor: float) -> Estimate:
        return self.mapped(lambda x: x / divisor)


def exact(value: float) -> Estimate:
    return Estimate(float(value), float(value), float(value))


def time_of(cell: Cell) -> Estimate:
    """Seconds, with the interval of the row."""
    median = cell.metric("time_s.median")
    low, high = cell.metric("time_s.ci_low"), cell.metric("time_s.ci_high")
    assert median is not None
    return Estimate(median, median if low is None else low, median if high is None else high)


def ratio_of_times(cell: Cell, other: Cell) -> Estimate:
    """The time of `cell` over that of `other`, by draws from their visits. Of a cell with too few
    samples for an interval, any ratio: it decides nothing."""
    point = time_of(cell).value / time_of(other).value
    visits = cell.visited(), other.visited()
    if not all(sure(visit) for visit in visits):
        return Estimate(point, 0.0, float("inf"))
    rng = np.random.default_rng(SEED)
    low, high = central(draws(visits[0], rng) / draws(visits[1], rng))
    return Estimate(point, float(min(low, point)), float(max(high, point)))


def score_of(cells: Sequence[Cell], name: str = "test") -> Estimate:
    """The mean of a score over seeds. Three or more: Student's t between the seeds. Fewer: the
    standard error over the test examples alone, which does not tell how seeds differ."""
    values = [cell.metric(name) for cell in cells]
    if len(values) >= 3:
        return mean_of([v for v in values if v is not None])
    errors = [cell.metric(f"{name}_stderr") or 0.0 for cell in cells]
    mean = float(np.mean(values))
    half = Z * float(np.sqrt(np.sum(np.square(errors)))) / len(values)
    return Estimate(mean, mean - half, mean + half)


def mean_of(values: Sequence[float], among: int = 1) -> Estimate:
    """Of three or more values that are drawn alike: the mean, by Student's t. `among` many such
    intervals hold all their means together in 95 % of cases (Bonferroni)."""
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / np.sqrt(len(values))
    half = float(stdtrit(len(values) - 1, 1 - 0.025 / among)) * error
    return Estimate(mean, mean - half, mean + half, among)


def difference(one: Estimate, other: Estimate) -> Estimate:
    """Of two independent figures, from the halves of their intervals."""
    value = one.value - other.value
    low = np.hypot(one.value - one.low, other.high - other.value)
    high = np.hypot(one.high - one.value, other.value - other.low)
    return Estimate(value, float(value - low), float(value + high), max(one.among, other.among))


def quotient(one: Estimate, other: Estimate) -> Estimate:
    """Of two positive figures: the widest interval that their ends allow. Infinite over infinite is
    not a number, which decides nothing."""
    return Estimate(_over(one.value, other.value), _over(one.low, other.high), _over(one.high, other.low))


def _over(one: float, other: float) -> float:
    return float("nan") if np.isinf(one) and np.isinf(other) else one / other if other else np.inf


def share(value: float, count: int) -> Estimate:
    """A share of `count` examples, by Wilson's interval. A published share that was rounded need not
    be a whole number of them."""
    middle = (value + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = Z / (1 + Z * Z / count) * float(np.sqrt(value * (1 - value) / count + (Z / (2 * count)) ** 2))
    return Estimate(value, middle - half, middle + half)


Pair = tuple[str, str, str]  # variant without parameters, measure, rival
# What the program says of a pair whose order does not change within the lengths.
ALWAYS = re.compile(r"(faster|less|slower|more) (?:at every length )?from (\d+) to (\d+)")


def crossings_of(lines: Iterable[dict[str, Any]]) -> dict[Pair, Estimate]:
    """By pair. Where curves cross more than once, the last crossing counts. Pairs of which nothing
    is decided are left out."""
    found: dict[Pair, Estimate] = {}
    for line in lines:
        pair = line["variant"].partition("[")[0], line["measure"], line["rival"]
        one = crossing_of(line)
        if one is not None:  # the lines of a pair are in the order of their lengths
            found[pair] = one
    return found


def crossing_of(line: dict[str, Any]) -> Estimate | None:
    """Where the variant takes less at every decided length, the crossing lies at the first of them
    or before. Where it takes more at every one, or more beyond a crossing, the crossing lies beyond
    the last length."""
    if line["becomes"] == "more":
        return Estimate(math.inf, float(line["to"]), math.inf)
    if line["crossing"] is not None:
        # Memory is exact: at `low` the variant does not take less yet, and lengths are whole numbers.
        first = line["low"] + (line["measure"] == "memory" and line["high"] > line["low"])
        return Estimate(max(line["crossing"], first), first, line["high"])
    if line["becomes"] == "less":  # somewhere between two lengths
        return Estimate(math.sqrt(line["low"] * line["high"]), line["low"], line["high"])
    said = ALWAYS.match(line["outcome"])
    if said is None or not line["ended"]:
        return None
    if said[1] in ("faster", "less"):
        return Estimate(float(said[2]), 1.0, float(said[2]))
    return Estimate(math.inf, float(said[3]), math.inf)
