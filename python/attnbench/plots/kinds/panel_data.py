"""What a picture without a caption draws: lines of points, lists and heat maps, of any axis,
parameter or metric by its name; and its width, fonts and files, for a paper, a slide or a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from ..._place import SCHEMA
from ..rows.read import MEASURES, Cell, RowsError
from ..rows.settings import NAMES, contract, key_of, marks_of
from ..rows.style import Series

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


# Metrics whose value is one of several figures; low and high are the ends of its interval.
NESTED = {"time_s": ("time_s.median", "time_s.ci_low", "time_s.ci_high")}
LABELS = {
    "length": "sequence length (tokens)",
    "time_s": "time per call",
    "tokens_per_s": "tokens per second",
    "peak_bytes": "peak memory",
    "state_bytes": "decode state",
    "extra_bytes": "memory beyond inputs and outputs",
    "relative_error": "relative error",
    "input_scale": "scale of the inputs",
    "keys_read": "keys read by a query",
    "weights_rank": "rank of the weights",
    "head_dim": "head width",
    "peak_fraction": "share of the FMA peak",
    "parameters": "learned parameters",
}
SPLITS = ("test", "validation")  # names of scores
SHARES = ("test", "validation", "peak_fraction", "cosine", "lift")  # drawn on a linear axis
OF_CELL = ("variant", "task", "measure", "mask")


@dataclass(frozen=True)
class Field:
    """A name that the user gave."""

    name: str

    @property
    def kind(self) -> str:
        """Of units.TEXTS, `length`, or `number`."""
        if self.name == "length":
            return "length"
        if self.name.endswith("_bytes") or self.name == "bytes":
            return "bytes"
        return "seconds" if self.name.partition(".")[0].endswith("_s") and "per_s" not in self.name else "number"

    @property
    def is_log(self) -> bool:
        return self.name not in SHARES and self.name not in ("seed", "window")

    def label(self, cells: Iterable[Cell]) -> str:
        if self.name == "test":
            known = {c.scored_by for c in cells}
            return NAMES.get(known.pop(), "test score") if len(known) == 1 else "test score"
        return LABELS.get(self.name, self.name.replace("_", " "))

    def value(self, cell: Cell) -> Any:
        """Returns a number, a text, or None where the cell has no such axis, parameter or metric."""
        if self.name in OF_CELL:
            return {"variant": cell.variant, "task": cell.task, "measure": cell.measure,
                    "mask": contract(cell)}[self.name]  # fmt: skip
        if self.name in cell.axes:
            return cell.axes[self.name]
        metric = cell.metric(NESTED.get(self.name, (self.name,))[0])
        return metric if metric is not None else dict((*cell.params, *cell.task_params)).get(self.name)

    def number(self, cell: Cell) -> float | None:
        value = self.value(cell)
        if isinstance(value, bool):
            return None
        try:
            return float(value)
        except (TypeError, ValueError):
            return None

    def ends(self, cell: Cell) -> tuple[float, float] | None:
        """Returns the row's own 95 % interval."""
        if self.name in NESTED:
            low, high = (cell.metric(name) for name in NESTED[self.name][1:])
            return None if low is None or high is None else (low, high)
        error = cell.metric("test_stderr") if self.name == "test" else None
        value = self.number(cell)
        return None if error is None or value is None else (value - 1.96 * error, value + 1.96 * error)


def known_names(cells: Iterable[Cell]) -> list[str]:
    """Returns every name that some cell has a number or a text for."""
    found: dict[str, None] = dict.fromkeys(OF_CELL)
    for cell in cells:
        found |= dict.fromkeys(cell.axes)
        found |= dict.fromkeys(k for k, v in cell.metrics.items() if isinstance(v, (int, float, dict)))
        found |= dict.fromkeys(k for k, _ in (*cell.params, *cell.task_params))
    return list(found)


def metric_names() -> set[str]:
    """Returns the names of all metrics; cells that failed have none."""
    if not SCHEMA.is_file():
        return set()
    shapes = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    return {name for measure in MEASURES for name in shapes[measure]["properties"]}


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    cell: str = ""  # ids, see rows.ids
    text: str = ""  # written beside it
    is_hollow: bool = False  # of a training that was cut off: no line joins it, and it has no rank


@dataclass(frozen=True)
class Scale:
    """An axis. `kind`: length, seconds, bytes, ratio, score, error or number."""

    label: str
    kind: str
    is_log: bool


def with_marks(series: Series, cells: Iterable[Cell]) -> Series:
    """With the marks of the cells behind its name."""
    return replace(series, label=series.label + marks_of(cells))


def keyed(scale: Scale, cells: Iterable[Cell]) -> Scale:
    """With what the marks of the cells say below the label."""
    return replace(scale, label="\n".join([scale.label, *key_of(cells)]))


@dataclass(frozen=True)
class LinePanel:
    """Lines, or single points where `joined` is False."""

    name: str
    x: Scale
    y: Scale
    lines: list[tuple[Series, list[Point]]]
    levels: dict[str, float] = field(default_factory=dict)  # see marks.LEVELS
    joined: bool = True


@dataclass(frozen=True)
class ListPanel:
    """A line for each series: a point on the axis x with its interval, and a text at the right."""

    name: str
    x: Scale
    lines: list[tuple[Series, Point]]
    levels: dict[str, float] = field(default_factory=dict)


def written_in(value: float) -> str:
    """Returns the number as a field of a heat map has room for it."""
    if value < 0.095:
        return f"{value:.1g}"
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


@dataclass(frozen=True)
class HeatPanel:
    """A grid of numbers, None where nothing was measured."""

    name: str
    label: str
    rows: list[str]
    columns: list[str]
    values: list[list[float | None]]
    kind: str  # score, or ratio: on a logarithmic scale about 1
    cells: list[list[str]]
    families: list[str] = field(default_factory=list)  # of each row, drawn above its first; none: no heads
    marks: list[list[str]] = field(default_factory=list)  # of each number, see settings.MEANINGS; none: no marks

    def texts(self) -> list[list[str]]:
        """Returns what is written in each field, "" where there is no number."""
        marks = self.marks or [[""] * len(self.columns)] * len(self.rows)
        return [
            ["" if v is None else written_in(v) + mark for v, mark in zip(line, own, strict=True)]
            for line, own in zip(self.values, marks, strict=True)
        ]

    def places(self) -> tuple[list[int], dict[int, str]]:
        """The line of each row, and the heads by line."""
        lines: list[int] = []
        heads: dict[int, str] = {}
        for i in range(len(self.rows)):
            if self.families and (i == 0 or self.families[i] != self.families[i - 1]):
                heads[i + len(heads)] = self.families[i]
            lines.append(i + len(heads))
        return lines, heads
