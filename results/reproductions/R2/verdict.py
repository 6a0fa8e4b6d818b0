"""R2: the gain of orthogonal directions against its bound."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import difference, exact, mean_of
from attnbench.reproduce.judging import Finding, State, Verdict

BIAS = 0.01  # of a mean


def verdict(evidence):
    by = {}
    for r in evidence.records("gain"):
        by.setdefault((r["length"], r["angle"], r["orthogonal"]), []).append(r)
    settings = sorted({key[:2] for key in by})
    findings = []
    for length, angle in settings:
        errors = [mean_of([r["squared_error"] for r in by[length, angle, o]], 2 * len(settings)) for o in (False, True)]
        least = bound(by[length, angle, True][0])
        told = f"length {length:g}, angle {angle:g}"
        findings.append(
            Finding(f"gain over the theorem's bound, {told}", difference(*errors) / least, least=1, published="1 or more")
        )
        s = math.exp(length**2 * math.cos(angle))
        mean = mean_of([r["mean"] for r in by[length, angle, True]], 2 * len(settings)) / s
        findings.append(Finding(f"mean over exp(x·y), orthogonal, {told}", mean, 1 - BIAS, 1 + BIAS, "1"))
    return Verdict(tuple(findings), _why(findings, by, settings), (_panel(by, settings),))


def bound(record):
    """Of theorem 2."""
    m = d = record["dim"]
    square = record["length"] ** 2
    return 2 * (m - 1) / (m * (d + 2)) * (math.exp(square * math.cos(record["angle"])) - math.exp(-square)) ** 2


def _why(findings, by, settings):
    shares = []
    for length, angle in settings:
        errors = [mean_of([r["squared_error"] for r in by[length, angle, o]]).value for o in (True, False)]
        shares.append(errors[0] / errors[1])
    unclear = sum(f.state is State.unclear for f in findings)
    more = f" {unclear} findings are within the spread of the draws." if unclear else ""
    return f"""The squared error with orthogonal directions is {min(shares):.2f} to {max(shares):.2f} of that with independent ones. The bound is small
        where x and y point apart: there exp(x·y) is near exp(−(‖x‖² + ‖y‖²)/2), and the theorem promises little.{more}"""


def _panel(by, settings):
    names = tuple(f"length {length:g}, angle {angle:g}" for length, angle in settings)
    lines = []
    for orthogonal, label in ((True, "orthogonal"), (False, "independent")):
        lines.append(Line(label, tuple(
            Point(i, mean_of([r["squared_error"] for r in by[length, angle, orthogonal]]))
            for i, (length, angle) in enumerate(settings)
        )))  # fmt: skip
    most = tuple(
        Point(i, exact(mean_of([r["squared_error"] for r in by[*key, False]]).value - bound(by[*key, True][0])))
        for i, key in enumerate(settings)
    )
    lines.append(Line("orthogonal", most, published=True))
    return Panel("8 features, d = 8", "", "mean squared error", tuple(lines), names=names, y_scale="log")
