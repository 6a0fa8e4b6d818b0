"""Cells to panels: one per contract and mode, so that unlike things never share axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from .caption import brief
from .curves import contract, shape_of
from .rows import Cell
from .style import Series, Styles

MODES = ("forward", "train", "decode")
MODE_WORDS = {"forward": "forward", "train": "forward and backward", "decode": "decoding one token"}


@dataclass(frozen=True)
class Panel:
    """Cells that differ in variant and length only, with their place on the page."""

    title: str
    row: int
    column: int
    cells: tuple[Cell, ...]

    @property
    def suffix(self) -> str:
        """Of the files of a picture of this panel alone: `train-causal`."""
        axes = self.cells[0].axes
        mode = "" if decodes(self.cells[0]) else str(axes.get("mode") or "forward")
        return "-".join(w for w in (mode, "causal" if axes.get("causal") else "") if w) or "open"

    @cached_property
    def lengths(self) -> list[int]:
        return sorted({c.length for c in self.cells if c.length and c.status != "skipped"})

    @property
    def is_curve(self) -> bool:
        return len(self.lengths) > 1

    @cached_property
    def drawn(self) -> tuple[Cell, ...]:
        """What makes curves: in a panel of several lengths, no series of a single one."""
        reach: dict[Any, set[int | None]] = {}
        for c in self.cells:
            if c.status != "skipped":
                reach.setdefault((c.variant, c.params), set()).add(c.length)
        least = 2 if self.is_curve else 1
        return tuple(c for c in self.cells if len(reach.get((c.variant, c.params), ())) >= least)

    def select(self, series: list[Series]) -> list[Series]:
        mine = {c.id for c in self.cells}
        chosen = [replace(s, cells=tuple(c for c in s.cells if c.id in mine)) for s in series]
        return [s for s in chosen if s.cells]


def decodes(cell: Cell) -> bool:
    return cell.axes.get("mode") == "decode"


def drawn_series(panels: list[Panel], styles: Styles) -> list[Series]:
    return styles.series([c for p in panels for c in p.drawn])


def undrawn(panels: list[Panel], styles: Styles) -> str:
    """The caption's word on series of a single length."""
    keys = {s.key for s in drawn_series(panels, styles)}
    every = styles.series([c for p in panels for c in p.cells if c.status != "skipped"])
    names = [s.label for s in every if s.key not in keys]
    return f"Measured at one length, in the CSV only: {brief(names)}." if names else ""


def pages(measure: str, cells: list[Cell]) -> list[tuple[str, list[Panel]]]:
    """A page per scope, one more for decoding (a token against its context), and per shape where
    there are several: (name of its files, panels)."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        page = str(cell.axes.get("scope") or "attention") + ("-decode" if decodes(cell) else "")
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
        mode = cell.axes.get("mode") or "forward"
        return bool(cell.axes.get("causal")), MODES.index(mode) if mode in MODES else len(MODES)

    keys = sorted({key(c) for c in cells if c.status != "skipped"})
    rows, columns = sorted({k[0] for k in keys}), sorted({k[1] for k in keys})
    out = []
    for k in keys:
        members = tuple(c for c in cells if key(c) == k)
        mode = str(members[0].axes.get("mode") or "forward")
        title = f"{MODE_WORDS.get(mode, mode)}, {contract(members[0])}"
        out.append(Panel(title, rows.index(k[0]), columns.index(k[1]), members))
    return out
