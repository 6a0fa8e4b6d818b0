"""From which length on a variant is faster than exact attention, on each machine and on all: pooled as the logarithm of the length to base 2.

A machine's crossing is where its ratios last turn from 1 or more to less, linear in log-log between lengths, with the interval of draws that agree
with the ratios: the rule of plots/rows/crossing.py. Where a search measured (`run --find crossing`), it is what the program fitted to the lengths
that it chose. A crossing outside the lengths that a machine measured is censored: it has no number, it is told, and the pooled length is said to lie
too low or too high for it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..plots.rows.crossing import DRAWS, SEED, Crossing, Searches, central, crossing_length
from .effects import MANY, Pooled, random_effects
from .figures import LEVEL, Figure, Group, cells_of
from .machines import Fleet, Place
from .ratios import is_exact

NORMAL = 1.959964  # half of a 95 % interval, in standard errors


@dataclass(frozen=True)
class OfMachine:
    machine: int
    crossing: Crossing
    marks: str = ""
    cells: str = ""

    @property
    def side(self) -> str:
        """`within`, `before` or `beyond` the measured lengths, or `unclear`."""
        at = self.crossing
        if at.unclear or math.isnan(at.length):
            return "unclear"
        if at.has_point:
            return "within"
        if not at.within:
            return "before" if at.length < 0 else "beyond"
        return "unclear"

    @property
    def ends(self) -> tuple[float, float]:
        """The interval as lengths, cut at the measured lengths where it goes beyond them."""
        at = self.crossing
        low = at.length if at.low is None else max(at.low, at.first)
        high = at.length if at.high is None else min(at.high, at.last)
        return min(low, at.length), max(high, at.length)

    @property
    def is_open(self) -> bool:
        at = self.crossing
        return at.has_point and any(end is not None and math.isinf(end) for end in (at.low, at.high))

    @property
    def error(self) -> float:
        """Of the length's logarithm to base 2; NaN without an interval. Of an interval that is cut it is at least this."""
        at = self.crossing
        if at.low is None or at.high is None:
            return math.nan
        low, high = self.ends
        return (math.log2(high) - math.log2(low)) / 2 / NORMAL


@dataclass(frozen=True)
class Pair:
    """A variant against exact attention on axes without the length."""

    place: Place
    machines: tuple[OfMachine, ...]

    def on(self, side: str) -> list[int]:
        return [m.machine for m in self.machines if m.side == side]

    @property
    def pooled(self) -> Pooled | None:
        """Of the machines whose crossing has a length, as the logarithm to base 2; None where there is none."""
        own = [m for m in self.machines if m.side == "within"]
        if not own:
            return None
        return random_effects([math.log2(m.crossing.length) for m in own], [m.error for m in own], LEVEL)

    @property
    def bias(self) -> str:
        """What machines without a length would do to the pooled one: `too low`, `too high` or nothing known."""
        before, beyond = self.on("before"), self.on("beyond")
        if before and beyond:
            return "too near to the middle"
        return "too low" if beyond else "too high" if before else ""


def crossings(groups: Iterable[Group], fleet: Fleet, searches: dict[str, Searches] | None = None) -> list[Pair]:
    """Of the ratios at two lengths or more, in the order of the rows. `searches` are what the program says of the runs that were searches, by run."""
    curves: dict[Place, dict[int, dict[int, Figure]]] = {}
    for group in groups:
        if group.place.length:
            curve = curves.setdefault(group.place.without_length, {})
            for figure in group.figures:
                curve.setdefault(figure.machine, {})[group.place.length] = figure
    found = []
    for place, machines in curves.items():
        own = [_of_machine(place, number, figures, fleet, searches or {}) for number, figures in sorted(machines.items())]
        told = tuple(one for one in own if one is not None)
        if told:
            found.append(Pair(place, told))
    return found


def interpolated(curve: dict[int, Figure]) -> Crossing | None:
    """By the ratios at each length; None of fewer than two. No interval where a ratio has none."""
    lengths = sorted(curve)
    if len(lengths) < 2:
        return None
    figures = [curve[n] for n in lengths]
    values = np.array([f.value for f in figures])
    ones = np.ones(len(lengths))
    point = float(crossing_length(lengths, np.exp(values), ones))
    low = high = None
    if all(f.degrees > 0 and not math.isnan(f.error) for f in figures):
        rng = np.random.default_rng(SEED)
        steps = [f.error * rng.standard_t(min(f.degrees, MANY), size=DRAWS) for f in figures]
        drawn = np.exp(values + np.stack(steps, axis=-1))
        low, high = (float(end) for end in central(crossing_length(lengths, drawn, ones)))
    return Crossing(point, low, high, lengths[0], lengths[-1])


def _of_machine(place: Place, number: int, curve: dict[int, Figure], fleet: Fleet, searches: dict[str, Searches]) -> OfMachine | None:
    marks = "".join(dict.fromkeys(mark for f in curve.values() for mark in f.marks))
    found = _searched(place, number, fleet, searches) or interpolated(curve)
    return None if found is None else OfMachine(number, found, marks, cells_of(curve.values()))


def _searched(place: Place, number: int, fleet: Fleet, searches: dict[str, Searches]) -> Crossing | None:
    """The crossing of the machine's last run that was a search and compared the two."""
    found = None
    for run, lines in searches.items():
        own = [m for m in fleet.of("speed") if m.run == run and m.machine == number]
        mine = [m.cell for m in own if m.place.without_length == place]
        rival = [m.cell for m in own if is_exact(m, fleet)]
        found = lines.crossing(mine, rival) or found
    return found
