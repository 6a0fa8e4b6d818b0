"""R16: growth of time and memory, and the share of memory at 8192."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import exact, time_of
from attnbench.reproduce.judging import Finding, Verdict

SLOPE, FACTOR = 0.15, 2.0
FROM, AT = 2048, 8192  # of the published figures
KINDS = {  # published row: label, spec as `fit` names it, variant, exponent
    "transformer": ("textbook", "full[kernel=materialized]", "full", 2),
    "linformer": ("linformer 256", "linformer", "linformer", 1),
    "longformer": ("longformer 257", "longformer", "longformer", 1),
}


def verdict(evidence):
    findings, cells = [], {}
    longest = max(c.length for c in evidence.cells("growth", measure="memory"))
    start = longest // 4  # as published: from a quarter of the longest on
    since = ("--from", str(start))
    for measure, word, key in (("speed", "time", "ms"), ("memory", "memory", "MB")):
        for row, (label, spec, variant, exponent) in KINDS.items():
            wanted = {"measure": measure} | ({"kernel": "materialized"} if variant == "full" else {})
            own = {c.length: c for c in evidence.cells("growth", variant, **wanted) if c.ok}
            cells[measure, row] = own
            if measure == "speed":
                found = evidence.growth("growth", spec, measure, "", *since)
            elif start in own and longest in own:  # bytes are exact
                ratio = own[longest].metric("peak_bytes") / own[start].metric("peak_bytes")
                found = exact(math.log(ratio) / math.log(longest / start))
            else:
                raise MissingError(f"no memory of {label} at {start} and {longest}")
            told = evidence.published(row)[key]
            findings.append(
                Finding(f"exponent of {word}, {label}", found,
                        exponent - SLOPE, exponent + SLOPE,
                        f"{_slope(evidence.published(row)['length'], told):.2f}")  # fmt: skip
            )
    textbook = evidence.published("transformer")["MB"][-1]
    for row in ("linformer", "longformer"):
        label, _, variant, _ = KINDS[row]
        full = evidence.cell("growth", "full", kernel="materialized", measure="memory", length=longest)
        own = evidence.cell("growth", variant, measure="memory", length=longest)
        share = textbook / evidence.published(row)["MB"][-1]
        findings.append(
            Finding(f"memory of the textbook form over {label} at {longest}",
                    exact(full.metric("peak_bytes") / own.metric("peak_bytes")), share / FACTOR,
                    share * FACTOR, f"{share:.1f}")  # fmt: skip
        )
    return Verdict(tuple(findings), _why(evidence, cells), _panels(evidence, cells))


def _slope(lengths, values):
    at = dict(zip(lengths, values))
    return math.log(at[AT] / at[FROM]) / math.log(AT / FROM)


def _why(evidence, cells):
    full = cells["speed", "transformer"]
    n = max(full)
    told = {row: evidence.published(row)["ms"][-1] for row in KINDS}
    ratios = ", ".join(
        f"{KINDS[row][0]} {time_of(full[n]).value / time_of(cells['speed', row][n]).value:.1f} (published "
        f"{told['transformer'] / told[row]:.1f} at {AT})"
        for row in ("linformer", "longformer")
    )
    low, window = (cells["speed", row][n] for row in ("linformer", "longformer"))
    order = time_of(low).value < time_of(window).value
    kept = "The order of the two is as published." if order == (told["linformer"] < told["longformer"]) else (
        "The order of the two is the reverse of the published one."
    )  # fmt: skip
    tiled = evidence.cells("growth", "full", kernel="tiled", measure="memory", length=n)
    beside = ""
    if tiled and tiled[0].ok:
        share = tiled[0].metric("peak_bytes") / cells["memory", "linformer"][n].metric("peak_bytes")
        beside = f""" Tiled exact attention, which the paper did not have, needs {share:.2f} times the memory of linformer 256."""
    return f"The time of the textbook form over that of the others, at {n} tokens: {ratios}. {kept}{beside}"


def _panels(evidence, cells):
    panels = []
    for measure, title, scale, key, unit in (
        ("speed", "time of a forward pass", "seconds", "ms", 1e-3),
        ("memory", "peak memory", "bytes", "MB", 1e6),
    ):
        lines = []
        for row, (label, *_) in KINDS.items():
            own = cells[measure, row]
            value = time_of if measure == "speed" else lambda c: exact(c.metric("peak_bytes"))
            lines.append(Line(label, tuple(Point(n, value(c), (c,)) for n, c in sorted(own.items()))))
            told = evidence.published(row)
            points = tuple(Point(n, exact(v * unit)) for n, v in zip(told["length"], told[key]))
            lines.append(Line(label, points, published=True))
        panels.append(Panel(title, "sequence length", title, tuple(lines), y_scale=scale))
    return tuple(panels)
