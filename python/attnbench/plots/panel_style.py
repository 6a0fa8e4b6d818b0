"""How a picture without a caption looks: its width, fonts and files, for a paper, a slide or a page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from .rows import RowsError

INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}  # TeX's points, as \columnwidth is given
LEAST, MOST = 2.0, 40.0  # inches


class StyleError(RowsError):
    """Which option does not fit the rows, and what would be right, as one line."""


@dataclass(frozen=True)
class PanelStyle:
    """Sizes in points and inches. `endings`: of the files that are written."""

    width: float
    size: float  # of words; ticks are a point smaller
    line: float  # multiplies the widths of lines and markers
    endings: tuple[str, ...]
    font: str = "DejaVu Sans"

    @property
    def settings(self) -> dict[str, Any]:
        """Returns rcParams."""
        return {
            "font.family": [self.font, "DejaVu Sans"],  # for signs that the font lacks
            "font.size": self.size,
            "axes.labelsize": self.size,
            "xtick.labelsize": self.size - 1,
            "ytick.labelsize": self.size - 1,
            "legend.fontsize": self.size - 0.5,
            "axes.linewidth": 0.7 * self.line,
            "grid.linewidth": 0.5 * self.line,
            "pdf.fonttype": 42,  # TrueType, embedded: text stays text
            "svg.hashsalt": "attnbench",
        }


STYLES = {
    "paper": PanelStyle(3.3, 8.0, 0.8, ("pdf", "svg")),
    "slide": PanelStyle(10.0, 18.0, 1.8, ("pdf", "svg")),
    "web": PanelStyle(7.0, 11.0, 1.1, ("svg", "png")),
}


def panel_style(name: str, width: str | None, font: str | None) -> PanelStyle:
    """Error where a name or a size is unknown."""
    if name not in STYLES:
        raise StyleError(f"--style {name}: expected one of {', '.join(STYLES)}")
    found = STYLES[name]
    return PanelStyle(
        _inches(width) if width else found.width,
        found.size,
        found.line,
        found.endings,
        _font(font) if font else found.font,
    )


def _inches(text: str) -> float:
    said = re.fullmatch(r"([0-9]*\.?[0-9]+)(in|cm|mm|pt)", text)
    inches = float(said[1]) * INCHES[said[2]] if said else 0.0
    if not LEAST <= inches <= MOST:
        raise StyleError(
            f"--width {text}: expected a size from {LEAST:g}in to {MOST:g}in, for example 3.3in, 84mm or 240pt"
        )
    return inches


def _font(name: str) -> str:
    from matplotlib.font_manager import get_font_names

    known = {font.lower(): font for font in get_font_names()}
    if name.lower() in known:
        return known[name.lower()]
    near = get_close_matches(name.lower(), known, 1, 0.0)
    nearest = f"; nearest is '{known[near[0]]}'" if near else ""
    raise StyleError(f"--font {name}: this machine has no such font{nearest}")
