"""The answer: which variants to take within a limit of memory, what is left out, and what the rows do not decide. The same rule
is in reports/advice.js, for the form of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .standing import Standing, Table

LINES = 3


@dataclass(frozen=True)
class Line:
    """A variant to take. Of place 1 is each that may be the fastest; of place 2, what one of them is surely faster than."""

    place: int
    standing: Standing


@dataclass(frozen=True)
class Open:
    """What the rows do not decide: a reason, and the variants that it holds for."""

    what: str  # question, time, score or memory
    reason: str
    standings: tuple[Standing, ...] = ()


@dataclass(frozen=True)
class Answer:
    """`verdict`: take, exact (all others are slower or left out), none (nothing fits), or undecided."""

    table: Table
    verdict: str
    lines: tuple[Line, ...]  # at most LINES
    more: tuple[Line, ...]  # that a longer list would have
    undecided: tuple[Open, ...]
    over: tuple[Standing, ...]  # left out by memory
    losing: tuple[Standing, ...]  # left out by score
    slower: tuple[Standing, ...]


def choose(table: Table) -> Answer:
    limit, exact = table.question.memory, table.exact
    over = [s for s in table.standings if s.fits(limit) == "over"]
    losing = [s for s in table.standings if s.score == "loses" and s not in over]
    left = [s for s in table.standings if s not in over and s not in losing]
    no_exact = exact is not None and exact not in left  # then a variant need not be faster to be taken
    slower = [] if no_exact else [s for s in left if s.time == "slower"]
    left = [s for s in left if s not in slower]
    taken = [s for s in left if _is_sure(s, limit) and (s.time == "faster" or (no_exact and s.ratio is not None))]
    lines = _placed(taken, table)
    unsure = [s for s in left if s not in taken and s is not exact]
    undecided = _undecided(table, unsure, no_exact)
    verdict = "take" if lines else "undecided"
    if not lines and exact in left and exact is not None and not undecided and (slower or over or losing):
        if _is_sure(exact, limit):
            lines, verdict = [Line(1, exact)], "exact"
        else:
            undecided = _undecided(table, [exact], no_exact)
    if not lines and not left and not table.timing.fault and table.standings:
        verdict = "none"
    return Answer(table, verdict, tuple(lines[:LINES]), tuple(lines[LINES:]), tuple(undecided), tuple(over), tuple(losing), tuple(slower))


def _is_sure(standing: Standing, limit: int | None) -> bool:
    return standing.fits(limit) in ("", "within") and standing.score in ("", "keeps")


def _placed(taken: Sequence[Standing], table: Table) -> list[Line]:
    places = {s.key: 2 if any((o.key, s.key) in table.timing.beats for o in taken) else 1 for s in taken}
    # Of one place, what is surely faster by most comes first: the upper end of the interval tells it.
    order = sorted(taken, key=lambda s: (places[s.key], s.ratio.high if s.ratio else math.inf, s.label))
    return [Line(places[s.key], s) for s in order]


def _undecided(table: Table, unsure: Sequence[Standing], no_exact: bool) -> list[Open]:
    """Returns the reasons, those of the whole question first, then each with its variants."""
    limit = table.question.memory
    if table.timing.fault:
        return [Open("question", table.timing.fault)]
    if table.question.task and not table.scored.tasks:
        why = "; ".join(table.scored.faults) or f"no score for {table.question.task}"
        return [Open("question", why, tuple(s for s in unsure if s.time == "faster"))]
    found: dict[tuple[str, str], list[Standing]] = {}
    for s in unsure:
        if s.time in ("undecided", "unknown") and not (no_exact and s.ratio is not None):
            found.setdefault(("time", s.why_time), []).append(s)
        elif s.score not in ("", "keeps"):
            found.setdefault(("score", s.why_score), []).append(s)
        elif s.fits(limit) not in ("", "within"):
            found.setdefault(("memory", s.why_memory), []).append(s)
    rank = {"time": 0, "score": 1, "memory": 2}

    def order(one: Open) -> tuple[bool, int, str]:
        return all(s.time == "unknown" for s in one.standings), rank[one.what], one.reason

    return sorted((Open(what, why, tuple(own)) for (what, why), own in found.items()), key=order)
