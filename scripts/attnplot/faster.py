"""From which length on a variant is faster than exact attention: the rule of the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Interval = tuple[float, float]  # of a time, its 95 % interval


def faster_from(
    lengths: Sequence[int], variant: Mapping[int, Interval], full: Mapping[int, Interval]
) -> str:
    """The first of the measured `lengths` from which on the variant's whole interval lies below
    that of exact attention, up to the last; empty where one of the two has no time at the last.
    As harness/tables/faster_from.cc; tests/data/faster_from.json holds cases for both."""
    found = ""
    for length in sorted(lengths, reverse=True):
        if length not in variant or length not in full:
            break
        if not variant[length][1] < full[length][0]:
            return found or f"not up to {length}"
        found = str(length)
    return found
