"""R23: final training losses on copying."""

import math

import numpy as np
from attnplot.tuned import winners
from attnreproduce.chart import Line, Panel, Point
from attnreproduce.estimates import Estimate, difference, mean_of, score_of
from attnreproduce.fault import MissingError
from attnreproduce.judging import Finding, Verdict

SMALL = 0.01  # a loss below is a copy without a fault
FACTOR = 1.5  # of softmax's loss, where that is larger
NAMES = {"full": "softmax", "linear": "linear", "reformer": "reformer"}


def verdict(evidence):
    cells = winners([c for c in evidence.cells("copy") if c.ok])
    by = {name: [c for c in cells if c.variant == name] for name in NAMES}
    if min(map(len, by.values())) < 3:
        raise MissingError("fewer than three seeds of a variant in copy.jsonl")
    losses = {name: mean_of([c.metric("final_train_loss") for c in by[name]]) for name in NAMES}
    limit = max(SMALL, FACTOR * losses["full"].value)
    findings = (
        Finding("final loss of linear attention, mean over seeds", losses["linear"], most=limit, published="as softmax"),
        Finding("final loss of linear attention over Reformer's", _ratio(by["linear"], by["reformer"]),
                most=1, published="below 1"),
    )  # fmt: skip
    return Verdict(findings, _why(by, losses), (_curves(by),))


def _ratio(cells, others):
    """Of geometric means over the seeds: losses differ by powers of ten, as on the paper's axis."""
    logs = [mean_of([math.log(c.metric("final_train_loss")) for c in own]) for own in (cells, others)]
    return difference(*logs).mapped(math.exp)


def _why(by, losses):
    told = ", ".join(
        f"{label}: loss {losses[name].value:.2g}, test accuracy {score_of(by[name]).value:.3f}, learning rate "
        f"{by[name][0].training['learning_rate']:g}, loss below {SMALL:g} {_step(by[name])}"
        for name, label in NAMES.items()
    )
    return f"""At the last step, means of three seeds: {told}. Linear attention must learn features that tell 31 positions apart by
        products of a state of head_dim² numbers, which softmax and Reformer's hashing of equal rows need not; the paper trains longer,
        with four layers and eight heads."""


def _step(cells):
    """The validation step by which the training loss of every seed is small."""
    last = []
    for cell in cells:
        above = [s["step"] for s in cell.samples if not s["train_loss"] < SMALL]
        last.append(max(above, default=0))
    end = max(s["step"] for s in cells[0].samples)
    return f"from step {max(last)} on" if max(last) < end else "not with every seed"


def _curves(by):
    lines = []
    for name, label in NAMES.items():
        steps = [s["step"] for s in by[name][0].samples][3::4]
        points = []
        for step in steps:
            values = [s["train_loss"] for c in by[name] for s in c.samples if s["step"] == step]
            middle = float(np.median(values))
            points.append(Point(step, Estimate(middle, min(values), max(values)), tuple(by[name])))
        lines.append(Line(label, tuple(points)))
    return Panel("training loss: median of three seeds", "step", "loss", tuple(lines), x_scale="log",
                 bars="the ranges of the seeds")  # fmt: skip
