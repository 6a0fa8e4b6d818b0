"""R23: training losses on copying, at the end of the curves."""

import math

import numpy as np

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import Estimate, difference, mean_of, score_of
from attnbench.reproduce.judging import Finding, Verdict

SMALL = 0.01  # a loss below is a copy without a fault
FACTOR = 1.5  # of softmax's loss, where that is larger
NAMES = {"full": "softmax", "linear": "linear", "reformer": "reformer"}
PAPERS_RATE = 1e-3
CHOOSING, JUDGING = 2, 3  # quarters of the curve, counted from 0


def verdict(evidence):
    cells = [c for c in evidence.cells("copy") if c.ok]
    by = {name: _best([c for c in cells if c.variant == name]) for name in NAMES}
    losses = {name: mean_of([_loss(c, JUDGING) for c in by[name]]) for name in NAMES}
    findings = (
        Finding("loss of linear attention at the end", losses["linear"].mapped(math.exp), most=_limit(losses),
                published="as softmax"),
        Finding("loss of linear attention at the end over Reformer's",
                difference(losses["linear"], losses["reformer"]).mapped(math.exp), most=1, published="below 1"),
    )  # fmt: skip
    papers = {name: [c for c in cells if c.variant == name and c.training["learning_rate"] == PAPERS_RATE] for name in NAMES}
    if all(len(own) >= 3 for own in papers.values()):
        at = {name: mean_of([_loss(c, JUDGING) for c in own]) for name, own in papers.items()}
        findings += (
            Finding(f"loss of linear attention at the end, all at the paper's rate {PAPERS_RATE:g}", at["linear"].mapped(math.exp),
                    most=_limit(at), published="as softmax"),
        )  # fmt: skip
    return Verdict(findings, _why(by, losses) + _at_the_papers_rate(papers), (_curves(by),))


def _limit(losses):
    return max(SMALL, FACTOR * math.exp(losses["full"].value))


def _best(cells):
    """Those of the learning rate with the lowest loss, before the part of the curve that is judged:
    validation does not tell rates apart where all copy without a fault."""
    by = {}
    for cell in cells:
        by.setdefault(cell.training["learning_rate"], []).append(cell)
    whole = {rate: own for rate, own in by.items() if len(own) >= 3}
    if not whole:
        raise MissingError("fewer than three seeds of a variant in copy.jsonl")
    return whole[min(whole, key=lambda rate: np.mean([_loss(c, CHOOSING) for c in whole[rate]]))]


def _loss(cell, quarter):
    """The mean logarithm of the training loss over a quarter of the steps: losses differ by powers
    of ten, as on the paper's axis, and one step by itself is noise."""
    end = max(s["step"] for s in cell.samples)
    own = [s["train_loss"] for s in cell.samples if quarter < 4 * s["step"] / end <= quarter + 1]
    if not own:
        raise MissingError(f"no loss in a quarter of the {end} steps of {cell.variant}")
    return float(np.mean(np.log(own)))


def _why(by, losses):
    told = "; ".join(
        f"{label}: loss {math.exp(losses[name].value):.2g}, test accuracy {score_of(by[name]).value:.3f}, learning rate "
        f"{by[name][0].training['learning_rate']:g}, loss below {SMALL:g} {_step(by[name])}"
        for name, label in NAMES.items()
    )
    return f"""Over the last quarter of the steps, geometric means of three seeds: {told}. A loss below {SMALL:g} is a copy without a fault; what differs
        below is how far and how evenly the loss falls. The paper trains longer, with four layers and eight heads, and one learning rate for all."""


def _at_the_papers_rate(papers):
    """What the choice of a rate for each attention leaves out: the paper has one for all."""
    told = []
    for name, label in NAMES.items():
        if own := papers[name]:
            loss = math.exp(mean_of([_loss(c, JUDGING) for c in own]).value)
            told.append(f"{label} {loss:.2g} (test accuracy {score_of(own).value:.3f})")
    return f" At {PAPERS_RATE:g}, the paper's rate, the losses after as many steps are: {'; '.join(told)}." if told else ""


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
