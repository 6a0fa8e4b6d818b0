"""Distance from exact attention: against what a call costs, and against the scale of the inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from .caption import caption
from .curves import contract, length_text, seconds_text, shape_of
from .page import Page, Picture, handles
from .rows import FAILURES, Cell, Rows
from .style import GREY, Series, Styles

EXACT = 1e-5  # below it an answer in float is exact up to rounding
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
    series = styles.series([c for c in cells if c.status != "skipped"])
    kinds = sorted({_kind(c) for c in cells if c.status != "skipped"}, key=list(KINDS).index)
    timed = _costs(rows.of("speed"), cells, which)
    length = _length(cells, timed)
    scales = sorted({_scale(c) for c in cells})
    at = min(scales, key=lambda s: abs(s - 1.0))
    words = caption(
        rows,
        cells,
        "Relative error \u2016out \u2212 exact\u2016 / \u2016exact\u2016, exact in double; "
        f"{which}, length {length_text(length)}, n = 1 draw of inputs, no interval. "
        f"Left: input scale {at:g}; "
        + ("time of one forward call." if timed else "no times in these rows.")
        + f" Errors below {EXACT:g} are rounding and drawn on the lower edge.",
    )
    page = Page(
        "Error against cost, and against input scale",
        "lower is better; in the left panels also further left",
        words,
        handles(series),
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
        floor = _limits([left, right], own)
        _against_cost(left, own, timed, at, floor)
        _against_scale(right, own, scales, floor)
        right.tick_params(labelleft=False)
        left.set_ylabel("relative error")
        table += [
            {
                "input": kind,
                "series": s.label,
                "variant": s.variant,
                "length": c.length,
                "input_scale": _scale(c),
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


def _scale(cell: Cell) -> float:
    return float(cell.axes.get("input_scale") or 1.0)


def _costs(speed: list[Cell], cells: list[Cell], which: str) -> dict[tuple[Any, int | None], float]:
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


def _length(cells: list[Cell], timed: dict[tuple[Any, int | None], float]) -> int:
    """The length with the most timed variants; the longest of equals."""
    lengths = {c.length for c in cells if c.length and c.status != "skipped"}
    series = {(c.variant, c.params) for c in cells}
    return max(lengths, key=lambda n: (sum((s, n) in timed for s in series), n))


def _limits(panels: list[Axes], series: list[Series]) -> float:
    errors = [c.metric("relative_error") or 0.0 for s in series for c in s.cells if c.ok]
    inexact = [e for e in errors if e >= EXACT]
    low, high = (min(inexact), max(inexact)) if inexact else (1e-7, 1e-6)
    exact = len(inexact) < len(errors)
    spread = max(high / low, 10.0)
    floor = low / spread ** (0.3 if exact else 0.08)
    for axes in panels:
        axes.set_yscale("log")
        axes.set_ylim(floor, high * spread**0.14)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        if exact:
            axes.annotate(
                "exact up to rounding",
                (0.5, 0),
                xycoords="axes fraction",
                xytext=(0, 7),
                ha="center",
                textcoords="offset points",
                fontsize=8,
                color=GREY,
                style="italic",
            )
    return floor


def _value(cell: Cell, floor: float) -> float:
    error = cell.metric("relative_error") or 0.0
    return error if error >= EXACT else floor


def _against_cost(
    axes: Axes,
    series: list[Series],
    timed: dict[tuple[Any, int | None], float],
    at: float,
    floor: float,
) -> None:
    """Points; parameterisations of one variant are joined, as they trade cost for error."""
    joined: dict[str, list[tuple[float, float]]] = {}
    for index, s in enumerate(series):
        for cell in s.cells:
            if _scale(cell) != at:
                continue
            x = timed.get((s.key, cell.length)) if timed else float(index)
            if cell.ok and x is not None:
                y = _value(cell, floor)
                axes.plot([x], [y], **{**s.look.line(), "markersize": 6.5}, clip_on=False)
                joined.setdefault(s.variant, []).append((x, y))
            elif cell.status in FAILURES or x is None:
                edge = (x if x is not None else 0.02, 0.95 - 0.09 * index)
                axes.plot(
                    [edge[0]],
                    [edge[1]],
                    transform=axes.get_xaxis_transform() if x is not None else axes.transAxes,
                    marker="X",
                    markersize=6.5,
                    color=s.look.color,
                    markeredgecolor="white",
                    clip_on=False,
                )
                axes.annotate(
                    f"{s.label}: {cell.status if not cell.ok else 'not timed'}",
                    edge,
                    xycoords=axes.get_xaxis_transform() if x is not None else "axes fraction",
                    xytext=(7, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=8,
                    color=s.look.ink,
                )
    for s in series:
        points = sorted(joined.pop(s.variant, []))
        if len(points) > 1:
            axes.plot(
                *zip(*points),
                color=s.look.color,
                linestyle=s.look.dash,
                linewidth=1,
                alpha=0.7,
                zorder=2,
            )
    if not timed:
        axes.set_xticks([])
        return
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low / (high / low) ** 0.06, high * (high / low) ** 0.06)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
    axes.xaxis.set_major_formatter(FuncFormatter(seconds_text))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("time per forward call")


def _against_scale(axes: Axes, series: list[Series], scales: list[float], floor: float) -> None:
    for index, s in enumerate(series):
        at = sorted({_scale(c) for c in s.cells if c.ok})
        points = [
            (x, float(np.median([_value(c, floor) for c in s.cells if c.ok and _scale(c) == x])))
            for x in at
        ]
        if points:
            axes.plot(*zip(*points), **s.look.line(), clip_on=False)
        failed = [_scale(c) for c in s.cells if c.status in FAILURES]
        axes.plot(
            failed,
            [0.95 - 0.09 * index] * len(failed),
            transform=axes.get_xaxis_transform(),
            marker="X",
            linestyle="none",
            markersize=6.5,
            color=s.look.color,
            markeredgecolor="white",
            clip_on=False,
        )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(scales))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("scale of queries and keys (standard deviation)")
