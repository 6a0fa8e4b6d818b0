"""What may be claimed: an estimate with its error and its bend, Student's t, claims that must hold on every machine, and
Holm's correction over many claims."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from scipy.special import stdtr, stdtrit

LEVEL = 0.95
ALPHA = 1 - LEVEL
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Estimate:
    """A value with what is not known of it: chance (`error`, a standard error of `freedom` degrees) and, where the value
    lies between two that were measured, by how much a curve may bend there."""

    value: float
    error: float
    freedom: float
    bend: float = 0.0

    def minus(self, other: Estimate) -> Estimate:
        """Returns the difference of two values that were measured apart from each other."""
        parts = (self.error, self.freedom), (other.error, other.freedom)
        error, freedom = combined(parts)
        return Estimate(self.value - other.value, error, freedom, self.bend + other.bend)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        reach = float(stdtrit(self.freedom, 0.5 + level / 2)) * self.error + self.bend
        return self.value - reach, self.value + reach

    def chance_above(self, least: float = 0.0) -> float:
        """Returns the one-sided p value of `the value is greater than least`."""
        past = self.value - least - self.bend
        if past <= 0:
            return 1.0
        return float(stdtr(self.freedom, -past / self.error)) if self.error > 0 else 0.0

    def chance_below(self, most: float = 0.0) -> float:
        """Returns the one-sided p value of `the value is less than most`."""
        return Estimate(-self.value, self.error, self.freedom, self.bend).chance_above(-most)


def combined(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Returns error and degrees of freedom of a sum of independent values, each with its own (Satterthwaite 1946)."""
    variance = math.fsum(error**2 for error, _ in parts)
    if not variance > 0:
        return 0.0, min(freedom for _, freedom in parts)
    return math.sqrt(variance), variance**2 / math.fsum(error**4 / freedom for error, freedom in parts if error > 0)


def sign_of(estimates: Sequence[Estimate]) -> tuple[int, float]:
    """Returns the sign that all estimates have, 0 where they differ, and the two-sided p value of `each of them has it`: the
    greatest of the single ones, since one that fails is enough to refute the claim (Berger 1982)."""
    below = max(e.chance_below() for e in estimates)
    above = max(e.chance_above() for e in estimates)
    p = min(1.0, 2 * min(below, above))
    if p >= 1:
        return 0, 1.0
    return (-1 if below < above else 1), p


def holm(chances: Mapping[Key, float], alpha: float = ALPHA) -> set[Key]:
    """Returns the claims that hold together with at most the chance `alpha` that any of them is wrong (Holm 1979)."""
    held: set[Key] = set()
    for place, (key, p) in enumerate(sorted(chances.items(), key=lambda item: item[1])):
        if not p <= alpha / (len(chances) - place):
            break
        held.add(key)
    return held
