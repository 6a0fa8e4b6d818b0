"""An answer as JSON: the fields that --json prints."""

from __future__ import annotations

import math
from typing import Any

from .choosing import Answer
from .evidence import Evidence
from .remedy import reproduce
from .scoring import Score
from .standing import Standing
from .words import head_text, rests_text

Json = dict[str, Any]


def fields(answer: Answer, evidence: Evidence, commands: list[str], told: dict[str, str]) -> Json:
    """Returns the answer: bytes, ratios of time to exact attention's, and 95 % intervals."""
    question, table = answer.table.question, answer.table
    exact = table.exact
    return {
        "question": {
            "length": question.length,
            "mode": question.mode,
            "causal": question.causal,
            "memory_bytes": question.memory,
            "task": question.task or None,
        },
        "verdict": answer.verdict,
        "text": head_text(answer),
        "lines": [{"place": line.place, **standing(line.standing, evidence)} for line in (*answer.lines, *answer.more)],
        "exact": standing(exact, evidence) if exact else None,
        "rests_on": {
            "text": rests_text(answer, evidence),
            "machines": evidence.machines_of(c for s in table.standings for c in s.cells),
            "shape": table.timing.times.axes if table.timing.times else None,
            "tasks": list(table.scored.tasks),
            "disturbed": len(table.timing.clock.disturbed),
        },
        "undecided": [
            {
                "what": found.what,
                "reason": found.reason,
                "variants": [standing(s, evidence) for s in found.standings],
                "run": command,
                "forecast": told.get(command) or None,
            }
            for found, command in zip(answer.undecided, commands, strict=True)
        ],
        "over_memory": [standing(s, evidence) for s in answer.over],
        "losing_score": [standing(s, evidence) for s in answer.losing],
        "slower": [standing(s, evidence) for s in answer.slower],
    }


def standing(found: Standing, evidence: Evidence) -> Json:
    ratio, held = found.ratio, found.held
    return {
        "variant": found.label,
        "time": found.time,
        "why_time": found.why_time or None,
        "ratio": None if ratio is None else {
            "value": ratio.value,
            "low": ratio.low,
            "high": ratio.high,
            "by_machine": {name: [math.exp(v) for v in (e.value, *e.interval())] for name, e in ratio.by_machine.items()},
        },
        "memory": None if held is None else {"low": held.low, "high": held.high, "what": held.what},
        "score": found.score or None,
        "why_score": found.why_score or None,
        "scores": [score(s) for s in found.scores],
        "cells": [c.id for c in found.cells],
        "commands": reproduce(evidence, found),
    }  # fmt: skip


def score(found: Score) -> Json:
    return {
        "task": found.task,
        "metric": found.metric,
        "mean": found.mean,
        "half": found.half,
        "seeds": found.seeds,
        "control": found.control,
        "reference": found.reference,
        "shortcut": found.nothing,
        "kept": found.kept,
        "fault": found.fault or None,
    }
