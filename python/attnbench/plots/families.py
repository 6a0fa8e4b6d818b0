"""Parameterisations of one variant in one figure: told apart by weight and fill."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .style import Series, number

THIN, BOLD = 0.9, 2.2  # points, the lines of the smallest and of the largest parameter
HALVES = ("left", "bottom", "top")


def families(series: list[Series]) -> list[Series]:
    """The series ordered by parameter within a variant, and restyled."""
    members: dict[str, list[Series]] = {}
    for s in series:
        members.setdefault(s.variant, []).append(s)
    return [
        s
        for own in members.values()
        for s in (_graded(sorted(own, key=_by_value)) if len(own) > 1 else own)
    ]


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
