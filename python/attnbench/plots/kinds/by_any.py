"""Pictures of any axis, parameter or metric by its name against another, and lists of variants by any number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..rows.read import Cell, NothingDrawn, Rows, ids
from ..rows.scores import score
from ..rows.settings import SHAPE, chosen_on_validation, contract, is_error, marks_of, mode_of, scope_of, without_settings
from ..rows.style import COLORS, Series, Styles
from ..rows.style import look as look_at
from .panel_data import SPLITS, Field, LinePanel, Point, Scale, StyleError, keyed, known_names, metric_names, with_marks
from .ranking import RankPanel, at_length, ranking

VARIANT = "variant"
MOST_FIRST = ("test", "validation", "lift", "cosine", "tokens_per_s", "examples_per_s", "flops_per_s", "peak_fraction")
# What may differ along one line beside x: seeds become one point.
WITHIN = ("seed", "repetitions")


def by_any(rows: Rows, styles: Styles, x: str, y: str, by: str, facet: str) -> Sequence[LinePanel | RankPanel]:
    """A panel for each value of `facet` and of everything else that differs and is no seed; a line
    for each value of `by`. With variants along x, a panel is a list of them, best first. Error
    where no row can have a field of that name."""
    names = known_names(rows.cells)
    for option, name in (("x", x), ("y", y), ("by", by), ("facet", facet)):
        if name and name.partition(".")[0] not in names:
            if name.partition(".")[0] in metric_names():
                raise NothingDrawn(f"--{option} {name}: no cell has it")
            near = get_close_matches(name, names, 1, 0.0)
            raise StyleError(f"--{option} {name}: no row has it; nearest is '{near[0]}'")
    given = {n: Field(n) for n in (x, y, by, facet) if n}
    pairs = _joined(rows, given[x], given[y])
    if not pairs:
        raise NothingDrawn(f"--x {x} --y {y}: no cell has both numbers")
    groups: dict[tuple[str, ...], list[tuple[Cell, float]]] = {}
    apart = _apart([c for c, _ in pairs], {x, by, *WITHIN}, facet)
    for cell, at in pairs:
        groups.setdefault(tuple(_told(cell, name) for name in apart), []).append((cell, at))
    out: list[LinePanel | RankPanel] = []
    for values, members in groups.items():
        stem = re.sub(r"[^\w.=-]+", "_", "-".join([f"{y}-by-{x}", *filter(None, values)]))
        cells = [c for c, _ in members]
        if x == VARIANT:
            out.append(_ranked(stem, cells, given[y], styles))
            continue
        scales = [_scale(given[n], cells) for n in (x, y)]
        lines = [(with_marks(s, s.cells), points) for s, points in _lines(members, given[y], by, styles)]
        out.append(LinePanel(stem, keyed(scales[0], cells), scales[1], lines))
    return out


def _ranked(name: str, cells: list[Cell], y: Field, styles: Styles) -> RankPanel:
    scale = _scale(y, cells)
    found = []
    for s in styles.series(cells):
        p = _point(0, list(s.cells), y)
        found.append((s, replace(p, x=p.y, y=0, text=marks_of(s.cells))))
    most_first = y.name in MOST_FIRST and not any(is_error(c.scored_by) for c in cells if c.measure == "accuracy")
    label = " ".join(filter(None, (scale.label, at_length(cells))))
    return ranking(name, label, scale.kind, found, styles, most_first=most_first)


def _scale(of: Field, cells: list[Cell]) -> Scale:
    if of.name not in SPLITS:
        return Scale(of.label(cells), of.kind, of.is_log)
    error = any(is_error(c.scored_by) for c in cells)
    return Scale(of.label(cells), "error" if error else "score", error)


def _joined(rows: Rows, x: Field, y: Field) -> list[tuple[Cell, float]]:
    """Returns cells with y, each with its x: its own, or that of a forward pass of attention with
    the same parameters at the same shape. Trainings that lost the tuning are left out."""
    cells = [*(c for c in rows.cells if c.measure != "accuracy"), *chosen_on_validation(rows.of("accuracy"))]
    done = [c for c in cells if c.ok and y.number(c) is not None]
    if x.name == VARIANT:
        return [(c, 0.0) for c in done if c.measure == done[0].measure]
    own = [(c, at) for c in done if (at := x.number(c)) is not None]
    if own:
        measure = own[0][0].measure
        return [(c, at) for c, at in own if c.measure == measure]
    known = {
        _place(c): at
        for c in rows.cells
        if c.ok and mode_of(c) == "forward" and scope_of(c) == "attention"
        and (at := x.number(c)) is not None
    }  # fmt: skip
    found = [(c, known[_place(c)]) for c in done if _place(c) in known]
    return [(c, at) for c, at in found if c.measure == found[0][0].measure]


def _place(cell: Cell) -> tuple[Any, ...]:
    shape = tuple(cell.axes.get(k) for k in ("length", "heads", "head_dim", "kv_heads", "dtype", "kv_dtype"))
    return cell.variant, without_settings(cell.params), contract(cell), shape


def _apart(cells: list[Cell], taken: set[str], facet: str) -> list[str]:
    """Returns the names that tell panels apart: `facet`, and what else differs."""
    names = [facet] if facet else []
    for name in dict.fromkeys(["task", "mode", "scope", "causal", *SHAPE, *(k for c in cells for k in c.axes)]):
        mask = {"mask", "causal"} & {facet, *taken}
        if name not in taken and name != facet and not (name == "causal" and mask):
            if len({repr(Field(name).value(c)) for c in cells}) > 1:
                names.append(name)
    return names


def _told(cell: Cell, name: str) -> str:
    if name == "causal":
        return contract(cell).replace(" ", "-")
    value = Field(name).value(cell)
    return str(value) if isinstance(value, str) else "" if value is None else f"{name}{value}"


def _lines(
    members: list[tuple[Cell, float]], y: Field, by: str, styles: Styles
) -> list[tuple[Series, list[Point]]]:
    cells = [c for c, _ in members]
    at = {c.id: x for c, x in members}
    out = []
    for series in _series(cells, by, styles):
        places: dict[float, list[Cell]] = {}
        for cell in series.cells:
            places.setdefault(at[cell.id], []).append(cell)
        out.append((series, [_point(x, own, y) for x, own in sorted(places.items())]))
    return out


def _series(cells: list[Cell], by: str, styles: Styles) -> list[Series]:
    if by == "variant":
        return styles.series(cells)
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        value = Field(by).value(cell)
        if value is not None:
            groups.setdefault(f"{by}={value}" if not isinstance(value, str) else value, []).append(cell)
    several = {c.variant for c in cells}
    out = []
    for index, (label, own) in enumerate(groups.items()):
        look = look_at(index, index % (len(COLORS) - 1))
        if len(several) == 1:
            out.append(Series(label, (), label, look, tuple(own)))
            continue
        for s in styles.series(own):  # a line for each variant and value
            told = replace(s, label=f"{s.label}, {label}", variant=f"{s.variant} {label}")
            place = len(out)
            out.append(replace(told, look=look_at(place, place % (len(COLORS) - 1))))
    return out


def _point(x: float, cells: list[Cell], y: Field) -> Point:
    """Of a score the mean over seeds with its 95 % interval, as elsewhere. Of other numbers the median
    over seeds, and an interval that holds those of all seeds."""
    if y.name in SPLITS and (found := score(cells, y.name)):
        half = found.half
        ends = (None, None) if half is None else (found.mean - half, found.mean + half)
        return Point(x, found.mean, *ends, found.cell, is_hollow=found.is_unfinished)
    values = [v for c in cells if (v := y.number(c)) is not None]
    ends = [e for c in cells if (e := y.ends(c))]
    low = min((e[0] for e in ends), default=None)
    high = max((e[1] for e in ends), default=None)
    return Point(x, float(np.median(values)), low, high, ids(cells))
