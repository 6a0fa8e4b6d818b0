"""R26: where the published ListOps scores lie among predictors that evaluate no nested operator."""

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import difference, mean_of, share
from attnbench.reproduce.judging import Finding, State, Verdict, decided

TREES = 2000  # taken as the size of the published test set
ROOT = "root operator"
CONTROL = "root operator, its digits"  # the digits that are arguments of the root itself, found by counting brackets


def verdict(evidence):
    cells = [c for c in evidence.cells("ladder", "mean", task="listops") if c.ok]
    ladder = {
        name: mean_of([c.metrics["shortcuts"][name] for c in cells])
        for name in cells[0].metrics["shortcuts"]
    }
    scores = {
        name: share(percent / 100, TREES)
        for name, percent in evidence.published("accuracy").items()
    }
    best = max(scores, key=lambda name: scores[name].value)
    top = max(ladder, key=lambda name: ladder[name].value)
    beyond = difference(scores[best], ladder[top])
    finding = Finding(
        f"best published score ({best}) minus the best predictor without a nested operator ({top})",
        beyond, least=0, published=f"{scores[best].value:.4f}",
    )  # fmt: skip
    return Verdict((finding,), _why(finding, ladder, scores), (_panel(ladder, scores, cells),))


def _why(finding, ladder, scores):
    root = ladder[ROOT]
    groups = {"above": [], "about": [], "below": []}
    for name, score in scores.items():
        gap = difference(score, root)
        groups[decided(gap, 0)].append(name)
    told = "; ".join(
        f"{side} it: {', '.join(names)}" for side, names in groups.items() if names
    )
    sense = {
        State.fails: "No score of this table shows that a nested operator is evaluated: all can be had without.",
        State.holds: "The best score is beyond both: it needs the value of a nested operator.",
        State.unclear: "Whether the best score is beyond both cannot be told.",
    }[finding.state]
    return f"""The root operator alone, which the first token tells, scores {root.value:.3f}; with the digits that are
        arguments of the root itself, which takes counting brackets, {ladder[CONTROL].value:.3f}. {sense} Against the root operator alone, the published scores are {told}."""


def _panel(ladder, scores, cells):
    names = sorted([*ladder, *scores], key=lambda n: (ladder | scores)[n].value)
    measured = tuple(Point(names.index(n), e, tuple(cells)) for n, e in ladder.items())
    told = tuple(Point(names.index(n), e) for n, e in scores.items())
    lines = (Line("evaluates no nested operator", measured), Line("model of table 1", told, published=True))
    return Panel(
        "ListOps, 500 to 2000 tokens", "", "test accuracy", lines, names=tuple(names), y_scale="linear"
    )
