"""A page: title, legend, a grid of panels and a caption, laid out in inches; and its files."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

import matplotlib

matplotlib.use("Agg")
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from ..rows.style import GREY, GRID, INK
from .axes import text_width
from .caption import two_lines

matplotlib.rcParams.update(
    {
        "font.family": "DejaVu Sans",
        "font.size": 8.5,
        "axes.titlesize": 9,
        "axes.labelsize": 8.5,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8.5,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": "#888888",
        "axes.linewidth": 0.7,
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": "#888888",
        "ytick.color": "#888888",
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.minor.visible": False,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "svg.hashsalt": "attnbench",
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlepad": 5.0,
        "axes.titley": 1.0,  # no ticks above a panel: a title has its place without measuring every tick
    }
)
DPI = 160


@dataclass
class Picture:
    """A drawn figure, the table of what it shows, and the stem of its files."""

    name: str
    figure: Figure | None  # None: a table only
    data: pd.DataFrame
    caption: str
    spoken: str = ""  # what a table in it says, for who cannot see it


@dataclass
class Page:
    """Reserves room for a grid of panels; `heights` of its rows and `gaps` above them in inches."""

    title: str
    subtitle: str
    caption: str
    legend: list[tuple[Line2D, str]]
    heights: list[float]
    columns: int
    width: float = 7.2
    gaps: list[float] | None = None
    left: float = 0.72
    right: float = 0.12
    between: float = 0.3
    below: float = 0.5
    scale: float = 1.0  # of the fonts outside the panels
    key: str = ""  # what the marks beside numbers mean, above the caption
    figure: Figure = field(init=False)

    def __post_init__(self) -> None:
        self.gaps = self.gaps or [0.28] * len(self.heights)
        legend_rows = self._legend_rows()
        room, size = self.width - 0.24, 8 * self.scale
        lines = two_lines(self.caption, lambda line: _inches(line, size) <= room)
        head = (0.5 + 0.21 * len(legend_rows) + (0.06 if legend_rows else 0)) * self.scale
        marks = _wrapped(self.key, lambda line: _inches(line, size) <= room)
        foot = self.below + (0.155 * (len(lines) + len(marks)) + 0.1) * self.scale
        height = head + sum(self.heights) + sum(self.gaps) + foot
        self.figure = Figure(figsize=(self.width, height))
        self.figure.set_label(f"{self.title} ({self.subtitle})")
        self._height, self._top = height, height - head
        at = height - 0.2 * self.scale
        self._text(0.12, at, self.title, size=10.5 * self.scale, weight="bold", va="center")
        at -= 0.2 * self.scale
        self._subtitle = self._text(
            0.12, at, self.subtitle, size=8.5 * self.scale, color=GREY, va="center"
        )
        at -= 0.21 * self.scale
        for row in legend_rows:
            self.figure.legend(
                [h for h, _ in row],
                [t for _, t in row],
                ncols=len(row),
                loc="center left",
                bbox_to_anchor=(0.11 / self.width, at / height),
                frameon=False,
                handlelength=2.9,
                columnspacing=1.5,
                handletextpad=0.55,
                borderaxespad=0,
                borderpad=0.1,
                fontsize=8.5 * self.scale,
            )
            at -= 0.21 * self.scale
        self._text(
            0.12,
            0.1,
            "\n".join([*marks, *lines]),
            size=8 * self.scale,
            color=GREY,
            va="bottom",
            linespacing=1.32,
        )

    def say(self, subtitle: str) -> None:
        """Another subtitle, once it is known what is drawn."""
        self._subtitle.set_text(subtitle)
        self.figure.set_label(f"{self.title} ({subtitle})")

    def panel(
        self,
        row: int,
        column: int,
        share_x: Axes | None = None,
        share_y: Axes | None = None,
        *,
        span: int = 1,
        deeper: float = 0.0,
    ) -> Axes:
        """The axes of a grid place, over `span` columns and `deeper` inches below its row."""
        assert self.gaps is not None
        one = (
            self.width - self.left - self.right - self.between * (self.columns - 1)
        ) / self.columns
        wide = one * span + self.between * (span - 1)
        bottom = self._top - sum(self.gaps[: row + 1]) - sum(self.heights[: row + 1]) - deeper
        x = self.left + column * (one + self.between)
        box = (
            x / self.width,
            bottom / self._height,
            wide / self.width,
            (self.heights[row] + deeper) / self._height,
        )
        return self.figure.add_axes(box, sharex=share_x, sharey=share_y)

    def _legend_rows(self) -> list[list[tuple[Line2D, str]]]:
        rows: list[list[tuple[Line2D, str]]] = []
        room = 0.0
        for entry in self.legend:
            need = 0.59 * self.scale + _inches(entry[1], 8.5 * self.scale)
            if not rows or need > room:
                rows.append([])
                room = self.width - 0.06
            rows[-1].append(entry)
            room -= need
        return rows

    def _text(self, x: float, y: float, text: str, **kwargs: object) -> Text:
        return self.figure.text(x / self.width, y / self._height, text, **kwargs)


def save(pictures: list[Picture], folder: Path, is_noted: bool = True) -> list[Path]:
    """Writes PNG, SVG and CSV of each picture, the caption within the CSV unless a page holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for picture in pictures:
        if picture.figure:
            told = {"Title": picture.figure.get_label(), "Description": alternative_text(picture)}
            png, svg = (folder / f"{picture.name}.{ending}" for ending in ("png", "svg"))
            picture.figure.savefig(png, dpi=DPI, metadata={**told, "Software": None})
            drawn = io.StringIO()
            picture.figure.savefig(drawn, format="svg", metadata={**told, "Date": None})
            svg.write_text(_described(drawn.getvalue(), told["Description"]), encoding="utf-8")
            written += [png, svg]
        path = folder / f"{picture.name}.csv"
        data = noted(picture) if is_noted else picture.data
        data.to_csv(path, index=False, float_format="%.9g", lineterminator="\n")
        written.append(path)
    return written


def noted(picture: Picture) -> pd.DataFrame:
    """The data with the whole caption in the first line of the last column."""
    notes = [" ".join(picture.caption.split())] + [""] * (len(picture.data) - 1)
    return picture.data.assign(note=notes[: len(picture.data)])


def alternative_text(picture: Picture) -> str:
    """For who cannot see it: the panels with their axes, then the caption."""
    panels = [
        f"{axes.get_title(loc='left')} ({axes.get_xlabel()}; {axes.get_ylabel()})"
        for axes in picture.figure.axes
        if axes.get_title(loc="left") and axes.axison
    ]
    text = f"{picture.spoken} Panels: {', '.join(panels)}. {picture.caption} The data: {picture.name}.csv."
    return " ".join(text.replace("; )", ")").split())


def _described(svg: str, text: str) -> str:
    """With a <desc> after the <title>, which readers of screens speak."""
    return svg.replace("</title>", f"</title>\n <desc>{escape(text)}</desc>", 1)


def _wrapped(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Lines of whole parts, which a middle dot separates."""
    lines: list[str] = []
    for part in filter(None, text.split(" · ")):
        longer = f"{lines[-1]} · {part}" if lines else part
        if lines and fits(longer):
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _inches(text: str, points: float) -> float:
    return text_width(text, points) / 72
