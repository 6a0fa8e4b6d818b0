"""R17: exponents of time and memory of training, over length."""

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import exact, time_of
from attnbench.reproduce.judging import Finding, Verdict

SLOPE = 0.15
LEAST = -1.0  # what is linear may have a constant part that is larger: its exponent is less than 1
RANGE = 8  # the fit begins at an eighth of the longest length: below, constant costs bend the curves
KINDS = {  # as published: label, spec as `fit` names it
    "softmax": ("textbook", "full[kernel=materialized]"),
    "lsh": ("reformer", "reformer"),
    "linear": ("linear", "linear"),
}


def verdict(evidence):
    findings, found = [], {}
    start = max(c.length for c in evidence.cells("growth", measure="memory")) // RANGE
    since = ("--from", str(start))
    for measure, word in (("speed", "time"), ("memory", "memory")):
        for name, (label, spec) in KINDS.items():
            expected = evidence.published("exponent")[name]
            found[word, name] = evidence.growth("growth", spec, measure, "", *since)
            findings.append(
                Finding(f"exponent of {word}, {label}, from {start}", found[word, name],
                        expected - SLOPE if expected == 2 else LEAST, expected + SLOPE, f"{expected:g}")  # fmt: skip
            )
    tiled = {
        word: evidence.growth("growth", "full", measure, "", *since).value
        for measure, word in (("speed", "time"), ("memory", "memory"))
    }
    textbook = ""
    if tiled["memory"] < 1 + SLOPE:
        textbook = ": quadratic memory belongs to the textbook form, not to softmax attention"
    why = f"""Of time the exponents are {_told(found, 'time')}; of memory {_told(found, 'memory')}. Tiled exact attention, not in
        the paper, has {tiled['time']:.2f} for time and {tiled['memory']:.2f} for memory{textbook}."""
    return Verdict(tuple(findings), why, _panels(evidence))


def _told(found, word):
    return ", ".join(f"{KINDS[name][0]} {found[word, name].value:.2f}" for name in KINDS)


def _panels(evidence):
    panels = []
    for measure, title, scale in (("speed", "time", "seconds"), ("memory", "peak memory", "bytes")):
        lines = []
        kinds = (("textbook", "full", {"kernel": "materialized"}), ("full, tiled", "full", {"kernel": "tiled"}),
                 ("reformer", "reformer", {}), ("linear", "linear", {}))  # fmt: skip
        for label, variant, more in kinds:
            cells = sorted(
                (c for c in evidence.cells("growth", variant, measure=measure, **more) if c.ok),
                key=lambda c: c.length,
            )
            value = time_of if measure == "speed" else lambda c: exact(c.metric("peak_bytes"))
            lines.append(Line(label, tuple(Point(c.length, value(c), (c,)) for c in cells)))
        panels.append(
            Panel(f"{title}, forward and backward", "sequence length", title, tuple(lines), y_scale=scale)
        )
    return tuple(panels)
