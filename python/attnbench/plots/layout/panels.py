"""Cells to panels over length, one for each contract and mode, so that unlike things never share
axes: the quantity of a cell, its curves as medians with bands, and failures at the edge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import offset_copy

from ..rows.read import FAILURES, Cell
from ..rows.settings import (
    DISTURBED,
    MEANINGS,
    MODE_WORDS,
    MODES,
    contract,
    decodes,
    mark_of,
    mode_of,
    scope_of,
    scope_text,
    shape_name,
    shape_of,
    shape_text,
)
from ..rows.style import BEHIND, Series, Styles, among
from ..rows.units import TEXTS, length_text, median
from .axes import End, cross, fixed_ticks, last_point, log_ticks
from .caption import brief

Value = Callable[[Cell], float | None]


@dataclass(frozen=True)
class Quantity:
    kind: str  # of TEXTS
    title: str  # of the pages
    label: str  # of the axis
    value: Value
    ends: tuple[Value, Value] | None  # of the interval
    columns: Callable[[Cell], dict[str, Any]]  # of the CSV
    marks: Callable[[Cell], str] = mark_of  # of a value

    def heading(self, cell: Cell) -> str:
        return f"{self.title} of one token" if decodes(cell) else self.title

    def middle(self, cell: Cell) -> float:
        return self.value(cell) or np.nan

    def interval(self, cell: Cell) -> tuple[float, float]:
        """Returns the ends of the interval, or the value twice where there is no interval."""
        low, high = self.ends or (self.value, self.value)
        return low(cell) or self.middle(cell), high(cell) or self.middle(cell)

    def medians(self, series: Series) -> dict[int, float]:
        """Returns the median over the seeds, by length."""
        return {
            n: median([self.middle(c) for c in cells])
            for n, cells in by_length(series).items()
        }

    def intervals(self, series: Series) -> dict[int, tuple[float, float]]:
        """Returns the least interval that holds the intervals of all seeds, by length."""
        out = {}
        for n, cells in by_length(series).items():
            low, high = zip(*(self.interval(c) for c in cells))
            out[n] = float(np.min(low)), float(np.max(high))
        return out

    def text(self, value: float) -> str:
        return TEXTS[self.kind](value)

    def axis(self, axes: Axes) -> None:
        """Sets a logarithmic value axis, for bytes to base 2."""
        if self.kind == "bytes":
            axes.set_yscale("log", base=2)
            low, high = np.log2(axes.get_ylim())
            step = max(1, int(np.ceil((high - low) / 8)))
            first = int(np.ceil(low / step) * step)
            ticks = [2.0**p for p in range(first, int(np.floor(high)) + 1, step)]
            fixed_ticks(axes.yaxis, ticks, self.text)
        else:
            axes.set_yscale("log")
            log_ticks(axes, axes.yaxis, self.text)


def by_length(series: Series) -> dict[int, list[Cell]]:
    """Returns the cells with a value, by length. Cells of one length differ in their seed."""
    out: dict[int, list[Cell]] = {}
    for cell in sorted((c for c in series.cells if c.ok and c.length), key=lambda c: c.length or 0):
        out.setdefault(cell.length or 0, []).append(cell)
    return out


@dataclass(frozen=True)
class Panel:
    """Cells that differ only in variant and length, and their place on the page."""

    title: str
    row: int
    column: int
    cells: tuple[Cell, ...]

    @property
    def slug(self) -> str:
        """Names the files of a picture of this panel alone: `train-causal`."""
        cell = self.cells[0]
        mode = "" if decodes(cell) else mode_of(cell)
        return "-".join(filter(None, (mode, "causal" if cell.axes.get("causal") else ""))) or "open"

    @cached_property
    def lengths(self) -> list[int]:
        return sorted({c.length for c in self.cells if c.length and c.status != "skipped"})

    @property
    def is_curve(self) -> bool:
        return len(self.lengths) > 1

    @cached_property
    def drawn(self) -> tuple[Cell, ...]:
        """Returns the cells that make curves. A panel of several lengths draws no series of a
        single length."""
        reach: dict[Any, set[int | None]] = {}
        for c in self.cells:
            if c.status != "skipped":
                reach.setdefault((c.variant, c.params), set()).add(c.length)
        least = 2 if self.is_curve else 1
        return tuple(c for c in self.cells if len(reach.get((c.variant, c.params), ())) >= least)

    def select(self, series: list[Series]) -> list[Series]:
        return [s for s in among(self.cells, series) if s.cells]


def drawn_series(panels: list[Panel], styles: Styles) -> list[Series]:
    return styles.series([c for p in panels for c in p.drawn])


def scope_words(panels: list[Panel]) -> str:
    return scope_text(scope_of(panels[0].cells[0]))


def undrawn(panels: list[Panel], styles: Styles) -> str:
    """Tells in the caption which series have a single length."""
    keys = {s.key for s in drawn_series(panels, styles)}
    every = styles.series([c for p in panels for c in p.cells if c.status != "skipped"])
    names = [s.label for s in every if s.key not in keys]
    return f"Measured at one length, in the CSV only: {brief(names)}." if names else ""


def pages(measure: str, cells: list[Cell]) -> list[tuple[str, list[Panel]]]:
    """Returns pages as (name of the files, panels): one for each scope, one more for decoding,
    which compares a token against its context, and one for each of several shapes. Beside shapes
    with curves, a shape that was measured at one length has no page."""
    out = []
    shown = _by_page(cells)
    for page, shapes in shown.items():
        kept = {shape: panels for shape, panels in shapes.items() if not _is_apart(panels, shapes)}
        for shape, panels in kept.items():
            told = shape_name(panels[0].cells[0]) if len(kept) > 1 else ""
            out.append((f"{measure}-{page}{told}", panels))
    return out


def elsewhere(page: list[Panel], cells: list[Cell]) -> str:
    """Tells in the caption which shapes have no page, because they were measured at one length."""
    shapes = _by_page(cells).get(_page_of(page[0].cells[0]), {})
    apart = [p for panels in shapes.values() if _is_apart(panels, shapes) for p in panels]
    told = [f"{shape_text(p.cells[0])} (length {length_text(p.lengths[0])})" for p in apart]
    return f"Other shapes, of one length: {'; '.join(dict.fromkeys(told))}." if told else ""


def _page_of(cell: Cell) -> str:
    return scope_of(cell) + ("-decode" if decodes(cell) else "")


def _by_page(cells: list[Cell]) -> dict[str, dict[tuple[Any, ...], list[Panel]]]:
    """Returns the panels of each shape of each page. What was skipped throughout has none: there is
    nothing to draw, and the summary names it."""
    groups: dict[tuple[str, tuple[Any, ...]], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((_page_of(cell), shape_of(cell)), []).append(cell)
    out: dict[str, dict[tuple[Any, ...], list[Panel]]] = {}
    for (page, shape), members in groups.items():
        if panels := _panels(members):
            out.setdefault(page, {})[shape] = panels
    return out


def _is_apart(panels: list[Panel], shapes: dict[tuple[Any, ...], list[Panel]]) -> bool:
    curves = any(p.is_curve for own in shapes.values() for p in own)
    return curves and not any(p.is_curve for p in panels)


def _panels(cells: list[Cell]) -> list[Panel]:
    def key(cell: Cell) -> tuple[bool, int]:
        mode = mode_of(cell)
        return bool(cell.axes.get("causal")), MODES.index(mode) if mode in MODES else len(MODES)

    keys = sorted({key(c) for c in cells if c.status != "skipped"})
    rows, columns = sorted({k[0] for k in keys}), sorted({k[1] for k in keys})
    out = []
    for k in keys:
        members = tuple(c for c in cells if key(c) == k)
        mode = mode_of(members[0])
        title = f"{MODE_WORDS.get(mode, mode)}, {contract(members[0])}"
        out.append(Panel(title, rows.index(k[0]), columns.index(k[1]), members))
    return out


TICK = 2.75  # times its size: what a length needs under an axis


def length_axis(axes: Axes, lengths: list[int]) -> None:
    """Sets a logarithmic axis to base 2, from the shortest to the longest length."""
    axes.set_xscale("log", base=2)
    length_ticks(axes, lengths)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: length_text(n)))
    axes.set_xlim(min(lengths) / 1.18, max(lengths) * 1.18)
    axes.set_xlabel("sequence length (tokens, 1k = 1024)")


def length_ticks(axes: Axes, lengths: list[int], share: float = 1.0) -> None:
    """Sets ticks at measured lengths. Some are left out where all would crowd in that share of the
    panel."""
    shown = sorted(set(lengths))
    wide = share * axes.get_window_extent().width / axes.figure.dpi * 72
    room = TICK * rcParams["xtick.labelsize"]
    while len(shown) > 2 and len(shown) * room > wide:
        shown = shown[::-1][::2][::-1]
    axes.xaxis.set_major_locator(FixedLocator(shown))


def draw_curve(axes: Axes, series: Series, quantity: Quantity) -> None:
    """Draws the median over seeds, and a band that holds the intervals of all seeds."""
    medians = quantity.medians(series)
    if not medians:
        return
    axes.plot(list(medians), list(medians.values()), zorder=3, **series.look.line())
    if quantity.ends:
        low, high = zip(*quantity.intervals(series).values())
        band = {"color": series.look.color, "alpha": 0.18, "linewidth": 0, "zorder": 2}
        axes.fill_between(list(medians), low, high, **band)


def draw_marks(axes: Axes, series: Series, quantity: Quantity) -> None:
    """Writes the sign of disturbed times beside their points."""
    medians = quantity.medians(series)
    noisy = [n for n, cells in by_length(series).items() if DISTURBED in marks_in(cells, quantity)]
    if noisy:
        beside_points = offset_copy(axes.transData, axes.figure, 5, 5, units="points")
        sign = {"marker": f"${DISTURBED}$", "markersize": 5, "markeredgewidth": 0.4, "linestyle": "none"}
        axes.plot(noisy, [medians[n] for n in noisy], **sign, color=series.look.ink, transform=beside_points, zorder=5)


def marks_in(cells: Iterable[Cell], quantity: Quantity) -> str:
    """Returns each mark of the values of the cells once, in the order of MEANINGS."""
    found = {mark for cell in cells if cell.ok for mark in quantity.marks(cell)}
    return "".join(mark for mark in MEANINGS if mark in found)


def draw_behind(axes: Axes, series: list[Series], quantity: Quantity) -> None:
    """Draws the curves of other panels in grey, without names."""
    grey_lines(axes, (quantity.medians(s).items() for s in series))


def grey_lines(axes: Axes, lines: Iterable[Iterable[tuple[float, float]]]) -> None:
    """Draws all lines as one line with gaps, which takes much less time than many lines."""
    gap = (np.nan, np.nan)
    points = [p for line in lines for p in (*line, gap)]
    if points:
        axes.plot(*np.array(points).T, color=BEHIND, linewidth=0.8, zorder=1.2)


def failed_at(series: Series) -> list[tuple[int, str]]:
    """Returns the lengths and statuses of cells that failed."""
    return sorted({(c.length, c.status) for c in series.cells if c.status in FAILURES and c.length})


def draw_failures(axes: Axes, series: list[Series]) -> None:
    """Draws a cross at the upper edge for every cell that failed. Each variant has its own row of
    crosses."""
    failing = [(s.look, failed) for s in series if (failed := failed_at(s))]
    for row, (look, failed) in enumerate(failing):
        heights = [failure_height(row)] * len(failed)
        at_edge = {"transform": axes.get_xaxis_transform(), "linestyle": "none"}
        cross(axes, [n for n, _ in failed], heights, look, **at_edge)


def failure_height(row: int) -> float:
    """Returns the height of the crosses of the row-th failing variant, as a share of the panel."""
    return 0.955 - 0.07 * row


def end_of(series: Series, quantity: Quantity) -> End:
    """Returns the end of a curve. Its name carries the marks of its values, and tells the statuses of cells that failed."""
    medians = quantity.medians(series)
    text = with_statuses(series.label + marks_in(series.cells, quantity), failed_at(series))
    return End(last_point(list(medians), list(medians.values())), text, series.look)


def with_statuses(label: str, failed: Iterable[tuple[float, str]]) -> str:
    """Returns `full (oom, timeout)`."""
    statuses = dict.fromkeys(status for _, status in failed)
    return f"{label} ({', '.join(statuses)})" if statuses else label
