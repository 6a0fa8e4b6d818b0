"""R15: the saving of Linformer against exact attention, over length."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import difference, exact, ratio_of_times
from attnbench.reproduce.judging import Finding, Verdict

RANK = "linformer[rank=128]"
TEXTBOOK = "full[kernel=materialized]"
SLOPE = 0.15  # around 1: n² against n


def verdict(evidence):
    findings, lines = [], {"attention": [], "model": []}
    for kernel, baseline in (("materialized", TEXTBOOK), ("tiled", "full")):
        for scope in ("attention", "model"):
            points = _savings(evidence, kernel, scope)
            label = "against the textbook form" if kernel == "materialized" else "against the tiled form"
            lines[scope].append(Line(label, points))
            first, last = points[0].found, points[-1].found
            findings.append(
                Finding(f"time, {scope}, {label}: saving at {points[-1].x} minus saving at {points[0].x}",
                        difference(last, first), least=0, published="grows")  # fmt: skip
            )
    start = max(c.length for c in evidence.cells("saving", measure="memory")) // 8
    since = ("--from", str(start))
    slopes = [evidence.growth("saving", v, "speed", "scope attention", *since) for v in (TEXTBOOK, RANK)]
    findings.append(
        Finding(f"exponent of the time saved at attention, from {start}", difference(*slopes), 1 - SLOPE, 1 + SLOPE,
                f"1 by counting; {_published_slope(evidence, 'time')} in the whole model")  # fmt: skip
    )
    findings.append(
        Finding(f"exponent of the memory saved, from {start}", _exponent_of_memory(evidence, start), 1 - SLOPE, 1 + SLOPE,
                f"1 by counting; {_published_slope(evidence, 'memory')} in the whole model")  # fmt: skip
    )
    return Verdict(tuple(findings), _why(evidence, lines), _panels(evidence, lines))


def _savings(evidence, kernel, scope):
    own = {c.length: c for c in evidence.cells("saving", "linformer", measure="speed", scope=scope, rank=128) if c.ok}
    full = {c.length: c for c in evidence.cells("saving", "full", measure="speed", scope=scope, kernel=kernel) if c.ok}
    return tuple(
        Point(n, ratio_of_times(full[n], own[n]), (full[n], own[n])) for n in sorted(own) if n in full
    )


def _exponent_of_memory(evidence, start):
    """Of the bytes of the textbook form over those of Linformer; bytes are exact."""
    longest = 8 * start
    savings = [
        evidence.cell("saving", "full", measure="memory", kernel="materialized", length=n).metric("peak_bytes")
        / evidence.cell("saving", "linformer", measure="memory", length=n).metric("peak_bytes")
        for n in (start, longest)
    ]
    return exact(math.log(savings[1] / savings[0]) / math.log(longest / start))


def _published_slope(evidence, name):
    """Over the published lengths from 2048 to 16384."""
    told = evidence.published(name)
    at = dict(zip(told["length"], told["k128"]))
    return f"{math.log(at[16384] / at[2048]) / math.log(8):.2f}"


def _why(evidence, lines):
    textbook, tiled = (line.points[-1] for line in lines["attention"])
    told = dict(zip(*[evidence.published("time")[key] for key in ("length", "k128")]))
    beside = f" (published {told[textbook.x]:g} there)" if textbook.x in told else ""
    whole = lines["model"][0].points[-1]
    return f"""At {textbook.x} tokens attention alone is {textbook.found.value:.1f} times as fast as the textbook form{beside} and
        {tiled.found.value:.1f} times as fast as the tiled form, which computes the same.
        The published saving is of a whole model on a GPU, where projections and feed-forward take their share; in the whole model here
        the saving is {whole.found.value:.1f} at {whole.x}."""


def _panels(evidence, lines):
    panels = []
    for scope in lines:
        told = evidence.published("time")
        shown = tuple(Point(n, exact(s)) for n, s in zip(told["length"], told["k128"]))
        against = Line(lines[scope][0].label, shown, published=True)
        panels.append(Panel(f"{scope}: time saved, rank 128", "sequence length", "times faster", (*lines[scope], against), at=1))
    return tuple(panels)
