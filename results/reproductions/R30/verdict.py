"""R30: accuracy and time of windows against exact attention on synthetic frames of speech."""

from attnbench.plots.rows.settings import winners
from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import mean_of, ratio_of_times, score_of
from attnbench.reproduce.judging import Finding, Verdict

LOSS = 0.01  # of accuracy: closer than this counts as equal
SHARE = 0.1  # of exact attention's time
KINDS = {  # variant and window, in the order of the panel
    "exact attention": ("full", {}),
    "window of 18 to either side": ("truncated", {"window": 18}),
    "window of 2 to either side": ("truncated", {"window": 2}),
}
EXACT, WINDOW, SHORT = KINDS


def verdict(evidence):
    by = {kind: _trained(evidence, *of) for kind, of in KINDS.items()}
    if len({tuple(c.axes["seed"] for c in own) for own in by.values()}) > 1 or len(by[EXACT]) < 3:
        raise MissingError("fewer than three seeds of each kind, or others for one, in frames.jsonl")
    best = max(by[EXACT][0].metrics["shortcuts"].values())
    scores = score_of(by[EXACT])
    if scores.high < best:
        raise MissingError(f"exact attention scores {scores.value:.3f}, below the {best:.3f} of a predictor without attention, "
                           "so it is not trained and nothing can be compared with it")  # fmt: skip
    longest = max(c.length for c in evidence.cells("cost"))
    share = ratio_of_times(
        evidence.cell("cost", "truncated", length=longest),
        evidence.cell("cost", "full", kernel="tiled", length=longest),
    )
    findings = (
        Finding(f"accuracy of exact attention minus that of the {WINDOW}", _lost(by, WINDOW), -LOSS, LOSS, "none to slight"),
        Finding(f"accuracy of exact attention minus that of the {SHORT}", _lost(by, SHORT), least=LOSS),
        Finding(f"time of the window over that of exact attention, tiled, at {longest}", share, most=SHARE,
                of_machine=True),
    )  # fmt: skip
    return Verdict(findings, _why(by, share, longest, best), (_scores(by), _times(evidence)))


def _trained(evidence, variant, params):
    """One cell a seed, of the learning rate chosen for this kind."""
    cells = winners([c for c in evidence.cells("frames", variant, **params) if c.ok])
    return sorted(cells, key=lambda c: c.axes["seed"])


def _lost(by, kind):
    return mean_of([a.metric("test") - b.metric("test") for a, b in zip(by[EXACT], by[kind])])


def _why(by, share, longest, best):
    told = ", ".join(
        f"{kind}: {score_of(own).value:.3f} (learning rate {own[0].training['learning_rate']:g})"
        for kind, own in by.items()
    )
    return f"""Accuracy, {told}; a predictor of the 16 frames around, without attention: {best:.3f}. No label depends on more frames than the longer
        window holds, so that a loss could come from the mechanism alone. The shorter one tells whether the task needs a window at all. Over {longest}
        frames the longer one takes {share.value:.3f} of the time."""


def _scores(by):
    lines = tuple(Line(kind, (Point(i, score_of(own), tuple(own)),)) for i, (kind, own) in enumerate(by.items()))
    return Panel("frames, 128 long", "", "test accuracy", lines, names=tuple(by), y_scale="linear")


def _times(evidence):
    rows = sorted({c.length for c in evidence.cells("cost")})
    points = []
    for i, n in enumerate(rows):
        own, full = (evidence.cell("cost", "truncated", length=n), evidence.cell("cost", "full", kernel="tiled", length=n))
        points.append(Point(i, ratio_of_times(own, full), (own, full)))
    return Panel("time of attention", "", "window over exact attention, tiled",
                 (Line(WINDOW, tuple(points)),),
                 names=tuple(f"{n} frames" for n in rows), at=1)  # fmt: skip
