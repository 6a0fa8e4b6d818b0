"""What rows hold of the units that are asked for: whether a figure is there and good, and its 95 % interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..plots.rows.learned import published
from ..plots.rows.read import FAILURES, Cell, Rows
from ..plots.rows.scores import over_seeds, score
from ..plots.rows.settings import CUT, DISTURBED, UNKNOWN, is_error, mark_of, winners, without_run
from ..pooling.machines import identity
from .asked import Key, Setting, Unit, setting_of_cell

VERIFIED, UNCOMPARED, UNFINISHED, NOISY = "verified", "not compared", "unfinished", "disturbed"
OUTDATED, FAILED, MISSING, CANNOT = "of other sources", "failed", "missing", "cannot run"
# What stands for each state in the table; the first that holds for a cell of a unit is the unit's.
SIGNS = {
    MISSING: ".",
    FAILED: "x",
    OUTDATED: "o",
    NOISY: "*",
    UNCOMPARED: "?",
    UNFINISHED: "\u2020",
    VERIFIED: "#",
    CANNOT: "-",
}
# A measurement of these would give what is not there.
TO_MEASURE = (MISSING, OUTDATED, NOISY, UNCOMPARED)
FIGURES = {"speed": "time_s.median", "memory": "peak_bytes", "fidelity": "relative_error", "reach": "perturbation.past"}
LEAST = 1e-12  # of a figure whose logarithm is taken: below all rounding


@dataclass(frozen=True)
class Interval:
    """A figure on a scale on which 1 is a factor of ten, or of a score the whole range from 0 to 1. `half` is half of
    the 95 % interval, None where nothing is known of it."""

    middle: float
    half: float | None


@dataclass(frozen=True)
class Held:
    """What the rows have of a unit."""

    unit: Unit
    state: str
    seeds: tuple[int, ...] = ()  # that have a row which counts
    interval: Interval | None = None
    choice: dict[str, Any] | None = None  # the tuned settings that won
    is_learned: bool = True  # by exact attention; a score of a setting that is not says nothing
    repetitions: int = 0  # of the time that counts


def one_machine(rows: Rows) -> tuple[list[Cell], int]:
    """Returns the cells, of which those of speed are of one machine, that with most of them, and how many others there
    are: times of two machines are no pair."""
    machines = {head["run"]: identity(head.get("environment") or {}) for head in rows.runs}
    counts = Counter(machines.get(c.run, "") for c in rows.cells if c.measure == "speed")
    if len(counts) < 2:
        return list(rows.cells), 0
    most = max(counts, key=lambda m: (counts[m], m))
    kept = [c for c in rows.cells if c.measure != "speed" or machines.get(c.run, "") == most]
    return kept, len(rows.cells) - len(kept)


def key_of(cell: Cell) -> Key:
    """The key of the unit that a cell belongs to."""
    return cell.variant, without_run(cell.params), setting_of_cell(cell)


def held_by(units: Sequence[Unit], rows: Rows | None) -> tuple[list[Held], int]:
    """Returns what the rows have of each unit, in the same order, and how many times of other machines were left out."""
    cells, left_out = one_machine(rows) if rows else ([], 0)
    unlearned = {setting_of_cell(c) for c in published(rows).unlearned} if rows else set()
    by_unit: dict[Key, list[Cell]] = {}
    for cell in cells:
        by_unit.setdefault(key_of(cell), []).append(cell)
    return [_held(unit, by_unit.get(unit.key, []), unlearned) for unit in units], left_out


def _held(unit: Unit, cells: list[Cell], unlearned: set[Setting]) -> Held:
    if unit.skip is not None:
        return Held(unit, CANNOT)
    if cells and all(c.status == "skipped" for c in cells):
        return Held(unit, CANNOT)
    chosen = winners(cells)
    rank = list(SIGNS).index
    by_seed: dict[int, Cell] = {}
    # Of several rows of a seed the best state counts, then the most repetitions.
    for cell in sorted(chosen, key=lambda c: (rank(_state(c, unit)), int(c.axes.get("repetitions") or 0))):
        by_seed[int(cell.axes.get("seed", 0))] = cell
    state = min((_state(by_seed.get(seed), unit) for seed in unit.seeds), key=rank, default=MISSING)
    choice = {name: chosen[0].training.get(name) for name in unit.tuned} if chosen else None
    measured = [c for c in by_seed.values() if c.ok]
    repetitions = max((int(c.axes.get("repetitions") or 0) for c in by_seed.values()), default=0)
    is_learned = unit.setting not in unlearned
    return Held(unit, state, tuple(by_seed), interval_of(measured), choice, is_learned, repetitions)


def _state(cell: Cell | None, unit: Unit) -> str:
    if cell is None or cell.status == "skipped":
        return MISSING
    if cell.status in FAILURES:
        return FAILED
    if any(cell.sources[part] != told for part, told in unit.source.items() if part in cell.sources):
        return OUTDATED
    if cell.is_gated:
        return FAILED
    marks = mark_of(cell)
    for mark, state in ((CUT, UNFINISHED), (DISTURBED, NOISY), (UNKNOWN, UNCOMPARED)):
        if mark in marks:
            return state
    return VERIFIED


def interval_of(cells: Iterable[Cell]) -> Interval | None:
    """The figure of one unit's cells with its interval: of a time that of its row, else that between seeds; memory is
    counted, and has none to be narrowed. None where there is no figure."""
    cells = list(cells)
    if not cells:
        return None
    measure = cells[0].measure
    if measure == "speed":
        low, high = cells[-1].metric("time_s.ci_low"), cells[-1].metric("time_s.ci_high")
        middle = _log(cells[-1].metric(FIGURES["speed"]) or 0.0)
        return Interval(middle, None if low is None or high is None else (_log(high) - _log(low)) / 2)
    if measure == "accuracy":
        found = score(cells)
        if found is None:
            return None
        if not is_error(cells[0].scored_by):
            return Interval(found.mean, found.half)
        return _relative(found.mean, found.half)
    values = [v for c in cells if (v := c.metric(FIGURES[measure])) is not None]
    if not values:
        return None
    if measure == "memory":
        return Interval(_log(values[-1]), 0.0)
    found = over_seeds(values, None)
    return _relative(found.mean, found.half)


def _relative(mean: float, half: float | None) -> Interval:
    if half is None:
        return Interval(_log(mean), None)
    return Interval(_log(mean), (_log(mean + half) - _log(max(mean - half, mean / 10))) / 2)


def _log(value: float) -> float:
    return math.log10(max(value, LEAST))
