"""Cells to panels: one panel for each contract and mode, so that unlike things never share axes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .caption import brief
from .context import (
    MODE_WORDS,
    MODES,
    contract,
    decodes,
    mode_of,
    scope_of,
    scope_text,
    shape_name,
    shape_of,
    shape_text,
)
from .rows import Cell
from .style import Series, Styles, among
from .units import length_text


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
