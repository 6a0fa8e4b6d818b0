"""Where a variant's time curve crosses that of full attention, interpolated, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .units import length_text
from .visits import Visits, central, draws, sure

SEED = 20240607
Samples = Mapping[int, Visits]


@dataclass(frozen=True)
class Crossing:
    """The length from which on a variant's median is the smaller one.

    `length` is -inf where it is faster at every measured length and +inf where it is not at the
    longest: then the crossing is not within the measured range [first, last]. So are the ends of
    the interval, which is None where a curve has too few repetitions somewhere.
    """

    length: float
    low: float | None
    high: float | None
    first: int
    last: int
    is_found: bool = True  # False: no point, only that it lies between `low` and `high`

    @property
    def within(self) -> bool:
        return math.isfinite(self.length)

    @property
    def has_point(self) -> bool:
        return self.within and self.is_found and not self.unclear

    @property
    def unclear(self) -> bool:
        """Whether the interval holds every length: then the point says nothing."""
        return self.low == -math.inf and self.high == math.inf

    def text(self) -> str:
        first, last = length_text(self.first), length_text(self.last)
        if self.unclear:
            return f"unclear (<{first} to >{last})"
        if not self.is_found:
            end = f"{self.high:,.0f}"
            return f"between {self.low:,.0f} and {end}" if math.isfinite(self.low) else f"at most {end}"
        at = {math.inf: f"beyond {last}", -math.inf: f"before {first}"}
        point = at.get(self.length, f"{self.length:,.0f}")
        if self.low is None or self.high is None or self.low == self.high:
            return point
        low = f"{self.low:,.0f}" if math.isfinite(self.low) else f"<{first}"
        high = f"{self.high:,.0f}" if math.isfinite(self.high) else f">{last}"
        return f"{point} ({low}\u2013{high})"


def crossing_length(lengths: Sequence[int], variant: np.ndarray, full: np.ndarray) -> np.ndarray:
    """Where log(variant / full) last turns from >= 0 to < 0, linear in log-log between lengths.

    `variant` and `full` are times [..., lengths]; the answer is [...], infinite as in Crossing.
    """
    x = np.log(np.asarray(lengths, dtype=float))
    gap = np.log(variant) - np.log(full)  # negative: the variant is faster
    slower = gap >= 0
    out = np.full(gap.shape[:-1], -np.inf)
    last = (
        gap.shape[-1] - 1 - np.argmax(slower[..., ::-1], axis=-1)
    )  # last length at which it is slower
    inside = slower.any(axis=-1) & (last < gap.shape[-1] - 1)
    left = np.minimum(last, gap.shape[-1] - 2)
    here = np.take_along_axis(gap, left[..., None], -1)[..., 0]
    there = np.take_along_axis(gap, left[..., None] + 1, -1)[..., 0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # where not `inside`
        at = x[left] + (x[left + 1] - x[left]) * here / (here - there)
        out = np.where(inside, np.exp(at), out)
    return np.where(slower[..., -1], np.inf, out)


def find_crossing(
    variant: Samples,
    full: Samples,
    medians: tuple[Mapping[int, float], Mapping[int, float]],
    *,
    seed: int = SEED,
) -> Crossing | None:
    """The crossing over the lengths that both curves have; None where there are fewer than two."""
    lengths = sorted(set(medians[0]) & set(medians[1]))
    if len(lengths) < 2:
        return None
    centre = [np.array([m[n] for n in lengths]) for m in medians]
    point = float(crossing_length(lengths, *centre))
    low = high = None
    if all(sure(s.get(n, ())) for s in (variant, full) for n in lengths):
        rng = np.random.default_rng(seed)
        drawn = [np.stack([draws(s[n], rng) for n in lengths], axis=-1) for s in (variant, full)]
        low, high = central(crossing_length(lengths, *drawn))
    return Crossing(point, low, high, lengths[0], lengths[-1])
