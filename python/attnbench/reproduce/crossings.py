"""Crossings of `attnbench table --crossings` as figures: the length from which on a variant takes
less than exact attention."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from .estimates import Estimate

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
