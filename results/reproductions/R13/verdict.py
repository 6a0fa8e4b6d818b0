"""R13: weights and outputs of quadratic relative scores against the closed form and a convolution."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import exact
from attnbench.reproduce.judging import Finding, Verdict

NEAR = 1e-3  # of a weight, and of an output of order 1: far above float32's rounding of the result
SHORT = 64  # the length of the claim; longer ones show what float32 makes of the encoding


def verdict(evidence):
    records = evidence.records("convolution")
    short = sorted((r for r in records if r["length"] == SHORT), key=lambda r: r["alpha"])
    if not short:
        raise MissingError(f"no record of length {SHORT} in convolution.jsonl")
    findings = []
    for r in short:
        findings.append(
            Finding(f"weight of the shifted position minus 1/Σexp(−αk²), α = {r['alpha']:g}, n = {SHORT}",
                    exact(_gap(r)), most=NEAR, published="0")  # fmt: skip
        )
    sharp = short[-1]
    findings.append(
        Finding(f"three heads minus the convolution, interior, α = {sharp['alpha']:g}, n = {SHORT}",
                exact(sharp["error_inside"]), most=NEAR, published="0 as α grows")  # fmt: skip
    )
    return Verdict(tuple(findings), _why(records, sharp), _panels(records))


def weight_of(alpha):
    """The closed form; terms beyond 40 vanish for every α here."""
    return 1 / sum(math.exp(-alpha * k * k) for k in range(-40, 41))


def _gap(record):
    return max(abs(record[key] - weight_of(record["alpha"])) for key in ("weight_least", "weight_most"))


def _why(records, sharp):
    worst = max(records, key=_gap)
    more = f""" Scores are differences of numbers of order α·n², which float32 rounds: over all lengths a weight is off by at most
        {_gap(worst):.1g} (α = {worst['alpha']:g}, {worst['length']} positions)."""
    return f"""At α = {sharp['alpha']:g} the three heads are the convolution to {sharp['error_inside']:.1e} in the interior. At the ends they
        are not (off by {sharp['error_at_ends']:.2g}): a head that should look past the end looks at the last position, where a convolution
        sees zeros.{more}"""


def _panels(records):
    lengths = sorted({r["length"] for r in records})

    def lines(key):
        return tuple(
            Line(f"{n} positions", tuple(
                Point(r["alpha"], exact(key(r))) for r in sorted(records, key=lambda r: r["alpha"]) if r["length"] == n
            ))
            for n in lengths
        )
    inside = lines(lambda r: max(r["error_inside"], 1e-9))
    gap = lines(lambda r: max(_gap(r), 1e-9))
    return (
        Panel("three heads minus the convolution", "α", "largest error, interior", inside, x_scale="log", at=NEAR),
        Panel("weight minus the closed form", "α", "largest error, interior", gap, x_scale="log", at=NEAR),
    )
