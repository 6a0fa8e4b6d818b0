"""R30: accuracy and time of a window against exact attention on synthetic frames of speech."""

from attnplot.tuned import winners
from attnreproduce.chart import Line, Panel, Point
from attnreproduce.estimates import mean_of, ratio_of_times, score_of
from attnreproduce.fault import MissingError
from attnreproduce.judging import Finding, Verdict

LOSS = 0.01  # of accuracy
SHARE = 0.1  # of exact attention's time


def verdict(evidence):
    cells = winners([c for c in evidence.cells("frames") if c.ok])
    by = {
        name: sorted((c for c in cells if c.variant == name), key=lambda c: c.axes["seed"])
        for name in ("full", "truncated")
    }
    if len(by["full"]) != len(by["truncated"]) or len(by["full"]) < 3:
        raise MissingError("fewer than three seeds of both variants in frames.jsonl")
    best = max(by["full"][0].metrics["shortcuts"].values())
    scores = score_of(by["full"])
    if scores.high < best:
        raise MissingError(f"exact attention scores {scores.value:.3f}, below the {best:.3f} of a predictor without attention, "
                           "so it is not trained and nothing can be compared with it")  # fmt: skip
    lost = mean_of([a.metric("test") - b.metric("test") for a, b in zip(by["full"], by["truncated"])])
    longest = max(c.length for c in evidence.cells("cost"))
    share = ratio_of_times(
        evidence.cell("cost", "truncated", length=longest),
        evidence.cell("cost", "full", kernel="tiled", length=longest),
    )
    findings = (
        Finding("accuracy of exact attention minus that of the window", lost, most=LOSS),
        Finding(f"time of the window over that of exact attention, tiled, at {longest}", share, most=SHARE,
                of_machine=True),
    )  # fmt: skip
    return Verdict(findings, _why(by, share, longest, best), (_scores(by), _times(evidence)))


def _why(by, share, longest, best):
    full, window = (score_of(by[name]) for name in ("full", "truncated"))
    rates = {name: by[name][0].training["learning_rate"] for name in by}
    return f"""Exact attention scores {full.value:.3f} and the window {window.value:.3f} (a predictor of the 16 frames around, without
        attention: {best:.3f}), with learning rates of {rates['full']:g} and {rates['truncated']:g}. No label depends on more
        frames than the window holds, so that a loss could come from the mechanism alone. Over {longest} frames it takes {share.value:.3f} of the time."""


def _scores(by):
    names = {"full": "exact attention", "truncated": "window of 18 to either side"}
    lines = tuple(Line(names[n], (Point(i, score_of(by[n]), tuple(by[n])),)) for i, n in enumerate(by))
    return Panel("frames, 128 long", "", "test accuracy", lines, names=tuple(names.values()), y_scale="linear")


def _times(evidence):
    rows = sorted({c.length for c in evidence.cells("cost")})
    points = []
    for i, n in enumerate(rows):
        own, full = (evidence.cell("cost", "truncated", length=n), evidence.cell("cost", "full", kernel="tiled", length=n))
        points.append(Point(i, ratio_of_times(own, full), (own, full)))
    return Panel("time of attention", "", "window over exact attention, tiled",
                 (Line("window of 18 to either side", tuple(points)),),
                 names=tuple(f"{n} frames" for n in rows), at=1)  # fmt: skip
