"""R5: what is left of the first prefix state after subtraction, and gradients from stored states."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import exact, mean_of
from attnbench.reproduce.judging import Finding, Verdict

GROWS = 2.0  # times, over the lengths: more than draws differ by
ROUNDING = 1e-4  # relative, of float32 over sums of up to 64 products
ALIKE = 2.0  # times: gradients of early queries at another length are those of other draws


def verdict(evidence):
    by = {}
    for r in evidence.records("subtraction"):
        by.setdefault((r["of"], r["length"]), {})[r["seed"]] = r
    walked = sorted(n for of, n in by if of == "subtraction")
    stored = sorted(n for of, n in by if of == "stored states")
    findings = [
        Finding(f"residual of the first state, {long} positions over {short}",
                _ratio(by["subtraction", long], by["subtraction", short], "residual"), least=GROWS,
                published="above 1")
        for short, long in zip(walked, walked[1:])
    ]  # fmt: skip
    for n in stored:
        worst = max(r["error"] for r in by["stored states", n].values())
        findings.append(
            Finding(f"error of early gradients from stored states, {n} positions", exact(worst), most=ROUNDING, published="0")
        )
    findings.append(
        Finding(f"the same error, {stored[-1]} positions over {stored[0]}",
                _ratio(by["stored states", stored[-1]], by["stored states", stored[0]], "error"), most=ALIKE,
                published="1")  # fmt: skip
    )
    return Verdict(tuple(findings), _why(by, walked), (_panel(by, walked, stored),))


def _ratio(some, others, key):
    """Of geometric means: draws of two lengths are independent, and equal in number."""
    logs = [math.log(some[seed][key] / others[seed][key]) for seed in sorted(some)]
    return mean_of(logs).mapped(math.exp)


def _mean(records, key):
    return mean_of([math.log(r[key]) for r in records.values()]).mapped(math.exp)


def _why(by, walked):
    told = ", ".join(f"{_mean(by['subtraction', n], 'residual').value:.2g} at {n}" for n in walked)
    return f"""Where the first state should be zero, subtraction leaves, in parts of one position's product: {told}. The state grows with the
        length, and with it the rounding of each sum; the gradient of an early query is the state there times the output's gradient."""


def _panel(by, walked, stored):
    lines = (
        Line("first state, by subtraction", tuple(Point(n, _mean(by["subtraction", n], "residual")) for n in walked)),
        Line("early gradients, stored states", tuple(Point(n, _mean(by["stored states", n], "error")) for n in stored)),
    )
    return Panel("relative error in float32", "sequence length", "error", lines)
