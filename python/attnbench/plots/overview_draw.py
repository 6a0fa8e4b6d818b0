"""Draws the overview's table: columns of words and of bars, in inches. Bars are grey, and what tells them
apart is their place: the picture reads the same without colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from .ends import text_width
from .looks import GREY, GRID, INK, halo
from .marks import LEVELS
from .overview_costs import NONE, Answer
from .overview_rows import Line, Overview
from .overview_scores import Task
from .units import bytes_text, length_text

WIDTH = 5.2  # inches: at the 390 pixels of a phone, 9 points are as high as 9.4 pixels
EDGE, NAME = 0.12, 1.06  # inches of the page's margin, and of the column of names
FROM, COST = 0.9, 0.34  # of the columns of crossings, and of the bars of costs
ROW, HEAD = 0.4, 0.15  # inches of a line, and of a line of a heading
SIZE, SMALL = 9.0, 8.0  # points
BOLD = 1.15  # times the width of a text: what it needs in bold
BAR, FULL = "#9fb4c8", "#5c6670"  # the bar of a variant and that of exact attention
AXIS = 0.16  # inches below a heading, of the ends of the bars' axis


@dataclass(frozen=True)
class Column:
    """`bar`: how wide the bar is, in inches, and what value that is; no bar where it is 0."""

    heading: tuple[str, ...]
    left: float
    width: float
    answer: Callable[[Line], Answer]
    bar: float = 0.0
    most: float = 1.0
    ends: tuple[str, str] = ("", "")  # written at 0 and at `most`
    levels: tuple[tuple[str, float], ...] = ()
    warning: str = ""


Columns = tuple[Column, ...]


def cost_columns(found: Overview, lines: Sequence[Line]) -> Columns:
    """Two columns for each of time and memory: from which length on, and at the longest. The longest bar is
    that of the greatest value of `lines`."""
    columns: list[Column] = []
    both = bool(found.time and found.memory)
    room = (WIDTH - 2 * EDGE - NAME) / (2 if both else 1)
    left = EDGE + NAME
    against = "than full from"
    if found.time:
        most = max(line.time.value or 0.0 for line in lines) or 1.0
        heading = ("time at", f"{length_text(found.time_at)}, full = 1")
        columns += [
            Column(("less time", against), left, FROM, lambda line: line.time_from),
            Column(heading, left + FROM, room - FROM, lambda line: line.time, COST, most, ("0", f"{most:.3g}")),
        ]
        left += room
    if found.memory:
        most = max(line.memory.value or 0.0 for line in lines) or 1.0
        heading = ("peak memory at", f"{length_text(found.memory_at)} tokens")
        columns += [
            Column(("less memory", against), left, FROM, lambda line: line.memory_from),
            Column(heading, left + FROM, room - FROM, lambda line: line.memory, COST, most, ("0", bytes_text(most))),
        ]
    return tuple(columns)


def score_columns(tasks: Sequence[Task], first: int) -> Columns:
    """A column for each task; `first` is the place of the first of them among all."""
    room = (WIDTH - 2 * EDGE - NAME) / 3
    columns = []
    for i, task in enumerate(tasks):
        heading = [task.title, *filter(None, (task.where, task.shape))]
        bar = 0.62 if task.is_bar else 0.0
        levels = tuple(task.group.levels.items()) if task.is_bar else ()
        columns.append(
            Column(
                tuple(heading),
                EDGE + NAME + i * room,
                room,
                lambda line, at=first + i: line.scores[at],
                bar,
                1.0,
                ("0", "1"),
                levels,
                task.warning or ("" if task.is_bar else "less is better"),
            )
        )
    return tuple(columns)


def _head(columns: Columns) -> float:
    lines = max(len(c.heading) + bool(c.warning) for c in columns)
    return HEAD * lines + AXIS


def height_of(columns: Columns, count: int) -> float:
    return _head(columns) + ROW * count


def draw_table(axes: Axes, columns: Columns, lines: Sequence[Line], height: float) -> None:
    """Draws in inches from the upper left corner of `axes`, which are as wide as the page."""
    axes.axis("off")
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(height, 0)
    head = _head(columns)
    for column in columns:
        _draw_head(axes, column, head, height)
    for i, line in enumerate(lines):
        top = head + ROW * i
        axes.plot([EDGE, WIDTH - EDGE], [top, top], color=GRID, linewidth=0.8, zorder=1)
        _draw_name(axes, line, top)
        for column in columns:
            _draw_answer(axes, column, column.answer(line), top, line.is_baseline)


def _write(axes: Axes, x: float, y: float, text: str, size: float, color: object = INK, **style: object) -> None:
    axes.text(x, y, text, **{"fontsize": size, "color": color, "va": "center", "ha": "left", **style})


def _draw_head(axes: Axes, column: Column, head: float, bottom: float) -> None:
    at = HEAD / 2
    for i, words in enumerate(column.heading):
        bold = {"weight": "bold"} if i == 0 and column.levels else {}
        _write(axes, column.left, at, fitted(words, column.width, SMALL), SMALL, INK if i == 0 else GREY, **bold)
        at += HEAD
    if column.warning:
        _write(axes, column.left, at, fitted(column.warning, column.width, SMALL), SMALL, INK, style="italic")
    if column.bar:
        low, high = column.ends
        _write(axes, column.left, head - AXIS / 2 - 0.01, low, 7, GREY)
        _write(axes, column.left + column.bar, head - AXIS / 2 - 0.01, high, 7, GREY, ha="left" if len(high) > 3 else "center")
        for x in (column.left, column.left + column.bar):
            axes.plot([x, x], [head - 0.03, bottom - 0.06], color=GRID, linewidth=0.8, zorder=1)
    for level, value in column.levels:
        x = column.left + column.bar * min(max(value, 0.0), 1.0)
        axes.plot([x, x], [head - 0.03, bottom - 0.04], **LEVELS[level], zorder=4)


def _draw_name(axes: Axes, line: Line, top: float) -> None:
    marker = line.series.look.line() | {"linestyle": "none"}
    axes.plot([EDGE + 0.06], [top + 0.13], **marker, zorder=5)
    x, room = EDGE + 0.16, NAME - 0.2
    name, rest = _in_two(line.series.variant, room / BOLD)
    _write(axes, x, top + 0.13, name, SIZE if not rest else SMALL, weight="bold")
    if rest:
        _write(axes, x, top + 0.29, fitted(rest, room / BOLD, SMALL), SMALL, weight="bold")
    else:
        _write(axes, x, top + 0.29, fitted(line.params, room, SMALL), SMALL, GREY)


def _in_two(name: str, inches: float) -> tuple[str, str]:
    """A long name in two lines, which part behind a sign between words."""
    if text_width(name, SIZE) <= 72 * inches:
        return name, ""
    ends = [i + 1 for i, sign in enumerate(name) if sign in "_+" and text_width(name[: i + 1], SMALL) <= 72 * inches]
    at = ends[-1] if ends else next((i for i in range(len(name), 1, -1) if text_width(name[:i], SMALL) <= 72 * inches), 1)
    return name[:at], name[at:]


def _draw_answer(axes: Axes, column: Column, answer: Answer, top: float, is_baseline: bool) -> None:
    if column.bar and answer.value is not None:
        wide = column.bar * min(max(answer.value, 0.0) / column.most, 1.0)
        color = FULL if is_baseline else BAR
        axes.add_patch(Rectangle((column.left, top + 0.06), wide, 0.14, facecolor=color, edgecolor=INK, linewidth=0.5, zorder=3))
        x = column.left + column.bar + 0.06
        _write(axes, x, top + 0.13, answer.marked, SIZE)
        _write(axes, x if answer.detail.startswith("\u00b1") else column.left, top + 0.29, answer.detail, SMALL, GREY)
        return
    color = GREY if answer.text == NONE else INK
    x = column.left + (0.06 if column.bar else 0.0)
    over = {"path_effects": halo(), "zorder": 6} if column.levels else {}  # words that lie over lines
    size = SIZE if text_width(answer.marked, SIZE) <= 72 * (column.width - 0.04) else SMALL
    _write(axes, x, top + 0.13, fitted(answer.marked, column.width - 0.02, size), size, color, **over)
    _write(axes, x, top + 0.29, fitted(answer.detail, column.width - 0.06, SMALL), SMALL, GREY, **over)


def fitted(text: str, inches: float, size: float) -> str:
    """The text, cut at its end where it is wider than the column."""
    if text_width(text, size) <= 72 * inches:
        return text
    while text and text_width(text + "\u2026", size) > 72 * inches:
        text = text[:-1]
    return text.rstrip() + "\u2026"
