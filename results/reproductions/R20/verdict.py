"""R20: measured crossings over those that counting multiply-adds predicts."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import Estimate, crossings_of, exact
from attnbench.reproduce.judging import Finding, Verdict

RIVALS = {"full[kernel=tiled]": "tiled", "full[kernel=materialized]": "textbook"}
FACTOR = 2.0


def verdict(evidence):
    findings, found = [], {}
    for name in ("narrow", "wide"):
        crossings = crossings_of(evidence.crossings(name))
        for variant, predicted in evidence.published(name).items():
            for rival, label in RIVALS.items():
                one = crossings.get((variant, "speed", rival))
                if one is None:  # nothing is decided
                    one = Estimate(math.nan, 0.0, math.inf)
                else:
                    found[name, variant, label] = one
                findings.append(
                    Finding(f"{variant} against the {label} form: crossing over n = {predicted}",
                            one / predicted, 1 / FACTOR, FACTOR, "1", of_machine=True)  # fmt: skip
                )
    return Verdict(tuple(findings), _why(evidence, found), (_panel(evidence, found),))


def _why(evidence, found):
    told = "; ".join(
        f"{variant} against the {label} form at {one.value:.0f} (counted: {evidence.published(name)[variant]})"
        for (name, variant, label), one in found.items()
        if math.isfinite(one.value)
    )
    return f"""Measured: {told or 'no crossing'}. Where the measured crossing is the shorter one, an exponential for each pair and memory
        traffic, neither of which is counted, cost exact attention more than its products say; where it is the longer one, the small
        products of the other side run at a smaller share of the peak."""


def _panel(evidence, found):
    rows = list(dict.fromkeys((name, variant) for name, variant, _ in found))
    lines = []
    for label in RIVALS.values():
        points = tuple(
            Point(i, found[(*row, label)])
            for i, row in enumerate(rows)
            if (*row, label) in found and math.isfinite(found[(*row, label)].value)
        )
        lines.append(Line(f"against the {label} form", points))
    told = tuple(Point(i, exact(evidence.published(name)[variant])) for i, (name, variant) in enumerate(rows))
    lines.append(Line("multiply-adds", told, published=True))
    heads = {"narrow": "64", "wide": "128"}
    return Panel(
        "from which length on faster than exact attention", "", "sequence length", tuple(lines),
        names=tuple(f"{variant}, head of {heads[name]}" for name, variant in rows), y_scale="length",
    )  # fmt: skip
