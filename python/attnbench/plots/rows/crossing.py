"""From which length on a variant is faster than exact attention: interpolated with its interval, by
the rule of the tables, and as a search found it (`attnbench run --find crossing`), which the
program tells. How sure a time is, by its visits' (processes') scatter."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ..._place import IS_CLONE, program
from .read import Cell, Params, Rows
from .settings import spec_text, without_run, without_settings
from .units import length_text

ABSENT = "the program attnbench is missing; " + (
    "scripts/bench --version builds it" if IS_CLONE else "ATTNBENCH_PROGRAM names one, and the wheel brings one along"
)


class NoAnswer(Exception):
    """Why the program computed nothing, as one line."""


def asked(verb: str, *words: str | Path) -> Any:
    """Returns what the verb prints as JSON. Exit 3 of `compare` is an answer: something is worse.
    Error where the program is absent, or says why it gives no answer."""
    path = program()
    if not path.exists():
        raise NoAnswer(ABSENT)
    command = [str(path), verb, *map(str, words), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        said = lines[-1].removeprefix("attnbench: ")
        for word in words:  # a report names no folder of the machine that it was made on
            said = said.replace(str(word), word.name) if isinstance(word, Path) else said
        raise NoAnswer(said)
    return json.loads(done.stdout)


DRAWS = 1000
Visits = Sequence[Sequence[float]]  # the samples of each visit, in seconds


def sure(visits: Visits) -> bool:
    """Returns whether an interval is possible: of two visits, or of three samples of a single
    visit."""
    return len(visits) >= 2 or any(len(visit) >= 3 for visit in visits)


def draws(visits: Visits, rng: np.random.Generator, count: int = DRAWS) -> np.ndarray:
    """Returns `count` times that agree with the samples; their 2.5 and 97.5 percentiles are the
    row's own interval. Several visits give Student's t about the logarithms of their medians:
    resampling three visits would give intervals that hold the truth in 75 of 100 cases. One visit
    gives medians of resamples, which do not tell how another process would differ."""
    if len(visits) == 1:
        values = np.asarray(visits[0], dtype=float)
        return np.median(values[rng.integers(0, len(values), size=(count, len(values)))], axis=-1)
    logs = np.log([median(visit) for visit in visits])
    error = logs.std(ddof=1) / np.sqrt(len(logs))
    with np.errstate(over="ignore"):  # of two visits that disagree, a far draw may be infinite
        return np.exp(logs.mean() + error * rng.standard_t(len(logs) - 1, size=count))


def central(drawn: np.ndarray) -> tuple[Any, Any]:
    """Returns the ends of the middle 95 %, of each column where there are several. Both ends are
    draws, not values between draws: a crossing may lie at infinity, outside the measured lengths."""
    found, count = np.sort(drawn, axis=0), len(drawn)
    return found[int(0.025 * count)], found[math.ceil(0.975 * count) - 1]


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


NUMBER = re.compile(r"\d+")
BESIDE = ("length", "repetitions", "seed")  # axes that a search leaves out of its places


@dataclass(frozen=True)
class Searches:
    """The lines of `attnbench table --crossings --format json` of all files, and why some have none."""

    lines: tuple[dict[str, Any], ...]
    faults: tuple[str, ...] = ()

    def crossing(self, cells: Iterable[Cell], full: Iterable[Cell]) -> Crossing | None:
        """Returns the last crossing of a series of one panel and a rival. None where no search
        compared the two there."""
        own, rival = next(iter(cells), None), next(iter(full), None)
        if own is None or rival is None:
            return None
        found = [
            line
            for line in self.lines
            if line["measure"] == own.measure
            and _place(line["axes"]) == _axes(own)
            and _is(line["variant"], own.variant, own.params)
            and _is(line["rival"], rival.variant, rival.params)
        ]
        return _crossing(found[-1]) if found else None

    @property
    def note(self) -> str:
        faults = f" The search's own crossings are missing: {'; '.join(self.faults)}." if self.faults else ""
        told = "Crossings are those that the search fitted to the lengths it chose." if self.lines else ""
        return f"{told}{faults}".strip()


def searched_from(crossing: Crossing) -> str:
    """From which length on the variant is faster, as the tables of a search say."""
    if crossing.unclear:
        return "undecided"
    if crossing.length == -math.inf:
        return str(crossing.first)
    if crossing.length == math.inf:
        return f"not up to {crossing.last}"
    return f"{crossing.length:.0f}" if crossing.is_found else crossing.text()


def searches_of(rows: Rows) -> Searches:
    """Asks the program about each file that holds a search."""
    files = {
        source: source.stat().st_mtime_ns
        for source, head in zip(rows.sources, rows.runs, strict=True)
        if (head.get("config") or {}).get("find") == "crossing" and source.is_file()
    }
    return _asked(tuple(files.items()))


@lru_cache(maxsize=8)
def _asked(files: tuple[tuple[Path, int], ...]) -> Searches:
    """Each file is given with the time of its last change: one that has grown is read again."""
    lines: list[dict[str, Any]] = []
    faults = []
    for file, _ in files:
        try:
            lines += asked("table", file, "--crossings")
        except NoAnswer as fault:
            faults.append(f"{file.name}: {fault}")
    return Searches(tuple(lines), tuple(faults))


def _crossing(line: dict[str, Any]) -> Crossing:
    """What a line says as a crossing: infinite ends are lengths outside the search."""
    first, last, words = int(line["from"]), int(line["to"]), str(line["outcome"])
    if line["becomes"] == "less":
        if line["crossing"] is None:
            return Crossing(float(line["high"]), line["low"], line["high"], first, last, is_found=False)
        return Crossing(line["crossing"], line["low"], line["high"], first, last)
    if line["becomes"] == "more":
        return Crossing(math.inf, math.inf, math.inf, first, last)
    is_less, is_more = words.startswith(("faster", "less")), words.startswith(("slower", "more"))
    if is_less or is_more:
        decided, _, others = words.partition("; ")
        ends = [int(n) for n in NUMBER.findall(decided)]
        open_at = [int(n) for n in NUMBER.findall(others.partition(" lengths between ")[2] or others)]
        if not others:
            end = math.inf if is_more else -math.inf
            return Crossing(end, end, end, first, last)
        if ends[-1] == last and is_more:
            return Crossing(math.inf, math.inf, math.inf, first, last)
        if ends[-1] == last and max(open_at) < ends[0]:  # undecided below alone
            return Crossing(float(ends[0]), -math.inf, float(ends[0]), first, last, is_found=False)
    return Crossing(math.inf, -math.inf, math.inf, first, last)  # undecided, equal or not measured


def _place(text: str) -> set[str]:
    return set(text.split(", "))


def _axes(cell: Cell) -> set[str]:
    return {f"{name} {_text(value)}" for name, value in cell.axes.items() if name not in BESIDE}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is(spec: str, variant: str, params: Params) -> bool:
    """Whether the program's `name[a=1,b=two]` is this variant with these parameters."""
    return spec == spec_text(variant, without_run(without_settings(params)))
