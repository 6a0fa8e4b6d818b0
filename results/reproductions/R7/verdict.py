"""R7: memory of tiled exact attention against the textbook form."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import exact
from attnbench.reproduce.judging import Finding, Verdict

SLOPE = 0.15  # around the exponents 1 and 2: constant terms bend a short range
FACTOR = 2.0  # around the published savings: dropout masks and half precision are not measured here


def verdict(evidence):
    told = evidence.published("memory")
    published = {n: a / b for n, a, b in zip(told["length"], told["textbook"], told["tiled"])}
    peaks, savings = {}, {}
    for mode in ("forward", "train"):
        for kernel in ("tiled", "materialized"):
            cells = evidence.cells("memory", "full", mode=mode, kernel=kernel)
            peaks[mode, kernel] = {c.length: c for c in cells if c.ok}
    findings = [_growth(peaks, mode, kernel) for mode, kernel in peaks]
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


def _growth(peaks, mode, kernel):
    """The exponent from the shortest to the longest length; bytes are exact."""
    cells = peaks[mode, kernel]
    if len(cells) < 2:
        raise MissingError(f"fewer than two lengths of the {kernel} form, {mode}")
    first, last = min(cells), max(cells)
    ratio = cells[last].metric("peak_bytes") / cells[first].metric("peak_bytes")
    expected, label = (1, "tiled") if kernel == "tiled" else (2, "textbook")
    found = exact(math.log(ratio) / math.log(last / first))
    return Finding(f"exponent of memory, {label}, {mode}", found, expected - SLOPE, expected + SLOPE,
                   "linear" if expected == 1 else "quadratic")  # fmt: skip


def _why(findings, published, savings):
    told = ", ".join(f"{savings[n].value:.1f} at {n} (published {s:.3g})" for n, s in published.items())
    return f"""The textbook form holds one matrix of n² numbers, whose scores become weights in place, and in training three; the
        tiled form holds a tile and one number a row. The saving in training is {told}. Its size depends on what is counted beside the matrices:
        inputs, output and their gradients are counted on both sides here, and it grows as the head gets smaller."""


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
