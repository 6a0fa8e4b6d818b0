"""What is said of each place: the figures of its machines, what they say together, and on how many machines that holds. Told as text, JSON, CSV and
Markdown alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..plots.rows.crossing import Crossing
from ..plots.rows.settings import is_error
from .crossings import OfMachine, Pair
from .effects import Pooled
from .figures import Figure, Group
from .machines import Place

ALIKE = 1e-3  # of a distance to exact attention: instruction sets round differently
WORDS = {  # on one side of 0, on the other and on neither
    "speed": ("faster", "slower", "undecided"),
    "memory": ("less", "more", "as much"),
}


@dataclass(frozen=True)
class OnMachine:
    """On the scale that is shown: a ratio, a relative error, a difference or a length. `low` and `high` are NaN where there is no interval."""

    machine: int
    value: float
    low: float
    high: float
    text: str = ""  # of a crossing, which may lie outside the measured lengths
    marks: str = ""
    cells: str = ""
    runs: int = 1


@dataclass(frozen=True)
class Line:
    measure: str  # speed, crossing, memory, fidelity or accuracy
    place: Place
    machines: tuple[OnMachine, ...]
    pooled: Pooled | None  # on the scale where differences add; None where nothing is pooled
    shown: Callable[[float], float]  # from that scale to the one that is shown
    says: str  # on how many machines it holds
    marks: str = ""

    @property
    def by_machine(self) -> dict[int, OnMachine]:
        return {one.machine: one for one in self.machines}

    @property
    def pooled_as_shown(self) -> dict[str, float]:
        """Mean with interval, tau as a factor, I², Q, its p and the interval of the next machine; empty where nothing is pooled."""
        if self.pooled is None:
            return {}
        p, shown = self.pooled, self.shown
        ends = {"value": p.estimate, "low": p.low, "high": p.high, "new_low": p.new_low, "new_high": p.new_high}
        return {
            **{name: shown(end) for name, end in ends.items()},
            "tau": shown(p.tau),
            "i_squared": p.i_squared,
            "q": p.q,
            "q_p": p.q_p,
            "machines": p.machines,
        }


def exponent(value: float) -> float:
    """e to the value, infinite where that is no float: an interval of two machines that hardly agree."""
    return math.exp(value) if value < 700 else math.inf if value == value else value


def power_of_two(value: float) -> float:
    return exponent(value * math.log(2))


def identity(value: float) -> float:
    return value


def of_ratios(measure: str, groups: Iterable[Group]) -> list[Line]:
    """Times, pooled, or bytes, which are compared alone."""
    return [
        Line(
            measure,
            group.place,
            _on_machines(group.figures, exponent),
            _pooled(group) if measure == "speed" else None,
            exponent,
            "; ".join(filter(None, [_sides(group, WORDS[measure]), _same(group, 0) if measure == "memory" else ""])),
            group.marks,
        )
        for group in groups
    ]


def of_errors(groups: Iterable[Group]) -> list[Line]:
    return [
        Line("fidelity", group.place, _on_machines(group.figures, exponent), None, exponent, _same(group, ALIKE), group.marks) for group in groups
    ]


def of_scores(groups: Iterable[Group], metrics: dict[Place, str]) -> list[Line]:
    """`metrics` are what the scores of each place are, see settings.is_error."""
    lines = []
    for group in groups:
        words = ("better", "worse", "undecided") if is_error(metrics[group.place]) else ("worse", "better", "undecided")
        says = _sides(group, words)
        told = [f.seeds for f in group.figures]
        alike = [f.machine for f in group.figures if told.count(f.seeds) > 1]
        if alike:  # the same seeds, sources and instruction set: the same bits
            says += f"; {numbered(alike)} trained alike"
        lines.append(Line("accuracy", group.place, _on_machines(group.figures, identity), _pooled(group), identity, says, group.marks))
    return lines


def of_crossings(pairs: Iterable[Pair]) -> list[Line]:
    lines = []
    for pair in pairs:
        pooled = pair.pooled
        own = tuple(_crossed(one) for one in pair.machines)
        marks = "".join(dict.fromkeys(mark for one in pair.machines for mark in one.marks))
        lines.append(
            Line("crossing", pair.place, own, pooled if pooled and pooled.machines > 1 else None, power_of_two, _crosses(pair), marks)
        )
    return lines


def _crosses(pair: Pair) -> str:
    """`crosses on 2 of 3 machines; not faster up to the longest of machine 3; so the pooled length is too low`."""
    count = len(pair.machines)
    within = len(pair.on("within"))
    told = [f"crosses on {within} of {count} {_machines(count)}"] if within else []
    for side, words in (("before", "faster at every length of"), ("beyond", "not faster up to the longest of"), ("unclear", "unclear on")):
        where = pair.on(side)
        if where:
            told.append(f"{words} {numbered(where)}")
    is_open = [one.machine for one in pair.machines if one.is_open]
    if is_open:
        told.append(f"the interval of {numbered(is_open)} leaves the measured lengths")
    if within > 1 and pair.bias:
        told.append(f"so the pooled length is {pair.bias}")
    return "; ".join(told)


def _crossed(one: OfMachine) -> OnMachine:
    at: Crossing = one.crossing
    low = math.nan if at.low is None else at.low
    high = math.nan if at.high is None else at.high
    return OnMachine(one.machine, at.length, low, high, at.text(), one.marks, one.cells)


def _on_machines(figures: Sequence[Figure], shown: Callable[[float], float]) -> tuple[OnMachine, ...]:
    return tuple(
        OnMachine(f.machine, shown(f.value), shown(f.interval[0]), shown(f.interval[1]), "", f.marks, f.cells, f.runs) for f in figures
    )


def _pooled(group: Group) -> Pooled | None:
    """None of one machine, and where all trained alike."""
    told = [f.seeds for f in group.figures]
    is_same = len(told) > 1 and told[0] is not None and all(seeds == told[0] for seeds in told)
    return None if len(told) < 2 or is_same else group.pooled


def _sides(group: Group, words: tuple[str, str, str]) -> str:
    """`faster on 3 of 3 machines`, `faster on 2 of 3 machines; undecided on machine 3`: by each machine's own interval."""
    count = len(group.figures)
    told: list[str] = []
    for side, word in zip((-1, 1), words[:2], strict=True):
        where = group.on(side)
        if where:
            told.append(f"{word} on {numbered(where) if told else f'{len(where)} of {count} {_machines(count)}'}")
    rest = group.on(0)
    if not told:
        return f"{words[2]} on {'each of ' if count > 1 else ''}{count} {_machines(count)}"
    return "; ".join([*told, *([f"{words[2]} on {numbered(rest)}"] if rest else [])])


def _same(group: Group, tolerance: float) -> str:
    """`equal on 3 machines`; nothing of one machine."""
    values = [f.value for f in group.figures]
    if len(values) < 2:
        return ""
    if max(values) - min(values) <= tolerance + 1e-12:
        return f"equal on {len(values)} machines"
    return f"differs by x{exponent(max(values) - min(values)):.3g} between {len(values)} machines"


def numbered(machines: Sequence[int]) -> str:
    """`machine 2`, `machines 1 and 3`."""
    return f"{_machines(len(machines))} {listed([str(n) for n in machines])}"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _machines(count: int) -> str:
    return "machine" if count == 1 else "machines"


def as_record(line: Line) -> dict[str, Any]:
    """A line as JSON; what is not finite is null."""
    machines = [
        {
            "machine": str(one.machine),
            "value": finite(one.value),
            "low": finite(one.low),
            "high": finite(one.high),
            **({"crossing": one.text} if line.measure == "crossing" else {}),
            "marks": one.marks,
            "runs": one.runs,
            "cells": one.cells.split(),
        }
        for one in line.machines
    ]
    pooled = {name: finite(value) for name, value in line.pooled_as_shown.items()}
    axes = dict(line.place.axes)
    return {
        "measure": line.measure,
        "variant": line.place.spec,
        "task": line.place.task_spec or None,
        "axes": axes,
        "machines": machines,
        "pooled": pooled or None,
        "says": line.says,
    }


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
