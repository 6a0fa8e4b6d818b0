"""Which cells tell most for their time.

What is not known is Q, the sum over undecided pairs of the widths of both sides. A pair is a variant and exact
attention at one setting; it is undecided while either has no figure, or while their 95 % intervals overlap. The width of
a side that was measured is half of its interval; 1 is a factor of ten, or of a score the whole range. Where exact attention
cannot run, and of errors, which are distances from exact attention already, each variant is undecided until it has a
figure. The width of a side that was not measured is predicted from three equal shares of variance, which fall as figures of the same setting, of the
same family at this setting, and of the variant itself appear:

    width = sqrt((1 / (1 + settings) + 1 / (1 + family) + 1) / 3)

with `settings` the variants that have a figure at this setting and `family` those among them of its family. A cell is
worth the fall of Q that is expected of it: of a first measurement its width less the usual one of measured sides, of a
repetition the share of its interval that goes. A cell of exact attention counts for every undecided pair of its setting.
The cells are taken greedily by worth a second; after each the counts are those with its figure there. What no longer fits
into the time that is left is passed over. The order depends on nothing but the rows and the forecasts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .asked import Setting, Unit
from .held import CANNOT, FAILED, MISSING, TO_MEASURE, UNFINISHED, Held

TIMES = 4  # as many repetitions or seeds in a measurement that narrows an interval
ALONE = ("fidelity", "reach")  # measures that need no second side
LEAST_S = 1e-3  # no forecast is shorter


@dataclass(frozen=True)
class Candidate:
    """Cells that could be run next: a unit's first measurement, or one that narrows its interval."""

    unit: Unit
    seconds: float
    seeds: tuple[int, ...]
    repetitions: int | None = None  # of a time that is measured again
    choice: tuple[tuple[str, object], ...] = ()  # tuned settings that were chosen before
    narrows: float = 0.0  # what the interval loses; 0: a first measurement
    is_whole: bool = True  # with the search of settings
    state: str = MISSING  # of what is there

    @property
    def is_first(self) -> bool:
        return self.narrows == 0.0


@dataclass(frozen=True)
class Choice:
    """A candidate that was taken."""

    candidate: Candidate
    worth: float
    why: str


@dataclass
class Survey:
    """Rows against what is asked for: the widths, the pairs and the counts that the worth of cells rests on."""

    held: Sequence[Held]
    exact: str
    exact_of: dict[Setting, Held] = field(init=False)
    usual: dict[str, float] = field(init=False)  # width of measured sides, by measure

    def __post_init__(self) -> None:
        # Of several with other parameters, such as its kernel, the first stands for exact attention.
        self.exact_of = {}
        for one in self.held:
            if one.unit.variant == self.exact:
                self.exact_of.setdefault(one.unit.setting, one)
        widths: dict[str, list[float]] = {}
        for one in self.held:
            if one.interval is not None and one.interval.half is not None and is_known(one):
                widths.setdefault(one.unit.setting.measure, []).append(one.interval.half)
        self.usual = {measure: float(np.median(found)) for measure, found in widths.items()}

    def is_exact(self, unit: Unit) -> bool:
        """Whether the unit is the side that all pairs of its setting share."""
        found = self.exact_of.get(unit.setting)
        return found is not None and found.unit.key == unit.key and unit.setting.measure not in ALONE

    def is_decided(self, one: Held) -> bool:
        """Whether the rows tell the variant from exact attention, or leave nothing that could be narrowed."""
        exact = self.exact_of.get(one.unit.setting)
        if exact is None or one.unit.setting.measure in ALONE or not can_tell(exact):
            return is_known(one)
        if not is_known(one) or not is_known(exact):
            return False
        assert one.interval and exact.interval
        apart = abs(one.interval.middle - exact.interval.middle)
        halves = [one.interval.half, exact.interval.half]
        if any(half is None for half in halves):
            return False
        width = sum(half for half in halves if half is not None)
        return width == 0.0 or apart > width

    def pairs(self) -> list[Held]:
        """The variants that could be told from exact attention, each at each of its settings."""
        return [h for h in self.held if can_tell(h) and not self.is_exact(h.unit)]

    def undecided(self) -> list[Held]:
        return [one for one in self.pairs() if not self.is_decided(one)]

    def first(self) -> list[Candidate]:
        """First measurements of what is missing, or whose figure does not count."""
        found = []
        for one in self.held:
            if one.state not in TO_MEASURE or not one.is_learned:
                continue
            unit = one.unit
            lacking = tuple(seed for seed in unit.seeds if seed not in one.seeds)
            # A search chooses with one seed for all: of a tuned unit every seed is run again.
            seeds = lacking if lacking and not unit.tuned else unit.seeds
            whole = seeds == unit.seeds
            seconds = unit.price if whole else sum(unit.seconds[s] for s in seeds)
            found.append(Candidate(unit, max(seconds, LEAST_S), seeds, state=one.state))
        return found

    def wide(self) -> list[Candidate]:
        """Measured sides of undecided pairs whose interval more measurements would narrow; their time is not known yet."""
        sides = [one for one in self.undecided() if is_known(one)]
        open_at = {one.unit.setting for one in sides}
        sides += [self.exact_of[s] for s in self.exact_of if s in open_at and is_known(self.exact_of[s])]
        found = []
        for one in sides:
            unit, interval = one.unit, one.interval
            assert interval
            if interval.half == 0.0 or unit.setting.measure in ("memory", "reach"):
                continue
            width = 1.0 if interval.half is None else min(interval.half, 1.0)
            if unit.setting.measure == "speed":
                again = TIMES * (one.repetitions or int(unit.axes.get("repetitions") or 1))
                candidate = Candidate(unit, 0.0, unit.seeds, repetitions=again, narrows=width * (1 - 1 / math.sqrt(TIMES)))
            else:
                more = (TIMES - 1) * max(len(one.seeds), 1)
                begin = max(one.seeds, default=-1) + 1
                choice = tuple((one.choice or {}).items())
                kept = math.sqrt(len(one.seeds) / (len(one.seeds) + more)) if interval.half is not None else 0.5
                candidate = Candidate(
                    unit, 0.0, tuple(range(begin, begin + more)), choice=choice, narrows=width * (1 - kept), is_whole=False
                )
            found.append(candidate)
        return found

    def choose(self, candidates: Sequence[Candidate], budget: float) -> list[Choice]:
        """Takes candidates by worth a second while they fit into `budget` seconds."""
        return _Greedy(self, candidates).take(budget)


def is_known(one: Held) -> bool:
    """Whether the unit has a figure that counts."""
    return one.interval is not None and one.state not in (*TO_MEASURE, CANNOT, FAILED, UNFINISHED)


def can_tell(one: Held) -> bool:
    """Whether a figure is there, or another measurement may give one."""
    return one.is_learned and one.state not in (CANNOT, FAILED, UNFINISHED)


class _Greedy:
    def __init__(self, survey: Survey, candidates: Sequence[Candidate]) -> None:
        self.candidates = list(candidates)
        settings = {s: i for i, s in enumerate(dict.fromkeys(h.unit.setting for h in survey.held))}
        groups: dict[tuple[int, str], int] = {}
        for one in survey.held:
            groups.setdefault((settings[one.unit.setting], one.unit.family), len(groups))
        self.settings = np.array([settings[c.unit.setting] for c in self.candidates], dtype=int)
        self.groups = np.array([groups[settings[c.unit.setting], c.unit.family] for c in self.candidates], dtype=int)
        self.at_setting, self.of_family = np.zeros(len(settings)), np.zeros(len(groups))
        for one in survey.held:
            if is_known(one):
                self.at_setting[settings[one.unit.setting]] += 1
                self.of_family[groups[settings[one.unit.setting], one.unit.family]] += 1
        open_pairs = np.zeros(len(settings))
        undecided = survey.undecided()
        for one in undecided:
            open_pairs[settings[one.unit.setting]] += 1
        are_open = {one.unit.key for one in undecided}
        self.seconds = np.array([c.seconds for c in self.candidates])
        # How many undecided pairs the width of a candidate is part of.
        self.pairs = np.array([
            open_pairs[i] if survey.is_exact(c.unit) else float(c.unit.key in are_open)
            for c, i in zip(self.candidates, self.settings, strict=True)
        ])  # fmt: skip
        self.is_first = np.array([c.is_first for c in self.candidates], dtype=bool)
        self.narrows = np.array([c.narrows for c in self.candidates])
        self.usual = np.array([survey.usual.get(c.unit.setting.measure, 0.0) for c in self.candidates])

    def worths(self) -> np.ndarray:
        variance = (1 / (1 + self.at_setting[self.settings]) + 1 / (1 + self.of_family[self.groups]) + 1) / 3
        falls = np.where(self.is_first, np.maximum(np.sqrt(variance) - self.usual, 0.0), self.narrows)
        return np.asarray(falls * self.pairs)

    def take(self, budget: float) -> list[Choice]:
        left = budget
        taken: list[Choice] = []
        alive = np.ones(len(self.candidates), dtype=bool)
        while True:
            worths = self.worths()
            fits = alive & (self.seconds <= left) & (worths > 0)
            if not fits.any():
                return taken
            best = int(np.argmax(np.where(fits, worths / self.seconds, -1.0)))
            taken.append(Choice(self.candidates[best], float(worths[best]), self._why(best)))
            left -= float(self.seconds[best])
            alive[best] = False
            if self.is_first[best]:
                self.at_setting[self.settings[best]] += 1
                self.of_family[self.groups[best]] += 1

    def _why(self, best: int) -> str:
        if not self.is_first[best]:
            return "narrows an undecided pair" if self.pairs[best] == 1 else f"narrows {self.pairs[best]:.0f} undecided pairs"
        if self.at_setting[self.settings[best]] == 0:
            return "the first at its setting"
        if self.of_family[self.groups[best]] == 0:
            return f"the first of its family at its setting: {self.candidates[best].unit.family}"
        return self.candidates[best].state


def priced(candidates: Sequence[Candidate], seconds: Sequence[float]) -> list[Candidate]:
    """The candidates with their times; one whose time is not known is left out."""
    pairs = zip(candidates, seconds, strict=True)
    return [replace(c, seconds=max(s, LEAST_S)) for c, s in pairs if s > 0]
