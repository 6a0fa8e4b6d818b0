"""Reach: how far an input moves an output, against their distance. One panel for each depth, and
where an output may depend on later inputs, a second row for those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..layout.axes import End, last_point, log_ticks, make_room, name_ends
from ..layout.caption import caption
from ..layout.page import Page, Picture
from ..layout.panels import grey_lines, length_axis, length_ticks
from ..layout.sheets import OTHERS, Place, Sheet, sheets
from ..rows.read import Cell, Rows
from ..rows.settings import contract, shape_text
from ..rows.style import Series, Styles
from ..rows.units import median

NOTE = (
    "Relative change of an output where one input is replaced, by the distance of the two. A stack of "
    "encoder layers with initial weights reads vectors drawn from N(0, 1); points are medians over pairs of "
    "positions so far apart and over the seeds. A line ends, or has a gap, where the change is below {floor:g}, the "
    "rounding of single precision. It says what can arrive, not what a trained model uses."
)
SIDES = {1: "earlier inputs", -1: "later inputs"}
SHAPE = ("length", "heads", "head_dim")


@dataclass(frozen=True)
class Depth:
    """The cells of one number of layers, and inputs on one side of the outputs."""

    layers: int
    side: int
    cells: tuple[Cell, ...]
    is_alone: bool  # no other side is drawn

    @property
    def title(self) -> str:
        told = f"{self.layers} layer{'s' if self.layers > 1 else ''}"
        return told if self.is_alone else f"{told}, {SIDES[self.side]}"

    @property
    def slug(self) -> str:
        return f"{self.layers}{'' if self.side > 0 else '-later'}"

    def select(self, series: list[Series]) -> list[Series]:
        return [s.where(lambda c: c.axes.get("layers") == self.layers) for s in series]

    def points(self, cells: Sequence[Cell]) -> list[tuple[float, float]]:
        """Returns distance and median influence, NaN where it is not above the floor."""
        found: dict[int, list[float]] = {}
        for cell in cells:
            for at in cell.metrics.get("by_distance") or []:
                if at["distance"] * self.side > 0:
                    found.setdefault(abs(at["distance"]), []).append(float(at["perturbation"]))
        floor = max((floor_of(c) for c in cells), default=0.0)
        medians = {d: median(values) for d, values in sorted(found.items())}
        return [(d, value if value > floor else np.nan) for d, value in medians.items()]


def reach(rows: Rows, styles: Styles) -> list[Picture]:
    """Draws a page for each contract and shape."""
    out: list[Picture] = []
    groups = _groups(rows)
    for (which, *shape), cells in groups.items():
        series = styles.series([c for c in cells if c.ok])
        same = [other for contract_of, *other in groups if contract_of == which]
        name = "reach-causal" if which == "causal" else "reach"
        name += f"-{same.index(shape) + 1}" if len(same) > 1 else ""
        for sheet in sheets(_grid(cells), series, styles):
            floor = floor_of(sheet.panels[0].cells[0])
            words = caption(rows, cells, NOTE.format(floor=floor), _shape(cells[0]))
            page = _page(sheet, which, words)
            table = pd.DataFrame(_table(sheet.panels, series))
            out.append(Picture(name + sheet.suffix, page.figure, table, words))
    return out


def depths(rows: Rows) -> list[tuple[str, str, list[Depth]]]:
    """Returns the panels of each contract and shape, both in words."""
    return [
        (which, _shape(cells[0]).rstrip("."), [depth for depth, _, _ in _grid(cells)])
        for (which, *_), cells in _groups(rows).items()
    ]


def _groups(rows: Rows) -> dict[tuple[Any, ...], list[Cell]]:
    """Returns the cells of each contract and shape of which one is ok."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in rows.of("reach"):
        key = contract(cell), *(cell.axes.get(name) for name in SHAPE)
        groups.setdefault(key, []).append(cell)
    return {key: cells for key, cells in groups.items() if any(c.ok for c in cells)}


def _shape(cell: Cell) -> str:
    """Without the number of layers, which differs between the panels and stands above each."""
    axes = {name: value for name, value in cell.axes.items() if name != "layers"}
    return f"Length {cell.length}, {shape_text(replace(cell, axes=axes))}."


def floor_of(cell: Cell) -> float:
    return cell.metric("floor") or 0.0


def _grid(cells: list[Cell]) -> list[tuple[Depth, int, int]]:
    ok = [c for c in cells if c.ok]
    depths = sorted({int(c.axes["layers"]) for c in ok})
    sides = (1, -1) if any((c.metric("perturbation.future") or 0) > 0 for c in ok) else (1,)
    return [
        (Depth(n, side, _with_layers(ok, n), len(sides) == 1), row, column)
        for row, side in enumerate(sides)
        for column, n in enumerate(depths)
    ]


def _with_layers(cells: list[Cell], layers: int) -> tuple[Cell, ...]:
    return tuple(c for c in cells if c.axes.get("layers") == layers)


def _page(sheet: Sheet[Depth], which: str, words: str) -> Page:
    page = Page(
        f"How far an input moves an output, {which}{sheet.told(': ')}",
        "influence by distance" + (f"; {OTHERS}" if sheet.in_parts else ""),
        words,
        [],
        [2.1] * sheet.rows,
        sheet.columns,
        width=sheet.width(8.6),
        gaps=[0.3] + [0.78] * (sheet.rows - 1),
        left=0.8,
    )
    shared: Axes | None = None
    drawn = []
    for place in sheet.places:
        axes = page.panel(place.row, place.column, share_y=shared)
        axes.set_title(place.title)
        drawn.append((axes, place))
        shared = shared or axes
    values = [v for _, place in drawn for s in place.own for _, v in place.panel.points(s.cells)]
    low, high = np.nanmin([*values, 1.0]), np.nanmax([*values, 1e-3])
    for axes, place in drawn:
        axes.set_yscale("log")
        axes.set_ylim(low / 2, high * 2)
        _draw(axes, place)
        log_ticks(axes, axes.yaxis, lambda v: f"{v:.0e}".replace("e-0", "e-"))
        if place.column == 0:
            axes.set_ylabel("relative change")
        else:
            axes.tick_params(labelleft=False)
    return page


def _draw(axes: Axes, place: Place[Depth]) -> None:
    panel = place.panel
    lines = [(s, panel.points(s.cells)) for s in place.own if s.cells]
    for s, own in lines:
        axes.plot(*zip(*own), **s.look.line(), zorder=3)
    distances = sorted({d for c in panel.cells for d, _ in panel.points([c])})
    length_axis(axes, distances)
    ends = [End(last_point(*zip(*own)), s.label, s.look) for s, own in lines]
    share = make_room(axes, ends, max(distances))
    length_ticks(axes, distances, share)
    axes.set_xlabel("distance, positions")
    grey_lines(axes, (panel.points(s.cells) for s in place.others))
    name_ends(axes, ends, share)


def _table(panels: list[Depth], series: list[Series]) -> list[dict[str, Any]]:
    return [
        {
            **s.columns,
            "layers": c.axes.get("layers"),
            "seed": c.axes.get("seed"),
            **{key: at[key] for key in ("distance", "gradient", "perturbation")},
            "floor": floor_of(c),
            "cell": c.id,
        }
        for panel in panels
        for s in panel.select(series)
        for c in s.cells
        for at in c.metrics.get("by_distance") or []
        if at["distance"] * panel.side > 0 or (at["distance"] == 0 and panel.side > 0)
    ]
