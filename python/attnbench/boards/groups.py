"""Critical-difference groups in the place of places: which variants Nemenyi's test (as Demšar 2006, JMLR 7, has it) does not tell
apart. Judges of times are machines, each with its ratios to exact attention at one setting; judges of scores are tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from attnbench.plots.rows.ranks import alike_groups, critical_difference, ranks_of
from attnbench.plots.rows.read import Params
from attnbench.plots.rows.settings import MODES
from attnbench.plots.rows.style import BASELINE

from .numbers import SCORES, SPEED, Number, Place
from .verdicts import DISAGREES, VERIFIED

Key = tuple[str, Params]  # of a variant
LEAST = 3  # judges; of two, no difference of ranks is critical for most counts of variants
TOO_LONG = ("timeout", "oom")  # these rank last; what failed otherwise says nothing of time


@dataclass(frozen=True)
class Line:
    """A variant in a block: its mean rank, whether it is in each group, and of times the median of its ratios over machines
    with a 95 % interval, where there are machines enough, and on how many it is faster than exact attention."""

    key: Key
    rank: float
    members: tuple[bool, ...]
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    faster: int | None = None


@dataclass(frozen=True)
class Block:
    """The groups of one setting. `judges` are machines or tasks, `dropped` the variants that too few judges have."""

    measure: str
    place: Place
    mode: str
    causal: bool | None
    length: int | None
    setting: str
    only_verified: bool
    judges: int
    difference: float
    lines: list[Line]
    dropped: list[Key]
    unverified: int  # submissions behind the block that nobody else has measured again


def blocks_of(numbers: Iterable[Number]) -> list[Block]:
    """All blocks, of all numbers and of those that are verified. Numbers with which another measurement disagrees judge nothing."""
    numbers = [n for n in numbers if n.submission.verdict.state != DISAGREES]
    found = []
    for only_verified in (False, True):
        own = [n for n in numbers if n.submission.verdict.state == VERIFIED or not only_verified]
        settings: dict[Any, list[Number]] = {}
        for n in own:
            if n.measure == SPEED:
                settings.setdefault((n.place, n.mode, n.causal, n.length, n.setting), []).append(n)
        for (place, mode, causal, length, setting), members in settings.items():
            at = (SPEED, place, mode, causal, length, setting, only_verified)
            found.append(_block(at, members, by_machine(members)))
        places: dict[Place, list[Number]] = {}
        for n in own:
            if n.measure == SCORES:
                places.setdefault(n.place, []).append(n)
        for place, members in places.items():
            at = (SCORES, place, "", None, None, "scores over tasks", only_verified)
            found.append(_block(at, members, by_task(members)))
    return sorted((b for b in found if b), key=_order)


def _order(block: Block) -> tuple[Any, ...]:
    mode = MODES.index(block.mode) if block.mode in MODES else len(MODES)
    return block.place, block.measure != SPEED, block.only_verified, mode, bool(block.causal), block.setting, block.length or 0


Merits = dict[str, dict[Key, float]]  # of each judge, of each variant: more is better


def by_machine(numbers: Iterable[Number]) -> Merits:
    """Minus the logarithm of the ratio of times, 0 for exact attention: ranks take differences below 1 % for ties. Several
    submissions of one machine are one judge, with the mean of what they found."""
    found: dict[str, dict[Key, list[float]]] = {}
    for n in numbers:
        if n.value is None and n.marks not in TOO_LONG:
            continue
        merit = -math.log(n.value) if n.value else -math.inf
        found.setdefault(n.machine.key, {}).setdefault(n.key, []).append(merit)
    exact: Key = (BASELINE, ())
    return {judge: {exact: 0.0, **_means(own)} for judge, own in found.items()}


def by_task(numbers: Iterable[Number]) -> Merits:
    """The mean score over distinct cells, at least what a rule without attention scores. The same cell of several submissions
    is one seed, not several. What was cut off by its steps has no rank."""
    found: dict[str, dict[Key, dict[str, list[float]]]] = {}
    signs: dict[str, tuple[float, float]] = {}
    for n in numbers:
        if n.value is None or n.more["unfinished"]:
            continue
        signs.setdefault(n.setting, (-1.0 if n.more["less"] else 1.0, n.more["floor"]))
        cells = found.setdefault(n.setting, {}).setdefault(n.key, {})
        for cell, test in n.more["tests"].items():
            cells.setdefault(cell, []).append(test)
    merits: Merits = {}
    for task, variants in found.items():
        sign, floor = signs[task]
        means = _means({key: [float(np.mean(tests)) for tests in cells.values()] for key, cells in variants.items()})
        merits[task] = {key: max(sign * mean, sign * floor) for key, mean in means.items()}
    return merits


def _means(found: Mapping[Key, list[float]]) -> dict[Key, float]:
    return {key: float(np.mean(values)) for key, values in found.items()}


def complete(merits: Merits) -> tuple[list[Key], list[str]]:
    """The variants and judges of a whole table: as long as under half of the judges have all variants, the variant that the
    fewest have is left out. Of equals the last by name."""
    keys = sorted({key for own in merits.values() for key in own})
    while keys:
        judges = [judge for judge, own in merits.items() if all(key in own for key in keys)]
        if 2 * len(judges) >= len(merits):
            return keys, sorted(judges)
        counts = {key: sum(key in own for own in merits.values()) for key in keys}
        keys.remove(min(reversed(keys), key=lambda key: counts[key]))
    return [], []


def _block(at: tuple[Any, ...], numbers: list[Number], merits: Merits) -> Block | None:
    keys, judges = complete(merits)
    if len(keys) < 2 or len(judges) < LEAST:
        return None
    table = np.array([[merits[judge][key] for key in keys] for judge in judges])
    lines, difference = told_apart(table, keys)
    if at[0] == SPEED:
        lines = [replace(line, **over_machines(np.exp(-table[:, keys.index(line.key)]))) for line in lines]
    every = {key for own in merits.values() for key in own}
    unverified = {n.submission.file for n in numbers if n.submission.verdict.state != VERIFIED}
    return Block(*at, len(judges), difference, lines, sorted(every - set(keys)), len(unverified))


def told_apart(merits: np.ndarray, keys: list[Key]) -> tuple[list[Line], float]:
    """`merits` [judges, variants], more is better. Returns a line for each variant, best mean rank first, and the difference of
    mean ranks that is critical at 5 % for all pairs together."""
    means = np.round(ranks_of(merits).mean(axis=0), 9)
    difference = critical_difference(len(keys), len(merits))
    groups = alike_groups(means, difference)
    order = sorted(range(len(keys)), key=lambda i: (means[i], keys[i]))
    return [Line(keys[i], float(means[i]), tuple(i in group for group in groups)) for i in order], difference


def over_machines(ratios: np.ndarray) -> dict[str, Any]:
    """The median of the ratios and its interval: order statistics whose chance to miss the median of all such machines is at
    most 5 %, by the binomial distribution; six ratios are the fewest that have them. None stands for what took too long."""
    count, found = len(ratios), np.sort(ratios)
    out = int(stats.binom.ppf(0.025, count, 0.5))  # so many at each end lie outside
    ends = (found[out - 1], found[count - out]) if out > 0 else (np.nan, np.nan)
    told = {"ratio": np.median(found), "low": ends[0], "high": ends[1]}
    finite = {name: float(value) if np.isfinite(value) else None for name, value in told.items()}
    return {**finite, "faster": int((found < 1).sum())}
