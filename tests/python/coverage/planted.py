"""Plans and rows with what a test plants in them, without the program."""

from __future__ import annotations

from typing import Any

from attnbench.coverage.asked import Unit, units_of
from attnbench.coverage.held import MISSING, VERIFIED, Held, Interval
from attnbench.coverage.worth import Candidate, Choice, Survey, priced

FAMILIES = {
    "full": "exact",
    "gla": "gated",
    "kda": "gated",
    "mamba2": "gated",
    "retention": "gated",
    "lightning": "gated",
    "topk": "selection",
    "linear": "kernel",
}


def planned_cell(variant: str, length: int = 512, *, share_s: float = 10.0, measure: str = "speed", **more: Any) -> dict[str, Any]:
    """One of `attnbench run --dry-run --format json`."""
    axes = {"length": length, "batch": 1, "mode": "forward", "causal": False, "seed": 0}
    if measure == "speed":
        axes["repetitions"] = 9
    cell = {
        "cell": f"{variant}-{length}",
        "measure": measure,
        "variant": {"name": variant, "params": {}},
        "task": None,
        "axes": axes,
        "training": None,
        "tuned": [],
        "source": {"variant": "aaaa"},
        "forecast_s": share_s,
        "share_s": share_s,
        "skipped": None,
    }
    return cell | more


def unit(variant: str, length: int = 512, **more: Any) -> Unit:
    (found,) = units_of([planned_cell(variant, length, **more)], FAMILIES)
    return found


def measured(variant: str, middle: float, half: float | None, length: int = 512, **more: Any) -> Held:
    return Held(unit(variant, length, **more), VERIFIED, (0,), Interval(middle, half))


def missing(variant: str, length: int = 512, **more: Any) -> Held:
    return Held(unit(variant, length, **more), MISSING)


def surveyed(*held: Held) -> Survey:
    return Survey(held, "full")


def every_candidate(survey: Survey, seconds: float = 10.0) -> list[Candidate]:
    """First measurements, and those that narrow an interval at `seconds` each."""
    wide = survey.wide()
    return [*survey.first(), *priced(wide, [seconds] * len(wide))]


def chosen(survey: Survey, budget: float, seconds: float = 10.0) -> list[Choice]:
    return survey.choose(every_candidate(survey, seconds), budget)


def names(choices: list[Choice]) -> list[tuple[str, int]]:
    return [(c.candidate.unit.variant, c.candidate.unit.axes["length"]) for c in choices]
