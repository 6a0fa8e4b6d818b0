"""R1: measured errors of an estimated kernel over the closed forms."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import exact, mean_of
from attnbench.reproduce.judging import Finding, Verdict

NEAR = 0.15  # of a squared error: 500 000 draws know it to some hundredths
BIAS = 0.01  # of a mean


def verdict(evidence):
    records = evidence.records("pairs")
    by = {}
    for r in records:
        by.setdefault((r["kind"], r["length"], r["angle"]), []).append(r)
    findings = []
    for (kind, length, angle), found in by.items():
        told = f"{kind}, length {length:g}, angle {angle:g}"
        s = math.exp(length**2 * math.cos(angle))
        error = mean_of([r["squared_error"] for r in found], 2 * len(by)) / form(found[0])
        mean = mean_of([r["mean"] for r in found], 2 * len(by)) / s
        findings.append(Finding(f"squared error over the formula, {told}", error, 1 - NEAR, 1 + NEAR, "1"))
        findings.append(Finding(f"mean over exp(x·y), {told}", mean, 1 - BIAS, 1 + BIAS, "1"))
    return Verdict(tuple(findings), _why(by), _panels(by))


def form(record):
    """The closed form of lemma 2 for this kind."""
    length, angle = record["length"], record["angle"]
    product = length**2 * math.cos(angle)
    z = 2 * length**2 + 2 * product  # ‖x + y‖²
    positive = math.exp(z) * math.exp(2 * product) * (1 - math.exp(-z)) / record["directions"]
    return positive if record["kind"] == "positive" else positive * (1 - math.exp(-z)) / 2


def trigonometric(record):
    """By the lemma, of as many directions; not measured."""
    length, angle = record["length"], record["angle"]
    product = length**2 * math.cos(angle)
    z, apart = 2 * length**2 + 2 * product, 2 * length**2 - 2 * product
    return math.exp(z) * math.exp(-2 * product) * (1 - math.exp(-apart)) ** 2 / (2 * record["directions"])


def _why(by):
    sharpest = max(by)[1]
    told = []
    for _, length, angle in sorted(key for key in by if key[0] == "positive" and key[1] == sharpest):
        errors = {kind: form(by[kind, length, angle][0]) for kind in ("positive", "hyperbolic")}
        errors["trigonometric"] = trigonometric(by["positive", length, angle][0])
        best = min(errors, key=errors.get)
        told.append(f"{best} at angle {angle:g}")
    return f"""By the formulas, of as many directions and length {sharpest:g}, the least error is that of {', '.join(told)}: trigonometric features
        are exact where x = y and worst where x = −y, the other two the other way round."""


def _panels(by):
    panels = []
    for length in sorted({key[1] for key in by}):
        lines = []
        for kind in ("positive", "hyperbolic"):
            keys = sorted(key for key in by if key[:2] == (kind, length))
            measured = tuple(Point(k[2], mean_of([r["squared_error"] for r in by[k]])) for k in keys)
            lines.append(Line(kind, measured))
            lines.append(Line(kind, tuple(Point(k[2], exact(form(by[k][0]))) for k in keys), published=True))
        panels.append(Panel(f"x and y of length {length:g}", "angle between x and y", "mean squared error", tuple(lines), x_scale="linear"))
    return tuple(panels)
