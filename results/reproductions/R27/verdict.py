"""R27: how far outputs of Long Range Arena's code are from those of the papers' mechanisms."""

import math
from dataclasses import replace

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import mean_of
from attnbench.reproduce.judging import Finding, State, Verdict

NEAR = 0.1  # of the size of the outputs: closer than this counts as the same mechanism


def verdict(evidence):
    by = {}
    for r in evidence.records("both"):
        by.setdefault(r["variant"], []).append(r)
    findings = tuple(
        Finding(f"{variant}: outputs of the code against the paper's: difference beyond that of two draws", _beyond(own, len(by)), most=NEAR,
                published="0")  # fmt: skip
        for variant, own in by.items()
    )
    return Verdict(findings, _why(findings, by), (_panel(by),))


def _beyond(own, among):
    """Where two draws of the paper's form differ by more than NEAR, outputs that are no further off
    do not tell that the mechanism is the same: no upper end."""
    found = mean_of([r["code_from_paper"] - r["paper_from_itself"] for r in own], among)
    scattered = max(r["paper_from_itself"] for r in own) > NEAR
    return replace(found, high=math.inf) if scattered else found


def _why(findings, by):
    names = {s: [name for f, name in zip(findings, by) if f.state is s] for s in State}
    told = "; ".join(
        f"{word}: {', '.join(names[state])}"
        for state, word in ((State.holds, "the paper's mechanism"), (State.fails, "another function"), (State.unclear, "cannot be told"))
        if names[state]
    )
    return f"""Of {len(by)} mechanisms, the code computes {told}. A score of the table is that of the code; where the code is another function it says
        nothing of the mechanism, and the table's ranking of such rows is one of programs. What `attnbench info` says of `as=lra` tells
        each difference. Where two draws of the paper's form are as far from each other, outputs at initial weights cannot tell."""


def _panel(by):
    lines = (
        Line("code from paper", tuple(Point(i, mean_of([r["code_from_paper"] for r in own])) for i, own in enumerate(by.values()))),
        Line("two draws of the paper's form", tuple(
            Point(i, mean_of([max(r["paper_from_itself"], 1e-3) for r in own])) for i, own in enumerate(by.values())
        )),
    )  # fmt: skip
    return Panel("difference of the outputs over their size", "", "relative difference", lines, names=tuple(by))
