"""Distance from exact attention: against what a call costs, and against the scale of the inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from .caption import brief, caption
from .curves import contract, length_text, shape_of
from .families import families
from .fidelity_panels import (
    EXACT,
    Timed,
    against_cost,
    against_scale,
    limits,
    only_scale,
    scale_of,
)
from .page import Page, Picture
from .rows import Cell, Rows
from .style import Series, Styles

FAMILY_NOTE = " Within a variant a larger parameter has a bolder line and a fuller marker."
KINDS = {"random": "random inputs", "needle": "planted needles"}


def fidelity(rows: Rows, styles: Styles) -> list[Picture]:
    """A page per contract: a row per kind of input, cost on the left, scale on the right."""
    out = []
    everything = rows.of("fidelity")
    contracts = list(dict.fromkeys(contract(c) for c in everything if c.status != "skipped"))
    for which in contracts:
        cells = [c for c in everything if contract(c) == which]
        name = "fidelity-causal" if which == "causal" else "fidelity"
        out.append(_picture(name, which, cells, rows, styles))
    return out


def _picture(name: str, which: str, cells: list[Cell], rows: Rows, styles: Styles) -> Picture:
    series, legend = families(styles.series([c for c in cells if c.status != "skipped"]))
    kinds = sorted({_kind(c) for c in cells if c.status != "skipped"}, key=list(KINDS).index)
    timed = _costs(rows.of("speed"), cells, which)
    length = _length(cells, timed)
    scales = sorted({scale_of(c) for c in cells})
    at = min(scales, key=lambda s: abs(s - 1.0))
    words = caption(
        rows,
        cells,
        "Relative error \u2016out \u2212 exact\u2016 / \u2016exact\u2016, exact in double; "
        f"{which}, length {length_text(length)}, n = 1 draw of inputs, no interval. "
        f"Left: input scale {at:g}; "
        + ("time of one forward call" if timed else "no times in these rows")
        + _not_timed(series, timed, length)
        + f". Errors below {EXACT:g} are rounding and drawn on the lower edge."
        + (FAMILY_NOTE if len(legend) < len(series) else ""),
    )
    page = Page(
        "Error against cost, and against input scale",
        "lower is better; in the left panels also further left",
        words,
        legend,
        [2.1] * len(kinds),
        2,
        gaps=[0.3] + [0.74] * (len(kinds) - 1),
        left=0.72,
    )
    table: list[dict[str, Any]] = []
    for row, kind in enumerate(kinds):
        left, right = page.panel(row, 0), page.panel(row, 1)
        left.set_title(f"{KINDS[kind]}: error against {'time' if timed else 'variant'}")
        right.set_title(f"{KINDS[kind]}: error against scale")
        own = [
            replace(s, cells=tuple(c for c in s.cells if _kind(c) == kind and c.length == length))
            for s in series
        ]
        floor = limits([left, right], own)
        against_cost(left, [only_scale(s, at) for s in own], timed, floor)
        against_scale(right, own, scales, floor)
        right.tick_params(labelleft=False)
        left.set_ylabel("relative error")
        table += [
            {
                "input": kind,
                "series": s.label,
                "variant": s.variant,
                "length": c.length,
                "input_scale": scale_of(c),
                "status": c.status,
                "reason": c.reason,
                "relative_error": c.metric("relative_error"),
                "cosine": c.metric("cosine"),
                "weights_kl": c.metric("weights_kl"),
                "time_s": timed.get((s.key, c.length)),
            }
            for s in series
            for c in s.cells
            if _kind(c) == kind
        ]
    return Picture(name, page.figure, pd.DataFrame(table), words)


def _kind(cell: Cell) -> str:
    return str(cell.axes.get("input") or "random")


def _costs(speed: list[Cell], cells: list[Cell], which: str) -> Timed:
    """Median forward time of the bare attention under the same contract, by series and length."""
    wanted = {shape_of(c)[:3] for c in cells}  # threads do not matter to fidelity
    usable = [
        c
        for c in speed
        if c.ok
        and contract(c) == which
        and c.axes.get("mode", "forward") == "forward"
        and c.axes.get("scope", "attention") == "attention"
    ]
    same = [c for c in usable if shape_of(c)[:3] in wanted]
    return {
        ((c.variant, c.params), c.length): c.metric("time_s.median") or 0.0 for c in same or usable
    }


def _length(cells: list[Cell], timed: Timed) -> int:
    """The length with the most timed variants; the longest of equals."""
    lengths = {c.length for c in cells if c.length and c.status != "skipped"}
    series = {(c.variant, c.params) for c in cells}
    return max(lengths, key=lambda n: (sum((s, n) in timed for s in series), n))


def _not_timed(series: list[Series], timed: Timed, length: int) -> str:
    names = [s.label for s in series if (s.key, length) not in timed] if timed else []
    return f"; not timed at this length: {brief(names)}" if names else ""
