"""Whether a cell that was measured again says the same. Times are compared as ratios to exact attention of the same shape, by an interval; scores
by their standard errors; errors and bytes by a tolerance. The level of the intervals is shared among the cells of a sample, so that a sample of
honest cells disagrees in at most 5 of 100 verifications (tests/python/bundles/test_judging.py simulates it)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..plots.rows.terms import is_error
from .archive import Line
from .container import plain
from .figures import UNFINISHED, log_mean, student

LEVEL = 0.05  # of all cells of a sample together
TIME = 0.10  # ratios to exact attention of one processor and instruction set may differ by this share
OTHER_TIME = 0.50  # the same across processors, where it is asked for
WIDE = 4.0  # an interval whose ends differ by this factor says nothing
SCORE = 0.02  # scores differ by so much between builds and processors, of trainings that begin alike
UNSURE = 0.25  # an interval of scores that reaches further, of an error by this share of it, says nothing
EXACT_SHARE = 0.02  # errors and bytes, as `attnbench compare` has it
OTHER_BYTES = 0.10  # bytes of workspaces that follow the caches of the processor
ROUNDING = 1e-5  # relative errors up to this are those of single precision
FRESH = 2.0  # errors at other inputs may differ by this factor
AGREE, DISAGREE, NEITHER = "agree", "disagree", "not comparable"


@dataclass(frozen=True)
class Verdict:
    """Of one cell: "agree", "disagree" or "not comparable", in words, with the interval of the change where there is one."""

    state: str
    words: str
    interval: tuple[float, float] | None = None


def judged_time(pairs: tuple[tuple[Line, Line], tuple[Line, Line]], sampled: int, share: float = TIME) -> Verdict:
    """The variant's time over that of exact attention, then and now. `pairs` are (variant, exact) then and now; `sampled` is how many cells are
    judged together. The logarithms of medians of visits are normal enough for Student's t; their variance is pooled within then and within now,
    and the degrees of freedom are Welch's."""
    ratios, squares, degrees = [], [], []
    for variant, exact in pairs:
        (one, one_error, one_degrees), (two, two_error, two_degrees) = _centre(variant), _centre(exact)
        ratios.append(one - two)
        squares.append(one_error**2 + two_error**2)
        degrees.append(one_degrees + two_degrees)
    change, error = ratios[1] - ratios[0], math.sqrt(sum(squares))
    freedom = sum(squares) ** 2 / sum(s**2 / d for s, d in zip(squares, degrees, strict=True)) if error > 0 else math.inf
    reach = student(LEVEL / sampled, freedom) * error if error > 0 else 0.0
    low, high = math.exp(change - reach), math.exp(change + reach)
    words = (f"{math.exp(ratios[0]):.3g} of exact attention's time then, {math.exp(ratios[1]):.3g} now "
             f"(change {math.exp(change):.3g}, interval {low:.3g} to {high:.3g}; one that reaches {1 / (1 + share):.2f} to {1 + share:.2f} agrees)")  # fmt: skip
    if low > 1 + share or high < 1 / (1 + share):
        return Verdict(DISAGREE, words, (low, high))
    if high / low > WIDE:
        return Verdict(NEITHER, f"{words}: the interval is too wide to tell", (low, high))
    return Verdict(AGREE, words, (low, high))


def _centre(cell: Line) -> tuple[float, float, int]:
    """Of the logarithm of a cell's time: the centre, its standard error, the degrees of freedom."""
    samples, visits = cell["samples"], cell.get("visits") or [len(cell["samples"])]
    if len(visits) > 1:
        return log_mean(samples, visits)
    time = cell["metrics"]["time_s"]  # one visit: what its bootstrap says
    width = math.log(time["ci_high"] / time["ci_low"]) if time["ci_low"] > 0 else 0.0
    return math.log(time["median"]), width / (2 * 1.96), max(len(samples) - 1, 1)


def judged_score(then: Line, now: Line, others: list[float], sampled: int, *, is_same_build: bool) -> Verdict:
    """The test scores of two trainings that begin alike: of one build on one processor, the same bits. `others` are the scores of the bundle's
    other seeds of the same setting: how far apart they lie says how far apart two trainings may end elsewhere."""
    one, two = then["metrics"], now["metrics"]
    before, after = float(one["test"]), float(two["test"])
    if is_same_build:
        return Verdict(AGREE if before == after else DISAGREE, f"test {before!r} then, {after!r} now (one build on one processor: the same bits agree)")
    scatter = [before, *others]
    spread = 2 * sum((s - fmean(scatter)) ** 2 for s in scatter) / (len(scatter) - 1) if others else 0.0
    errors = sum(float(of.get("test_stderr") or 0.0) ** 2 for of in (one, two))
    reach = student(LEVEL / sampled, math.inf) * math.sqrt(errors + spread) + SCORE * max(1.0, abs(before))
    low, high = after - before - reach, after - before + reach
    words = f"test {before:.4g} then, {after:.4g} now (difference {after - before:+.3g}, interval {low:.3g} to {high:.3g}; 0 within agrees)"
    if two.get("ended_by") in UNFINISHED:
        return Verdict(DISAGREE, f"{words}: this training did not end by itself", (low, high))
    if not low <= 0 <= high:
        return Verdict(DISAGREE, words, (low, high))
    widest = UNSURE * (max(abs(before), abs(after)) if is_error(one["metric"]) else 1.0)
    if reach > widest:  # the stranger's own errors and seeds may have made it as wide as it is
        return Verdict(NEITHER, f"{words}: too uncertain to tell", (low, high))
    return Verdict(AGREE, words, (low, high))


def judged_answer(then: Line, now: Line) -> Verdict | None:
    """Of a cell whose answer was verified: disagrees where its error is above the bound that the program sets here; None where it is not."""
    error, bound = float(then["verified"]["error"]), float(now["verified"]["bound"])
    if error <= FRESH * bound:
        return None
    return Verdict(DISAGREE, f"the error of its answer was {error:.3g} then, and the bound is {bound:.3g} here")


def judged_error(then: Line, now: Line, *, is_fresh: bool) -> Verdict:
    """The relative errors of a fidelity cell: at the same inputs, or, `is_fresh`, at others."""
    before, after = (float(cell["metrics"]["relative_error"]) for cell in (then, now))
    most = FRESH if is_fresh else 1 + EXACT_SHARE
    at = "at fresh inputs" if is_fresh else "now"
    words = f"relative error {before:.4g} then, {after:.4g} {at} (a factor of up to {most:g} agrees)"
    same = max(before, after) <= ROUNDING or (after <= before * most and before <= after * most)
    return Verdict(AGREE if same else DISAGREE, words)


def judged_bytes(then: Line, now: Line, *, is_same_machine: bool) -> Verdict:
    """The highest memory of a pass."""
    before, after = (int(cell["metrics"]["peak_bytes"]) for cell in (then, now))
    share = EXACT_SHARE if is_same_machine else OTHER_BYTES
    words = f"{before} bytes then, {after} now (a share of up to {share:.0%} agrees)"
    return Verdict(AGREE if after <= before * (1 + share) and before <= after * (1 + share) else DISAGREE, words)


def judged_outcome(now: Line) -> Verdict | None:
    """Of a cell that was ok and is not now; None where it is."""
    if now["status"] == "ok":
        return None
    why = plain(str(now.get("reason")))
    if now["status"] in ("timeout", "oom", "skipped"):
        return Verdict(NEITHER, f"{now['status']} here: {why}")
    return Verdict(DISAGREE, f"ok then, {now['status']} now: {why}")


def missed(cells: int, sampled: int, share: float = 0.1) -> float:
    """The probability that a random sample of `sampled` of the cells holds none of the share of them that is false."""
    false = math.ceil(share * cells)
    return math.prod(max(0, cells - false - i) / (cells - i) for i in range(sampled)) if cells else 1.0


def label_of(cell: Line) -> str:
    """The cell for people: `speed truncated[window=16] length=64 …`."""
    variant: dict[str, Any] = cell["variant"]
    params = ",".join(f"{name}={value}" for name, value in variant["params"].items())
    task = f" on {cell['task']['name']}" if cell.get("task") else ""
    axes = " ".join(f"{n}={v}" for n, v in cell["axes"].items() if n in ("length", "heads", "mode", "scope", "causal", "seed") and v is not False)
    return plain(f"{cell['measure']} {variant['name']}{f'[{params}]' if params else ''}{task} {axes}")[:160]
