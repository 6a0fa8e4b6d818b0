"""Distance from exact attention: against what a call costs, and against the scale of the inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from ..layout.axes import End, beside, cross, entry, fixed_ticks, halo, log_ticks, make_room, name_ends, wrapped
from ..layout.caption import brief, caption
from ..layout.labels import Label, place_labels
from ..layout.page import Page, Picture
from ..layout.panels import grey_lines, with_statuses
from ..layout.sheets import OTHERS, Sheet, sheets
from ..rows.read import FAILURES, Cell, Rows, run_of
from ..rows.settings import contract, dtype_of, mode_of, scope_of, shape_of
from ..rows.style import Series, Styles, families, tag
from ..rows.units import length_text, seconds_text

CROSS = {"linestyle": "none", "markeredgewidth": 1.0, "zorder": 2}
EXACT = 1e-5  # below it an answer in float is exact up to rounding
Timed = dict[tuple[Any, int | None], float]  # seconds by series and length


def scale_of(cell: Cell) -> float:
    return float(cell.axes.get("input_scale") or 1.0)


def only_scale(series: Series, scale: float) -> Series:
    return series.where(lambda cell: scale_of(cell) == scale)


def limits(panels: list[Axes], series: list[Series]) -> float:
    errors = [c.metric("relative_error") or 0.0 for s in series for c in s.cells if c.ok]
    inexact = [e for e in errors if e >= EXACT]
    low, high = (min(inexact), max(inexact)) if inexact else (1e-7, 1e-6)
    exact = len(inexact) < len(errors)
    spread = max(high / low, 10.0)
    floor = low / spread ** (0.3 if exact else 0.08)
    for axes in panels:
        axes.set_yscale("log")
        axes.set_ylim(floor, high * spread**0.14)
        log_ticks(axes, axes.yaxis, lambda v: f"{v:g}")
        if exact:
            _name_floor(axes, floor)
    return floor


def _name_floor(axes: Axes, floor: float) -> None:
    """Names the lower edge, on which errors of rounding are drawn. Its tick replaces others."""
    low, high = axes.get_ylim()
    ticks = [t for t in axes.yaxis.get_major_locator().locs if t > low * (high / low) ** 0.06]
    exact = floor * 1.001
    fixed_ticks(axes.yaxis, [floor, *ticks], lambda v: "exact" if v <= exact else f"{v:g}")


def error_at(cell: Cell, floor: float) -> float:
    """Returns the height of a point: the lower edge where the error is rounding."""
    error = cell.metric("relative_error") or 0.0
    return error if error >= EXACT else floor


def against_cost(axes: Axes, series: list[Series], timed: Timed, floor: float) -> None:
    """Draws a point for each series, the mean over its seeds. A line joins the parameterisations of one variant and run:
    they trade cost for error. The first and the last of these are named, the last with the variant.
    """
    failed = 0
    short: dict[str, str] = {}
    paths: dict[tuple[str, str | None], list[Label]] = {}
    for index, s in enumerate(series):
        done = [c for c in s.cells if c.ok]
        x = (timed.get((s.key, done[0].length)) if timed else float(index + 1)) if done else None
        if x is not None:
            y = float(np.mean([error_at(c, floor) for c in done]))
            axes.plot([x], [y], **{**s.look.line(), "markersize": 6.5}, clip_on=False)
            path = paths.setdefault((s.variant, run_of(s.params)), [])
            path.append(Label(x, y, 4, s.label, s.look.ink))
            short[s.label] = tag(s)
        for cell in list({c.status: c for c in s.cells if c.status in FAILURES}.values()):
            failed_cross(axes, s, cell, failed)
            failed += 1
    for (variant, _), path in paths.items():
        look = next(s.look for s in series if s.variant == variant)
        axes.plot([p.x for p in path], [p.y for p in path], color=look.color, linewidth=0.9)
    axes.xaxis.set_minor_locator(NullLocator())
    if not timed:
        axes.set_xticks([])
        axes.set_xlim(0, len(series) + 1.5)
    else:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xlim(low / (high / low) ** 0.08, high * (high / low) ** 0.2)
        log_ticks(axes, axes.xaxis, seconds_text)
        axes.set_xlabel("time per forward call")
    ends = [replace(path[-1], text=wrapped(path[-1].text)) for path in paths.values()]
    ends += [
        replace(path[0], text=short[path[0].text]) for path in paths.values() if len(path) > 1
    ]
    points = [(p.x, p.y, p.radius) for path in paths.values() for p in path]
    for path in paths.values():
        points += [at for a, b in zip(path, path[1:]) for at in between(a, b)]
    place_labels(axes, ends, points=points)


def between(a: Label, b: Label) -> list[tuple[float, float, float]]:
    """Returns places on the line from a to b for labels to avoid. The axes are logarithmic."""
    return [
        (a.x ** (1 - t) * b.x**t, a.y ** (1 - t) * b.y**t, 1.5) for t in np.linspace(0.05, 0.95, 30)
    ]


def failed_cross(axes: Axes, series: Series, cell: Cell, index: int) -> None:
    """Draws the cross of a cell that has no place on the axes, in the upper left corner, and names it."""
    at = (0.02, 0.95 - 0.09 * index)
    cross(axes, *([v] for v in at), series.look, **CROSS, transform=axes.transAxes)
    style = {"color": series.look.ink, "path_effects": halo()}
    told = f"{series.label}: {cell.status}"
    beside(axes, told, at, (7, 0), xycoords="axes fraction", **style)


def against_scale(
    axes: Axes, series: list[Series], others: list[Series], scales: list[float], floor: float, *, is_named: bool
) -> None:
    """Names the lines at their ends where no legend of the page does."""
    ends, failing = [], 0
    for s in series:
        points = _by_scale(s, floor)
        failed = sorted({(scale_of(c), c.status) for c in s.cells if c.status in FAILURES})
        height = 0.95 - 0.07 * failing
        places, edge = [x for x, _ in failed], axes.get_xaxis_transform()
        cross(axes, places, [height] * len(failed), s.look, **CROSS, transform=edge)
        failing += bool(failed)
        if points:
            axes.plot(*zip(*points), **s.look.line(), clip_on=False)
        if points or failed:
            told = with_statuses(s.label, failed)
            ends.append(End(points[-1] if points else None, told, s.look))
    axes.set_xscale("log", base=2)
    spread = max((max(scales) / min(scales)) ** 0.06, 1.1)  # a single scale needs room too
    axes.set_xlim(min(scales) / spread, max(scales) * spread)
    fixed_ticks(axes.xaxis, scales, lambda v: f"{v:g}")
    axes.set_xlabel("scale of queries and keys")
    share = make_room(axes, ends, max(scales)) if is_named else 1.0
    grey_lines(axes, (_by_scale(s, floor) for s in others))
    if is_named:
        name_ends(axes, ends, share)


def _by_scale(series: Series, floor: float) -> list[tuple[float, float]]:
    """Returns the mean error over seeds at each scale."""
    at = sorted({scale_of(c) for c in series.cells if c.ok})
    return [
        (x, float(np.mean([error_at(c, floor) for c in only_scale(series, x).cells if c.ok])))
        for x in at
    ]


FAMILY_NOTE = " Within a variant a larger parameter has a bolder line and a fuller marker."
HEIGHT = 2.1  # inches of a panel
KINDS = {
    "random": "random inputs",
    "needle": "planted needles",
    "initial": "model before training",
    "trained": "trained model",
}


@dataclass(frozen=True)
class Contract:
    """The cells of one contract and one dtype at one length. Each kind of input has its panels."""

    which: str
    dtype: str
    cells: list[Cell]
    timed: Timed
    length: int
    model: str = ""  # the task of the model that the inputs are captured from

    @property
    def scales(self) -> list[float]:
        return sorted({scale_of(c) for c in self.cells})

    @property
    def at(self) -> float:
        return min(self.scales, key=lambda s: abs(s - 1.0))


@dataclass(frozen=True)
class Input:
    """What a pair of panels draws: one kind of input at one length."""

    kind: str
    length: int

    @property
    def title(self) -> str:
        return KINDS[self.kind]

    @property
    def slug(self) -> str:
        return self.kind

    def select(self, series: list[Series]) -> list[Series]:
        def mine(cell: Cell) -> bool:
            return kind_of(cell) == self.kind and cell.length == self.length

        return [s.where(mine) for s in series]


def fidelity(rows: Rows, styles: Styles) -> list[Picture]:
    """Draws a page for each contract, dtype and task of a model. Each kind of input has a pair of panels: cost on the
    left, scale on the right. Many variants get a page for each kind, which shows them in parts."""
    out: list[Picture] = []
    everything = rows.of("fidelity")
    drawn = [_group(c) for c in everything if c.status != "skipped"]
    for group in dict.fromkeys(drawn):
        which, dtype, task, _ = group
        cells = [c for c in everything if _group(c) == group]
        timed = _costs(rows.of("speed"), cells, which, dtype)
        shown = Contract(which, dtype, cells, timed, _length(cells, timed), task)
        series = families(styles.series([c for c in cells if c.status != "skipped"]))
        kinds = sorted({kind_of(c) for c in cells if c.status != "skipped"}, key=list(KINDS).index)
        grid = [(Input(kind, shown.length), row, 0) for row, kind in enumerate(kinds)]
        name = "fidelity-causal" if which == "causal" else "fidelity"
        name += "" if dtype == "float32" else f"-{dtype}"
        name += f"-{task}" if task else ""
        same = [g for g in dict.fromkeys(drawn) if g[:3] == group[:3]]  # other levels of the task
        name += f"-{same.index(group) + 1}" if len(same) > 1 else ""
        for sheet in sheets(grid, series, styles, by_variant=True, columns=2):
            own = {i.kind for i in sheet.panels}
            words = _words(rows, shown, [c for c in shown.cells if kind_of(c) in own], series)
            page = _page(shown, sheet, words)
            table = pd.DataFrame(_table(shown, sheet.panels, series))
            out.append(Picture(name + sheet.suffix, page.figure, table, words))
    return out


def _page(shown: Contract, sheet: Sheet[Input], words: str) -> Page:
    columns, parts = 2 * sheet.columns, sheet.in_parts
    named = {s.key: s for place in sheet.places for s in place.own if s.cells}
    against = "time" if shown.timed else "variant"
    page = Page(
        f"Error against {against}, and against input scale{sheet.told(': ')}",
        "lower is better"
        + ("; in the panels against time also further left" if shown.timed else "")
        + (f"; {OTHERS}" if parts else ""),
        words,
        [] if parts else [entry(s.look.line(), s.label) for s in named.values()],
        [HEIGHT] * sheet.rows,
        columns,
        gaps=[0.3] + [0.74] * (sheet.rows - 1),
        left=0.72,
        width=7.2 if columns == 2 else 13.2,
        between=0.62 if columns > 2 else 0.3,
    )
    for place in sheet.places:
        left, right = (page.panel(place.row, 2 * place.column + i) for i in (0, 1))
        told = place.title or place.panel.title
        left.set_title(f"{told}: error against {against}" if not parts else told)
        right.set_title(f"{told}: error against scale" if not parts else "against scale")
        floor = limits([left, right], place.own)
        at_one = [only_scale(s, shown.at) for s in place.own]
        against_cost(left, at_one, shown.timed, floor)
        against_scale(right, place.own, place.others, shown.scales, floor, is_named=parts)
        right.tick_params(labelleft=False)
        if place.column == 0:
            left.set_ylabel("relative error")
    return page


def _words(rows: Rows, shown: Contract, cells: list[Cell], series: list[Series]) -> str:
    several = len({s.variant for s in series}) < len(series)
    return caption(
        rows,
        cells,
        "Relative error \u2016out \u2212 exact\u2016 / \u2016exact\u2016, exact in double; "
        f"{shown.which}{_storage(shown.dtype)}, length {length_text(shown.length)}, {draws(cells)}. "
        + (
            f"Queries, keys and values are what a model with exact attention reads on {shown.model}; the scale multiplies "
            "queries and keys. "
            if shown.model
            else "The scale of inputs is the standard deviation of queries and keys. "
        )
        + f"Left: input scale {shown.at:g}; "
        + ("time of one forward call" if shown.timed else "no times in these rows")
        + _not_timed(series, shown.timed, shown.length)
        + f". Errors below {EXACT:g} are rounding and drawn on the lower edge, named exact."
        + (FAMILY_NOTE if several else ""),
    )


def draws(cells: list[Cell]) -> str:
    seeds = len({c.axes.get("seed") for c in cells if c.ok})
    return f"means over {seeds} seeds" if seeds > 1 else "n = 1 draw of inputs, no interval"


def _table(shown: Contract, inputs: list[Input], series: list[Series]) -> list[dict[str, Any]]:
    figures = ["relative_error", "cosine", "weights_kl"]
    if shown.dtype != "float32":
        figures.insert(1, "rounded_inputs_error")
    return [
        {
            "input": of.kind,
            **s.columns,
            "length": c.length,
            "input_scale": scale_of(c),
            "status": c.status,
            "reason": c.reason,
            **{name: c.metric(name) for name in figures},
            "time_s": shown.timed.get((s.key, c.length)),
            "cell": c.id,
        }
        for of in inputs
        for s in of.select(series)
        for c in s.cells
    ]


def _group(cell: Cell) -> tuple[str, str, str, Any]:
    return contract(cell), dtype_of(cell), cell.task or "", cell.task_params


def kind_of(cell: Cell) -> str:
    return str(cell.axes.get("input") or "random")


def _storage(dtype: str) -> str:
    return "" if dtype == "float32" else f", {dtype} against exact attention of unrounded inputs"


def _costs(speed: list[Cell], cells: list[Cell], which: str, dtype: str) -> Timed:
    """Returns the median forward time of the bare attention under the same contract, by series and
    length."""
    wanted = {shape_of(c)[:3] for c in cells}  # threads do not matter to fidelity
    usable = [
        c
        for c in speed
        if c.ok
        and contract(c) == which
        and dtype_of(c) == dtype
        and mode_of(c) == "forward"
        and scope_of(c) == "attention"
        and not c.axes.get("kv_heads")  # fidelity is of heads with their own keys
    ]
    same = [c for c in usable if shape_of(c)[:3] in wanted]
    return {
        ((c.variant, c.params), c.length): c.metric("time_s.median") or 0.0 for c in same or usable
    }


def _length(cells: list[Cell], timed: Timed) -> int:
    """Returns the length with the most timed variants, the longest of equals."""
    lengths = {c.length for c in cells if c.length and c.status != "skipped"}
    series = {(c.variant, c.params) for c in cells}
    return max(lengths, key=lambda n: (sum((s, n) in timed for s in series), n))


def _not_timed(series: list[Series], timed: Timed, length: int) -> str:
    names = [s.label for s in series if (s.key, length) not in timed] if timed else []
    return f"; not timed at this length: {brief(names)}" if names else ""
