"""What one machine says at one place, and the same of all machines that may be pooled there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..plots.rows.settings import MEANINGS
from .effects import MANY, Pooled, quantile, random_effects
from .machines import Fleet, Place, Version, started
from .seeds import Seeds, together
from .variances import Variance, degrees_of_sum

LEVEL = 0.95


@dataclass(frozen=True)
class Figure:
    """Of one machine, on a scale where differences add. `error` is NaN where the rows tell none: of a single visit, or of a single seed without test
    error."""

    machine: int
    value: float
    error: float
    degrees: float
    marks: str = ""
    cells: str = ""  # their ids, as `attnbench repro` takes them
    runs: int = 1
    seeds: Seeds | None = None  # of a difference of scores
    floor: float = 0.0  # no smaller difference counts on this machine (`attnbench noise`)

    @property
    def side(self) -> int:
        """-1 or 1 where the whole interval lies below or above 0 and the figure beyond the noise floor, else 0."""
        low, high = self.interval
        if high < 0 and self.value <= -self.floor:
            return -1
        return int(low > 0 and self.value >= self.floor)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval; NaN where there is none."""
        if not self.degrees > 0 or math.isnan(self.error):
            return math.nan, math.nan
        reach = quantile(min(self.degrees, MANY), LEVEL) * self.error
        return self.value - reach, self.value + reach


class Found(NamedTuple):
    """A figure of one run, before runs and machines are brought together."""

    place: Place
    version: Version
    run: str
    figure: Figure


class Difference(NamedTuple):
    """Why figures of one place are not pooled: of two protocols, or of different sources, by what these are of."""

    protocol: str = ""  # that of the figure left out
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """The figures at one place that are of one version of the code and one protocol, one for each machine."""

    place: Place
    figures: tuple[Figure, ...]
    others: tuple[tuple[int, Difference], ...] = ()  # machines left out, and what differs there

    @property
    def pooled(self) -> Pooled:
        """By random effects over machines; differences of scores by their seeds, see seeds.py."""
        seeds = [f.seeds for f in self.figures if f.seeds]
        if seeds:
            value, error, degrees = together(seeds).difference
            return replace(random_effects([value], [error], LEVEL, degrees=[degrees]), machines=len(self.figures))
        return random_effects([f.value for f in self.figures], [f.error for f in self.figures], LEVEL, degrees=[f.degrees for f in self.figures])

    @property
    def marks(self) -> str:
        return marks_of(self.figures)

    def on(self, side: int) -> list[int]:
        """The machines on this side of 0, see Figure.side."""
        return [f.machine for f in self.figures if f.side == side]


def marks_of(figures: Sequence[Figure]) -> str:
    """Each mark once, in the order of MEANINGS."""
    return "".join(mark for mark in MEANINGS if any(mark in f.marks for f in figures))


def cells_of(figures: Iterable[Figure]) -> str:
    """The ids of the cells behind the figures, each once."""
    return " ".join(dict.fromkeys(word for f in figures for word in f.cells.split()))


def of_machine(figures: Sequence[Figure]) -> Figure:
    """One figure of one machine's runs: their mean. Its variance is that of the runs' own errors, or that of their scatter where this is larger,
    since runs of different days differ by more than the visits of one."""
    if len(figures) == 1:
        return figures[0]
    count = len(figures)
    marks, cells = marks_of(figures), cells_of(figures)
    floor = max(f.floor for f in figures)
    scores = [f.seeds for f in figures if f.seeds]
    if scores:
        seeds = together(scores)
        value, error, degrees = seeds.difference
        return Figure(figures[0].machine, value, error, degrees, marks, cells, count, seeds, floor)
    mean = sum(f.value for f in figures) / count
    scatter = sum((f.value - mean) ** 2 for f in figures) / (count - 1) / count
    known = [f for f in figures if f.degrees > 0 and not math.isnan(f.error)]
    own = sum(f.error**2 for f in known) / len(known) / count if known else 0.0
    if scatter >= own:
        variance, degrees = scatter, float(count - 1)
    else:
        variance = own
        degrees = degrees_of_sum([Variance(f.error**2, min(f.degrees, MANY)) for f in known])
    return Figure(figures[0].machine, mean, math.sqrt(variance), degrees, marks, cells, count, None, floor)


def groups_of(found: Iterable[Found], fleet: Fleet) -> list[Group]:
    """A group for each place, in the order of the rows. Where figures of a place are of several versions, the version that most machines have is
    pooled, of equals the one measured last; the others are named."""
    places: dict[Place, dict[Version, list[Found]]] = {}
    for one in found:
        places.setdefault(one.place, {}).setdefault(one.version, []).append(one)
    return [_group(place, versions, fleet) for place, versions in places.items()]


def _group(place: Place, versions: dict[Version, list[Found]], fleet: Fleet) -> Group:
    def rank(version: Version) -> tuple[int, str]:
        own = versions[version]
        return len({f.figure.machine for f in own}), started(fleet.heads, (f.run for f in own))

    chosen = max(versions, key=rank)
    by_machine: dict[int, list[Figure]] = {}
    for one in versions[chosen]:
        by_machine.setdefault(one.figure.machine, []).append(one.figure)
    others = {
        (one.figure.machine, difference(chosen, version)): None
        for version, own in versions.items()
        if version != chosen
        for one in own
    }
    return Group(place, tuple(of_machine(by_machine[n]) for n in sorted(by_machine)), tuple(others))


def difference(one: Version, other: Version) -> Difference:
    protocol = other.protocol if one.protocol != other.protocol else ""
    return Difference(protocol, tuple(sorted({name for name, _ in set(one.sources) ^ set(other.sources)})))
