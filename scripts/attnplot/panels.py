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
    shape_of,
)
from .rows import Cell
from .style import Series, Styles, among


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
    which compares a token against its context, and one for each of several shapes."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        page = scope_of(cell) + ("-decode" if decodes(cell) else "")
        groups.setdefault((page, *shape_of(cell)), []).append(cell)
    several = {key[0] for key in groups if sum(k[0] == key[0] for k in groups) > 1}
    out = []
    for key, members in groups.items():
        panels = _panels(members)
        if not panels:  # everything skipped: nothing to draw, the summary names it
            continue
        shape = "-b{}-h{}-d{}-t{}".format(*key[1:]) if key[0] in several else ""
        out.append((f"{measure}-{key[0]}{shape}", panels))
    return out


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
