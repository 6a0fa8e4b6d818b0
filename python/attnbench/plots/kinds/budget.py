"""Error against budget: the keys that a query reads and the rank of the weights, beside the best of each budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from ..layout.axes import log_ticks
from ..layout.caption import caption
from ..layout.labels import Label, place_labels
from ..layout.page import Page, Picture
from ..rows.read import FAILURES, Cell, Rows, run_of
from ..rows.settings import contract, dtype_of
from ..rows.style import BASELINE, INK, Series, Styles
from ..rows.units import length_text
from .fidelity import EXACT, KINDS, between, draws, error_at, failed_cross, kind_of, limits, scale_of

HEIGHT, WIDTH = 3.0, 13.2  # inches, of a panel and of the page
LOW = 0.5  # of the keys: a rank up to this share of them is low
BOUND = {"color": INK, "linewidth": 2.8, "marker": ".", "markersize": 7, "solid_capstyle": "round", "zorder": 4}


@dataclass(frozen=True)
class Budget:
    """One column of panels: what its variants spend, which those are, and which spends it best."""

    metric: str
    title: str
    label: str  # of the axis
    families: tuple[str, ...]
    any_low: bool  # also variants of other families that spend little of it
    bound: str  # the variant that is nearest to exact attention's weights at each budget
    told: str  # the name of the bound's line


KEYS = "keys read by a query, mean"
BEST_KEYS = "topk", "best k keys of\neach query (topk)"
BUDGETS = (
    Budget("keys_read", "keys of a pattern", KEYS, ("pattern",), False, *BEST_KEYS),
    Budget("keys_read", "keys chosen by data", KEYS, ("selection", "hashing or routing"), False, *BEST_KEYS),
    Budget("weights_rank", "low rank", "rank of the weights", ("low rank", "kernel"), True,
           "oracle_rank", "best matrix of\neach rank (oracle_rank)"),
)  # fmt: skip
BOUNDS = tuple(dict.fromkeys(b.bound for b in BUDGETS))
METRICS = tuple(dict.fromkeys(b.metric for b in BUDGETS))


@dataclass(frozen=True)
class Inputs:
    """One row of panels."""

    kind: str
    task: str
    task_params: Any
    length: int
    scale: float

    @property
    def title(self) -> str:
        told = KINDS[self.kind] + (f" on {self.task}" if self.task else "")
        scaled = "" if self.task and self.scale == 1 else f", scale {self.scale:g}"
        return f"{told}, length {length_text(self.length)}{scaled}"


def budget(rows: Rows, styles: Styles) -> list[Picture]:
    """Draws a page for each contract and dtype: a row of panels for each kind of inputs, a column for each budget. Rows
    without the best of any budget have no page: they hold nothing to compare with, and `fidelity` shows their errors."""
    known = [c for c in rows.of("fidelity") if c.status != "skipped" and any(map(c.metric, METRICS))]
    out = []
    for which, dtype in dict.fromkeys((contract(c), dtype_of(c)) for c in known):
        cells = [c for c in rows.of("fidelity") if (contract(c), dtype_of(c)) == (which, dtype)]
        inputs = sorted({inputs_of(c) for c in known if (contract(c), dtype_of(c)) == (which, dtype)}, key=_order)
        cells = [c for c in cells if inputs_of(c) in inputs]
        if not any(c.ok and c.variant in BOUNDS for c in cells):
            continue
        words = _words(rows, which, [c for c in cells if _has_place(c, styles)])
        series = styles.series([c for c in cells if c.status != "skipped"])
        budgets = _drawn(inputs, series, styles)
        if not budgets:
            continue
        figure = _page(inputs, series, budgets, styles, words)
        name = ("budget-causal" if which == "causal" else "budget") + ("" if dtype == "float32" else f"-{dtype}")
        out.append(Picture(name, figure, pd.DataFrame(_table(inputs, series)), words))
    return out


def _has_place(cell: Cell, styles: Styles) -> bool:
    """Returns whether a panel shows the cell, or would if it had not failed."""
    named = cell.variant in (*BOUNDS, BASELINE)
    return named or cell.ok or any(styles.family(cell.variant) in b.families for b in BUDGETS)


def inputs_of(cell: Cell) -> Inputs:
    return Inputs(kind_of(cell), cell.task or "", cell.task_params, cell.length or 0, scale_of(cell))


def _order(of: Inputs) -> Any:
    return bool(of.task), of.task, str(of.task_params), of.length, list(KINDS).index(of.kind), of.scale


def _drawn(inputs: list[Inputs], series: list[Series], styles: Styles) -> list[Budget]:
    """Returns the columns in which some panel has two points beside exact attention, or a failure to tell."""

    def count(of: Budget, where: Inputs) -> int:
        members = among([s for x in series if (s := x.where(lambda cell: inputs_of(cell) == where)).cells], of, styles)
        failed = any(c.status in FAILURES for s in members for c in s.cells)
        return 2 if failed else sum(s.variant != BASELINE and _mean(s, of) is not None for s in members)

    return [b for b in BUDGETS if any(count(b, where) > 1 for where in inputs)]


def _page(inputs: list[Inputs], series: list[Series], budgets: list[Budget], styles: Styles, words: str) -> Any:
    page = Page(
        "Error against budget",
        "lower is better, and further left; bold: the best that a budget allows",
        words,
        [],
        [HEIGHT] * len(inputs),
        len(budgets),
        gaps=[0.46] + [0.94] * (len(inputs) - 1),
        width=WIDTH * len(budgets) / len(BUDGETS),
        between=0.3,
    )
    for row, of in enumerate(inputs):
        own = [s for x in series if (s := x.where(lambda cell: inputs_of(cell) == of)).cells]
        axes = [page.panel(row, column) for column in range(len(budgets))]
        shown = [among(own, b, styles) for b in budgets]
        floor = limits(axes, [s for each in shown for s in each])
        for panel, spent, members in zip(axes, budgets, shown, strict=True):
            panel.set_title(f"{of.title}\n{spent.title}" if panel is axes[0] else spent.title)
            _draw(panel, spent, members, styles, floor)
            _name(panel, spent, members, floor, _ends([s for s, b in zip(shown, budgets, strict=True) if b.metric == spent.metric], spent))
        axes[0].set_ylabel("relative error")
        for panel in axes[1:]:
            panel.tick_params(labelleft=False)
    return page.figure


def among(series: list[Series], of: Budget, styles: Styles) -> list[Series]:
    """Returns the series that a panel shows: the bound, exact attention, and what has a place there."""
    exact = {s.key for s in styles.baselines(series)}
    return [
        s
        for s in series
        if s.variant == of.bound
        or s.key in exact
        or s.variant not in (*BOUNDS, BASELINE)
        and of in _places(s, styles)
    ]


def _places(series: Series, styles: Styles) -> list[Budget]:
    """Returns the columns of its family. What reads all keys of low rank, as clusters of queries do, spends rank alone."""
    low = [b for b in BUDGETS if b.any_low and _share(series, b) <= LOW]
    own = [b for b in BUDGETS if styles.family(series.variant) in b.families]
    return [b for b in own if not (low and _share(series, b) > 0.99)] + [b for b in low if b not in own]


def _share(series: Series, of: Budget) -> float:
    """Returns what it spends as a share of the length; infinite where it is not known."""
    spent = _mean(series, of)
    return np.inf if spent is None else spent / (series.cells[0].length or 1)


def _mean(series: Series, of: Budget) -> float | None:
    values = [v for c in series.cells if c.ok and (v := c.metric(of.metric)) is not None]
    return float(np.mean(values)) if values else None


def _ends(shown: list[list[Series]], of: Budget) -> tuple[float, float]:
    """Returns the least and the most that is spent in these columns, which have the same axis."""
    spent = [x for each in shown for s in each if (x := _mean(s, of))]
    low, high = (min(spent), max(spent)) if spent else (1.0, 1.0)
    return low, max(high, 2 * low)


def _paths(series: list[Series], of: Budget, floor: float) -> dict[tuple[str, str | None], list[Label]]:
    """Returns the points of each variant and run from the smallest budget to the largest, means over seeds."""
    paths: dict[tuple[str, str | None], list[Label]] = {}
    for s in series:
        if x := _mean(s, of):
            y = float(np.mean([error_at(c, floor) for c in s.cells if c.ok]))
            told, ink = (of.told, INK) if s.variant == of.bound else (s.variant, s.look.ink)
            run = run_of(s.params)
            point = Label(x, y, 4, told + (f" ({run})" if run else ""), ink)
            paths.setdefault((s.variant, run), []).append(point)
    return {key: sorted(path, key=lambda p: p.x) for key, path in paths.items()}


def _draw(axes: Axes, of: Budget, series: list[Series], styles: Styles, floor: float) -> None:
    """Draws a line through the parameterisations of each variant, and crosses of those that failed."""
    for (variant, _), path in _paths(series, of, floor).items():
        style = BOUND if variant == of.bound else {**styles.look(variant).line(), "linewidth": 1.0, "zorder": 3}
        axes.plot([p.x for p in path], [p.y for p in path], **style, clip_on=False)
    failures = [(s, cell) for s in series for cell in {c.status: c for c in s.cells if c.status in FAILURES}.values()]
    for index, (s, cell) in enumerate(failures):
        failed_cross(axes, s, cell, index)


def _name(axes: Axes, of: Budget, series: list[Series], floor: float, ends: tuple[float, float]) -> None:
    """Sets the axis of budgets from `ends`, and names each line at its largest budget, the bound at its middle."""
    low, high = ends
    axes.set_xscale("log")
    axes.set_xlim(low / (high / low) ** 0.08, high * (high / low) ** 0.22)
    log_ticks(axes, axes.xaxis, lambda v: f"{v:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(of.label)
    labels, taken = [], []
    for (variant, _), path in _paths(series, of, floor).items():
        taken += [(p.x, p.y, p.radius) for p in path]
        taken += [place for a, b in zip(path, path[1:]) for place in between(a, b)]
        labels.append(path[len(path) // 2] if variant == of.bound else path[-1])
    place_labels(axes, labels, points=taken)


def _words(rows: Rows, which: str, cells: list[Cell]) -> str:
    held = {c.variant for c in cells if c.ok}
    best = [name for name in BOUNDS if name in held]
    return caption(
        rows,
        cells,
        f"Relative error \u2016out \u2212 exact\u2016 / \u2016exact\u2016, exact in double; {which}, {draws(cells)}. "
        "It stands against what the weights of a variant show that it spends: the number of keys with a weight that is not zero, "
        "and the numerical rank of the weights. "
        "A line joins the parameterisations of a variant. Low rank are projections, kernels, and what else has at most half as many ranks as "
        "keys. "
        + ("Causal weights are triangles, whose rank is near the length for any variant. " if which == "causal" else "")
        + (
            "Bold: " + " and ".join(best) + ", nearest to exact attention's weights at each budget; an output can be nearer still. "
            if best
            else ""
        )
        + f"Errors below {EXACT:g} are rounding and drawn on the lower edge, named exact.",
    )


def _table(inputs: list[Inputs], series: list[Series]) -> list[dict[str, Any]]:
    return [
        {
            "input": of.kind,
            "task": of.task,
            **s.columns,
            "length": c.length,
            "input_scale": of.scale,
            "status": c.status,
            "reason": c.reason,
            **{name: c.metric(name) for name in METRICS},
            "relative_error": c.metric("relative_error"),
            "cell": c.id,
        }
        for of in inputs
        for s in series
        for c in s.cells
        if inputs_of(c) == of
    ]
