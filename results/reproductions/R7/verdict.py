"""R7: memory of tiled exact attention against the textbook form."""

from attnreproduce.chart import Line, Panel, Point
from attnreproduce.estimates import exact
from attnreproduce.judging import Finding, Verdict

TILED, TEXTBOOK = "full", "full[kernel=materialized]"
SLOPE = 0.15  # around the exponents 1 and 2: constant terms bend a short range
LEAST = -1.0  # the tile itself is a constant: the exponent is less than 1
FACTOR = 2.0  # around the published savings: dropout masks and half precision are not measured here


def verdict(evidence):
    findings = []
    for mode in ("forward", "train"):
        for variant, label, most, least in (
            (TILED, "tiled", 1 + SLOPE, LEAST),
            (TEXTBOOK, "textbook", 2 + SLOPE, 2 - SLOPE),
        ):
            found = evidence.growth("memory", variant, "memory", f"mode {mode}")
            expected = "linear" if variant == TILED else "quadratic"
            findings.append(
                Finding(f"exponent of memory, {label}, {mode}", found, least, most, expected)
            )
    told = evidence.published("memory")
    published = {n: a / b for n, a, b in zip(told["length"], told["textbook"], told["tiled"])}
    peaks, savings = {}, {}
    for mode in ("forward", "train"):
        for kernel in ("tiled", "materialized"):
            cells = evidence.cells("memory", "full", mode=mode, kernel=kernel)
            peaks[mode, kernel] = {c.length: c for c in cells if c.ok}
    for length, textbook in peaks["train", "materialized"].items():
        tiled = peaks["train", "tiled"][length]
        savings[length] = exact(textbook.metric("peak_bytes") / tiled.metric("peak_bytes"))
    for length, saving in published.items():
        found = evidence.cell("memory", "full", mode="train", kernel="materialized", length=length)
        findings.append(
            Finding(f"saving in training at {found.length}", savings[length], saving / FACTOR,
                    saving * FACTOR, f"{saving:.3g}×")  # fmt: skip
        )
    return Verdict(tuple(findings), _why(findings, published, savings), _panels(peaks, savings, published))


def _why(findings, published, savings):
    told = ", ".join(f"{savings[n].value:.1f} at {n} (published {s:.3g})" for n, s in published.items())
    return f"""The textbook form holds scores, weights and, in training, the gradients of both, each of n² numbers; the tiled form
        holds a tile and one number a row. The saving in training is {told}. Its size depends on what is counted beside the matrices:
        inputs, output and their gradients are counted on both sides here."""


def _panels(peaks, savings, published):
    names = {"tiled": "full, tiled", "materialized": "textbook"}
    curves = [
        Panel(
            f"{mode}: peak memory",
            "sequence length",
            "peak memory",
            tuple(
                Line(names[kernel], tuple(
                    Point(n, exact(c.metric("peak_bytes")), (c,)) for n, c in sorted(peaks[mode, kernel].items())
                ))
                for kernel in names
            ),
            y_scale="bytes",
        )
        for mode in ("forward", "train")
    ]  # fmt: skip
    measured = tuple(Point(n, s, (peaks["train", "materialized"][n], peaks["train", "tiled"][n])) for n, s in sorted(savings.items()))
    told = tuple(Point(n, exact(s)) for n, s in published.items())
    lines = (Line("textbook", measured), Line("textbook", told, published=True))
    return (*curves, Panel("train: times as much as tiled", "sequence length", "ratio", lines, at=1))
