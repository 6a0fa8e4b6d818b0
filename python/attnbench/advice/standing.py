"""Where every variant stands for a question: its time against exact attention's, its memory, its score, and which variants
are faster than which. No limit of memory is applied yet."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from attnbench.plots.rows.read import Cell
from attnbench.pooling.effects import random_effects

from .deciding import ALPHA, LEVEL, Estimate, holm, sign_of
from .evidence import Evidence, Key
from .kinds import tasks_of
from .memory import Held, memory
from .question import Question
from .scoring import KEEP, Score, Scored, scores
from .times import Clock, Timed, Times, clock

MANY = 3  # machines, from which on their scatter tells whether another one would agree


@dataclass(frozen=True)
class Ratio:
    """Time over that of exact attention: by machine, and pooled over machines with a 95 % interval. Of two machines it reaches
    from the least to the greatest end of their own intervals: they do not tell of a third (pooling/effects.py)."""

    by_machine: dict[str, Estimate]  # logarithms
    value: float
    low: float
    high: float

    @property
    def machines(self) -> int:
        return len(self.by_machine)


@dataclass(frozen=True)
class Standing:
    """What the rows say of a variant. `time`: exact, faster, slower, undecided or unknown; `score`: keeps, loses, undecided,
    unknown, or "" where no task was asked for. `why_*` say what is not decided."""

    key: Key
    label: str
    ratio: Ratio | None
    time: str
    why_time: str
    held: Held | None
    scores: tuple[Score, ...]
    score: str
    why_score: str
    cells: tuple[Cell, ...]  # behind the time

    def fits(self, limit: int | None) -> str:
        """Returns "" where there is no limit, else within, over, undecided or unknown."""
        if limit is None:
            return ""
        return self.held.fits(limit) if self.held else "unknown"

    @property
    def why_memory(self) -> str:
        """Returns why a limit of memory may not be decided."""
        if self.held is None:
            return "its memory was not measured"
        return "its memory between two measured lengths may be more" if self.held.is_same else "its memory was measured at another shape alone"


@dataclass(frozen=True)
class Timing:
    """What is known of times and memory at a length, whatever the task and the limit."""

    ratios: dict[Key, Ratio]
    verdicts: dict[Key, tuple[str, str]]  # faster, slower or undecided, and why undecided
    beats: frozenset[tuple[Key, Key]]  # the first is faster than the second on every machine that has both
    held: dict[Key, Held]
    times: Times | None
    clock: Clock
    fault: str  # why the rows say nothing of this length, mode and mask, or ""

    def behind(self, exact: Key) -> list[dict[Key, Timed]]:
        """Returns the times that the ratios rest on: of machines that have a ratio, beside exact attention."""
        counted = {machine for ratio in self.ratios.values() for machine in ratio.by_machine}
        at = self.times.at.items() if self.times else ()
        return [by_key for spot, by_key in at if spot.machine in counted and exact in by_key]


@dataclass(frozen=True)
class Table:
    """All standings for a question, exact attention's among them, in the order of their times."""

    question: Question
    standings: tuple[Standing, ...]
    timing: Timing
    scored: Scored
    is_implied: bool  # whether the task made the question causal

    @property
    def exact(self) -> Standing | None:
        return next((s for s in self.standings if s.time == "exact"), None)


def implied_by_task(evidence: Evidence, question: Question) -> Question:
    """Returns the question under the mask of its task: where every score of the task in the rows is of causal models, a time
    that is not causal would answer another question."""
    if not question.task or question.causal:
        return question
    wanted = tasks_of(question.task)
    masks = {bool(c.axes.get("causal")) for c in evidence.rows.trainings() if c.task in wanted}
    return replace(question, causal=True) if masks == {True} else question


def table(evidence: Evidence, question: Question) -> Table:
    asked = implied_by_task(evidence, question)
    watch = clock(evidence, asked.mode, asked.causal)
    return joined(evidence, asked, timing(evidence, asked, watch), judged(evidence, asked), is_implied=asked != question)


def timing(evidence: Evidence, question: Question, watch: Clock) -> Timing:
    """`watch`: the times of the question's mode and mask, which many lengths may share."""
    times = watch.at_length(question.length, evidence.exact)
    held = memory(evidence, question.mode, question.causal, question.length, times.shape if times else "")
    timed = {key for by_key in times.at.values() for key in by_key if not evidence.is_control(key)} if times else set()
    ratios = {key: ratio for key in timed if key != evidence.exact and (ratio := _ratio(times, key, evidence))}
    beats = _beats(evidence, times, sorted([*ratios, *(timed & {evidence.exact})]))
    return Timing(ratios, _times(ratios), beats, held, times, watch, _fault(question, watch, times))


Judged = tuple[Scored, dict[Key, tuple[str, str]]]


def judged(evidence: Evidence, question: Question) -> Judged:
    """Returns the scores, and for each variant keeps, loses or undecided, and why undecided."""
    if not question.task:
        return Scored({}, (), ()), {}
    scored = scores(evidence, tasks_of(question.task), question.causal)
    return scored, _scores(scored)


def joined(evidence: Evidence, question: Question, timed: Timing, judged: Judged, *, is_implied: bool) -> Table:
    scored, verdicts = judged
    known = [k for k in dict.fromkeys([*timed.ratios, *timed.held, *scored.by_variant]) if not evidence.is_control(k)]
    known += [evidence.exact] if timed.clock.cells and evidence.exact not in known else []
    found = [_standing(evidence, key, timed, scored, verdicts, question) for key in known]
    found.sort(key=lambda s: (1.0 if s.time == "exact" else s.ratio.value if s.ratio else math.inf, s.label))
    return Table(question, tuple(found), timed, scored, is_implied)


def _ratio(times: Times | None, key: Key, evidence: Evidence) -> Ratio | None:
    by_machine = times.ratios(key, evidence.exact, evidence) if times else {}
    if not by_machine:
        return None
    own = list(by_machine.values())
    pooled = random_effects([e.value for e in own], [e.error for e in own], LEVEL, degrees=[e.freedom for e in own])
    if len(own) < MANY:
        ends = [e.interval() for e in own]
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
    else:
        bend = max(e.bend for e in own)
        low, high = pooled.low - bend, pooled.high + bend
    return Ratio(by_machine, *map(_exp, (pooled.estimate, low, high)))


def _exp(log: float) -> float:
    return math.exp(min(max(log, -700.0), 700.0))


def _times(ratios: dict[Key, Ratio]) -> dict[Key, tuple[str, str]]:
    """Returns for each variant faster, slower or undecided, and why undecided. A claim is that it holds on every machine, and
    all claims together are wrong with a chance of 5 % at most."""
    signs = {key: sign_of(list(ratio.by_machine.values())) for key, ratio in ratios.items()}
    sure = holm({key: p for key, (_, p) in signs.items()})
    out: dict[Key, tuple[str, str]] = {}
    for key, ratio in ratios.items():
        apart = [e.interval() for e in ratio.by_machine.values()]
        if any(high < 0 for _, high in apart) and any(low > 0 for low, _ in apart):
            out[key] = "undecided", "machines disagree"
        elif key not in sure:
            out[key] = "undecided", "too close to exact attention's time"
        elif ratio.machines >= MANY and ratio.low <= 1 <= ratio.high:
            out[key] = "undecided", "machines differ too much"
        else:
            out[key] = ("faster" if signs[key][0] < 0 else "slower"), ""
    return out


def _scores(scored: Scored) -> dict[Key, tuple[str, str]]:
    """Returns for each variant keeps, loses or undecided, and why undecided. To keep is to keep KEEP in every setting, to lose
    is to lose in one; all claims together are wrong with a chance of 5 % at most."""
    out: dict[Key, tuple[str, str]] = {}
    keeps: dict[Key, float] = {}
    loses: dict[Key, float] = {}
    for key, own in scored.by_variant.items():
        known = [s.surplus for s in own if s.surplus is not None]
        if known:
            loses[key] = min(1.0, 2 * len(known) * min(s.chance_below() for s in known))
        if known and len(known) == len(own):
            keeps[key] = min(1.0, 2 * max(s.chance_above() for s in known))
    sure_keeps, sure_loses = holm(keeps), holm(loses)
    for key, own in scored.by_variant.items():
        why = next((f"{s.task}: {s.fault}" for s in own if s.fault), f"seeds do not tell whether it keeps {KEEP:.0%}")
        found = "loses" if key in sure_loses else "keeps" if key in sure_keeps else "undecided"
        out[key] = found, why if found == "undecided" else ""
    return out


def _standing(evidence: Evidence, key: Key, timed: Timing, scored: Scored, verdicts: dict[Key, tuple[str, str]], question: Question) -> Standing:
    time, why_time = timed.verdicts.get(key, ("unknown", f"no time at length {question.length} and this shape"))
    if key == evidence.exact:
        time, why_time = "exact", ""
    score, why_score = ("", "") if not question.task else verdicts.get(key, ("unknown", f"no score for {question.task}"))
    behind = [c for by_key in timed.behind(evidence.exact) if key in by_key for c in by_key[key].cells]
    own = scored.by_variant.get(key, ())
    return Standing(key, evidence.label(key), timed.ratios.get(key), time, why_time, timed.held.get(key), own, score, why_score, tuple(behind))


def _beats(evidence: Evidence, times: Times | None, keys: list[Key]) -> frozenset[tuple[Key, Key]]:
    """Returns the pairs of which the first is faster than the second, on every machine that has both. What is beaten is not the
    fastest: this is wrong with a chance of 5 % at most, since the fastest has only so many rivals (Hsu 1984, Annals of
    Statistics 12). Two that are beaten are in no order."""
    found = set()
    most = ALPHA / max(len(keys) - 1, 1)
    for one, other in itertools.combinations(keys, 2):
        apart = list(times.ratios(one, other, evidence).values()) if times else []
        if apart and max(e.chance_below() for e in apart) <= most:
            found.add((one, other))
        elif apart and max(e.chance_above() for e in apart) <= most:
            found.add((other, one))
    return frozenset(found)


def _fault(question: Question, watch: Clock, times: Times | None) -> str:
    """Returns why no time answers the question, or ""."""
    mask = "causal" if question.causal else "not causal"
    if not watch.cells:
        told = [f"{len(watch.disturbed)} of a machine that did other work meanwhile"] if watch.disturbed else []
        told += [f"{len(watch.single)} of a single visit"] if watch.single else []
        return f"no time of {question.mode}, {mask}, " + (f"counts; left out: {' and '.join(told)}" if told else "is in these rows")
    if times is None:
        lengths = watch.lengths
        if not lengths:
            return f"exact attention has no time of {question.mode}, {mask}, that counts"
        if not lengths[0] <= question.length <= lengths[-1]:
            return f"length {question.length} lies outside what was measured, {lengths[0]} to {lengths[-1]}"
        return f"no variant was measured beside exact attention about length {question.length}"
    return ""
