"""How a variant is drawn: colours for the colour-blind, marker and dash that tell it alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.colors import to_rgb
from matplotlib.patheffects import AbstractPathEffect, withStroke

INK, GREY, GRID, BEHIND = "#222222", "#6b6b6b", "#e4e4e4", "#cccccc"
# After Okabe and Ito's colour-blind-safe set, moved apart in lightness: they differ in grey too.
# The first of each list is exact attention's alone.
COLORS = ("#000000", "#E89A00", "#0B559F", "#CC4414", "#2AAE84", "#A9559B", "#6FBBE8", "#7A6A00")
# No cross, which marks failures, and no arrow to a side, which marks what lies outside a panel.
MARKERS = ("o", "s", "^", "D", "v", "P", "d", "p", "*", "h")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (2.6, 1.3)),
    (0, (1.1, 1.1)),
    (0, (8, 2)),
    (0, (4, 1.2, 1.2, 1.2, 1.2, 1.2)),
    (0, (1.1, 2.2)),
)
# Parameterisations of one variant, defaults first.
FILLS = ("full", "none", "left", "bottom", "top")


def halo() -> list[AbstractPathEffect]:
    """A white edge that keeps text readable over lines."""
    return [withStroke(linewidth=2.4, foreground="white")]


@dataclass(frozen=True)
class Look:
    color: str
    marker: str
    dash: Any
    fill: str = "full"
    width: float = 1.7

    @property
    def ink(self) -> tuple[float, float, float]:
        """The colour for text: darkened until it reads well on white."""
        rgb = to_rgb(self.color)
        light = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]
        dark = min(1.0, 0.42 / light) if light else 1.0
        return rgb[0] * dark, rgb[1] * dark, rgb[2] * dark

    def line(self) -> dict[str, Any]:
        """Keyword arguments of a matplotlib line."""
        return {
            "color": self.color,
            "marker": self.marker,
            "linestyle": self.dash,
            "linewidth": self.width,
            "markersize": 5.4 if self.marker == "*" else 4.6,
            "markeredgewidth": 1.1,
            "fillstyle": self.fill,
            "markerfacecoloralt": "white",
            "markerfacecolor": "white" if self.fill == "none" else self.color,
        }


def exact(parameterisation: int) -> Look:
    return _parameterised(COLORS[0], MARKERS[0], 0, parameterisation)


def look(place: int, color: int, parameterisation: int = 0) -> Look:
    """Of the variant at `place` among all but exact attention. Markers and dashes are 9 and 8, so
    that of 72 variants no two share both, and those next to each other share neither."""
    marker = MARKERS[1 + place % (len(MARKERS) - 1)]
    return _parameterised(COLORS[1 + color], marker, 1 + place, parameterisation)


def _parameterised(color: str, marker: str, dash: int, index: int) -> Look:
    turn = dash + 3 * (index // len(FILLS))
    width = 1.7 if index == 0 else 1.1
    return Look(color, marker, DASHES[turn % len(DASHES)], FILLS[index % len(FILLS)], width)
