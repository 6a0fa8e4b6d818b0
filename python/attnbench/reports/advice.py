"""The form that answers a question as `attnbench advise` does: what is known at each measured length, in each mode and under each
mask, and what is known of each task's scores, told by the same words. advice.js joins the two and applies the limit of memory."""

from __future__ import annotations

import shlex
from typing import Any

from attnbench._place import COMMAND
from attnbench.advice.evidence import Evidence
from attnbench.advice.kinds import KINDS, tasks_of
from attnbench.advice.question import Question, bytes_of
from attnbench.advice.standing import Standing, Timing, implied_by_task, joined, judged, timing
from attnbench.advice.times import Clock, clock
from attnbench.advice.words import (
    LOSING,
    NAMED,
    SLOWER,
    VERDICTS,
    implied_text,
    marks_text,
    memory_text,
    over_text,
    point_text,
    score_text,
    scores_rest,
    time_text,
    times_rest,
)
from attnbench.plots.rows.read import Rows
from attnbench.plots.rows.settings import MODE_WORDS, MODES
from attnbench.plots.rows.units import bytes_text

Json = dict[str, Any]
LIMITS = tuple(f"{4**power}M" for power in range(5)) + tuple(f"{4**power}G" for power in range(1, 4))
UNTIMED = Timing({}, {}, frozenset(), {}, None, Clock({}, (), ()), "")  # of scores alone


def advice(rows: Rows) -> Json | None:
    """Returns what the form reads; None where no time of exact attention counts."""
    evidence = Evidence(rows)
    places = [place for mode in MODES for causal in (False, True) if (place := _place(evidence, mode, causal)) is not None]
    if not places:
        return None
    return {
        "places": places,
        "tasks": [_task(evidence, word) for word in _words(rows)],
        "limits": [[limit, bytes_of(limit)] for limit in LIMITS],
        "limit_texts": {limit: bytes_text(bytes_of(limit)) for limit in LIMITS},
        "verdicts": VERDICTS,
        "losing": LOSING,
        "slower": SLOWER,
        "named": NAMED,
        "command": shlex.join([COMMAND, "advise", *(f.name for f in rows.files)]),
    }


def _words(rows: Rows) -> list[str]:
    """Returns the kinds and tasks that the rows have a training of."""
    known = {str(c.task) for c in rows.trainings() if c.task and c.status != "skipped"}
    return [*(kind for kind in KINDS if known.intersection(tasks_of(kind))), *sorted(known - set(KINDS))]


def _place(evidence: Evidence, mode: str, causal: bool) -> Json | None:
    if mode == "decode" and not causal:
        return None
    watch = clock(evidence, mode, causal)
    found = [_timing(evidence, Question(length, mode, causal), watch) for length in watch.lengths]
    if not found:
        return None
    return {"mode": mode, "title": MODE_WORDS[mode], "causal": causal, "lengths": found}


def _timing(evidence: Evidence, question: Question, watch: Clock) -> Json:
    """Returns the standings of a length, without scores, and who is faster than whom by their numbers."""
    timed = timing(evidence, question, watch)
    table = joined(evidence, question, timed, judged(evidence, question), is_implied=False)
    numbers = {s.key: i for i, s in enumerate(table.standings)}
    return {
        "length": question.length,
        "where": question.text,
        "fault": timed.fault,
        "unknown": f"no time at length {question.length} and this shape",
        "rests": times_rest(timed, question.length, evidence),
        "standings": [_standing(s, table.exact) for s in table.standings],
        "beats": sorted([numbers[one], numbers[other]] for one, other in timed.beats),
    }


def _standing(standing: Standing, exact: Standing | None) -> Json:
    held = standing.held
    return {
        "label": standing.label,
        "time": standing.time,
        "why": standing.why_time,
        "ratio": standing.ratio.value if standing.ratio else None,
        "high": standing.ratio.high if standing.ratio else None,
        "memory": [held.low, held.high] if held and held.is_same else None,
        "why_memory": standing.why_memory,
        "texts": [time_text(standing), memory_text(standing, exact), marks_text(standing, exact)],
        "point": point_text(standing),
        "over": over_text(standing),
    }


def _task(evidence: Evidence, word: str) -> Json:
    """Returns the scores of a task or a kind under both masks, and whether the task is causal alone."""
    asked = Question(1, task=word)
    out: Json = {"word": word, "implied": implied_text(word) if implied_by_task(evidence, asked) != asked else "", "masks": []}
    for causal in (False, True):
        question = Question(1, causal=causal, task=word)
        own = judged(evidence, question)
        table = joined(evidence, question, UNTIMED, own, is_implied=False)
        scored = own[0]
        out["masks"].append({
            "learned": bool(scored.tasks),
            "faults": "; ".join(scored.faults) or f"no score for {word}",
            "unknown": f"no score for {word}",
            "rests": scores_rest(scored),
            "scores": {s.label: [s.score, s.why_score, score_text(s)] for s in table.standings if s.scores},
        })  # fmt: skip
    return out
