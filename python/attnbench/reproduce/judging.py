"""Findings, and the outcome that follows from them.

A finding compares a figure with a bound. It holds where the whole 95 % interval keeps the bound,
fails where the whole interval breaks it, and is unclear otherwise. A claim that needs every
finding is then confirmed wrongly in at most 2.5 % of cases (an intersection-union test); of k
findings that lie on their bounds, one fails by chance in at most k times 2.5 %, or in at most 2.5 %
where their intervals are made to hold together (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from .estimates import Estimate

if TYPE_CHECKING:
    from .chart import Panel


class Outcome(str, Enum):
    agrees = "agrees"
    disagrees = "disagrees"
    undecided = "undecided"
    hardware = "hardware"  # what fails is what the machine decides, not the method


class State(str, Enum):
    holds = "holds"
    fails = "fails"
    unclear = "unclear"


@dataclass(frozen=True)
class Finding:
    """What was found, which bounds it must keep, and what was published."""

    what: str
    found: Estimate
    least: float = -math.inf
    most: float = math.inf
    published: str = ""
    unit: str = ""
    of_machine: bool = False  # whether other hardware, or another program, may give another answer

    def __post_init__(self) -> None:
        if self.least == -math.inf and self.most == math.inf:
            raise ValueError(f"{self.what}: a finding without a bound decides nothing")

    @property
    def state(self) -> State:
        low, high = self.found.low, self.found.high
        if math.isnan(self.found.value) or not low <= high:
            return State.unclear
        if self.least <= low and high <= self.most:
            return State.holds
        return State.fails if high < self.least or low > self.most else State.unclear


@dataclass(frozen=True)
class Verdict:
    findings: tuple[Finding, ...]
    why: str  # one paragraph
    panels: tuple[Panel, ...] = ()
    outcome: Outcome = field(init=False)

    def __post_init__(self) -> None:
        family = [f.found.among for f in self.findings if f.found.among > 1]
        if any(among != len(family) for among in family):
            raise ValueError(f"intervals of {len(family)} findings are made to hold {_listed(family)} together; expected {len(family)} for each")
        object.__setattr__(self, "outcome", outcome_of(self.findings))
        object.__setattr__(self, "why", " ".join(self.why.split()))


def _listed(sizes: Sequence[int]) -> str:
    return " or ".join(map(str, sorted(set(sizes))))


def outcome_of(findings: Sequence[Finding]) -> Outcome:
    """Disagrees where a finding fails that no machine can change; else undecided where one is
    unclear; else hardware where one fails; else agrees."""
    if not findings:
        return Outcome.undecided
    if any(f.state is State.fails and not f.of_machine for f in findings):
        return Outcome.disagrees
    if any(f.state is State.unclear for f in findings):
        return Outcome.undecided
    return Outcome.hardware if any(f.state is State.fails for f in findings) else Outcome.agrees


def decided(found: Estimate, bound: float) -> str:
    """`above`, `below` or `about` the bound, for the paragraph of a verdict."""
    return "above" if found.low > bound else "below" if found.high < bound else "about"
