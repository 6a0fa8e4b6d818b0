"""Parameterisations of one variant in one figure: a legend entry together, told apart by weight."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from .caption import brief
from .style import Series, number

THIN, BOLD = 0.9, 2.2  # points, the lines of the smallest and of the largest parameter
HALVES = ("left", "bottom", "top")


def families(series: list[Series]) -> tuple[list[Series], list[tuple[Line2D, str]]]:
    """The series ordered by parameter within a variant, restyled, and a legend of the variants."""
    members: dict[str, list[Series]] = {}
    for s in series:
        members.setdefault(s.variant, []).append(s)
    out, legend = [], []
    for own in members.values():
        if len(own) > 1:
            own = _graded(sorted(own, key=_by_value))
        out += own
        legend.append((Line2D([], [], **own[-1].look.line()), brief([s.label for s in own])))
    return out, legend


def tag(series: Series) -> str:
    """What tells a series from its family: `64` of `linformer rank=64`."""
    words = series.label.removeprefix(series.variant).split()
    told = [word for word in words if not word.startswith("(")]
    if len(told) == 1:  # the legend names the parameter
        words[0] = told[0].partition("=")[2] or told[0]
    return " ".join(words)


def _graded(own: list[Series]) -> list[Series]:
    fills = ["none", *(HALVES[min(i, 2)] for i in range(len(own) - 2)), "full"]
    widths = np.linspace(THIN, BOLD, len(own))
    return [
        replace(s, look=replace(s.look, fill=fill, width=float(width)))
        for s, fill, width in zip(own, fills, widths)
    ]


def _by_value(series: Series) -> Any:
    return [(name, number(value)) for name, value in series.params]
