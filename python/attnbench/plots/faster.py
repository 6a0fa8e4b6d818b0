"""From which length on a variant is faster than exact attention: the rule of the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Interval = tuple[float, float]  # of a time, its 95 % interval
Medians = Mapping[int, float]


class Floor(NamedTuple):
    """No difference below `shares`, by length, counts: `variant` and `full` are the medians."""

    shares: Mapping[int, float]
    variant: Medians
    full: Medians

    def hides(self, length: int) -> bool:
        share = self.shares.get(length)
        return share is not None and not self.full[length] >= (1 + share) * self.variant[length]


def faster_from(
    lengths: Sequence[int],
    variant: Mapping[int, Interval],
    full: Mapping[int, Interval],
    floor: Floor | None = None,
) -> str:
    """The first of the measured `lengths` from which on the variant's whole interval lies below
    that of exact attention, up to the last; empty where one of the two has no time at the last.
    Where there is a noise floor, exact attention's median is at least 1 + floor times the variant's.
    As harness/tables/faster_from.cc; tests/data/faster_from.json holds cases for both."""
    found = ""
    for length in sorted(lengths, reverse=True):
        if length not in variant or length not in full:
            break
        is_hidden = floor is not None and floor.hides(length)
        if is_hidden or not variant[length][1] < full[length][0]:
            return found or f"not up to {length}"
        found = str(length)
    return found
