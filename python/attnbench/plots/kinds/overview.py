"""The first picture: a table with a line a variant, drawn in inches. From which length on it takes
less than exact attention, what it takes at the longest length, and its scores. Bars are grey; words
tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ..layout.axes import LEVELS, entry, halo, text_width
from ..layout.caption import caption, machines, marks_key, repetitions
from ..layout.page import Page, Picture
from ..layout.panels import Panel, by_length, drawn_series
from ..layout.sheets import Place
from ..rows.read import PYTHON, PYTHON_SHORT, Rows
from ..rows.settings import MODE_WORDS, SHAPE, contract, marks_of, mode_of, scope_of, scope_text, shape_text
from ..rows.style import GREY, GRID, INK, Styles
from ..rows.units import bytes_text, length_text
from .curves import draw_panels, time_of
from .overview_rows import NONE, Answer, Line, Overview, Task, overview_of

WIDTH = 5.2  # inches: at the 390 pixels of a phone, 9 points are as high as 9.4 pixels
EDGE, NAME = 0.12, 1.06  # inches of the page's margin, and of the column of names
FROM, COST = 0.9, 0.34  # of the columns of crossings, and of the bars of costs
ROW, HEAD = 0.4, 0.15  # inches of a line, and of a line of a heading
SIZE, SMALL, LEAST = 9.0, 8.0, 7.0  # points
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
        rest = fitted(rest, room / BOLD, SMALL)
        _write(axes, x, top + 0.29, rest, SMALL, weight="bold")
        taken = BOLD * text_width(rest, SMALL) / 72 + 0.05
        x, room = x + taken, room - taken
    size = LEAST if rest else SMALL
    params = fitted(line.params, room, size)
    if len(params) > 2:  # no lone dots
        _write(axes, x, top + 0.29, params, size, GREY)


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
    room = column.width - 0.02 - text_width(answer.marks, size) / 72  # a mark is never cut off its number
    _write(axes, x, top + 0.13, fitted(answer.text, room, size) + answer.marks, size, color, **over)
    _write(axes, x, top + 0.29, fitted(answer.detail, column.width - 0.06, SMALL), SMALL, GREY, **over)


def fitted(text: str, inches: float, size: float) -> str:
    """The text, cut at its end where it is wider than the column."""
    if text_width(text, size) <= 72 * inches:
        return text
    while text and text_width(text + "\u2026", size) > 72 * inches:
        text = text[:-1]
    return text.rstrip() + "\u2026"


MOST = 12  # lines of the picture; the CSV and the report hold all
MOST_TASKS = 6
MOST_CURVES = 8  # that the panel of times has room to name
CURVES = 2.2  # inches
LEVEL_WORDS = {"chance": "chance", "best shortcut": "best rule without attention (shortcut)"}


def overview(rows: Rows, styles: Styles) -> list[Picture]:
    found = overview_of(rows, styles)
    if found is None:
        return []
    lines, tasks = _shown(found), found.tasks[:MOST_TASKS]
    blocks = [(_cost_title(found), cost_columns(found, lines))] if found.time or found.memory else []
    for first in range(0, len(tasks), 3):
        title = "Score: test of models trained with the same parameters" if first == 0 else ""
        blocks.append((title, score_columns(tasks[first : first + 3], first)))
    curves = _curves(found, styles)
    levels = dict.fromkeys(level for task in tasks if task.is_bar for level in task.group.levels)
    words = _caption(rows, found)
    heights = [height_of(columns, len(lines)) for _, columns in blocks]
    few, key = _chosen(found, lines), [_key(found, lines, curves)]
    if " then " in few:  # too long for the title
        few, _, how = few.partition(", ")
        key.insert(0, f"shown: {how}")
    page = Page(
        f"Attention variants on {machines(rows)}{few}",
        f"compared with {found.baseline}; time, memory: less is better; score: more",
        words,
        [entry(LEVELS[level], LEVEL_WORDS[level]) for level in levels],
        [*heights, *([CURVES] if curves else [])],
        1,
        width=WIDTH,
        gaps=[0.34 if title else 0.1 for title, _ in blocks] + ([0.46] if curves else []),
        left=0.78,
        below=0.5 if curves else 0.12,
        key=" · ".join(filter(None, key)),
    )
    for row, (title, columns) in enumerate(blocks):
        axes = page.panel(row, 0)
        _, y, _, high = axes.get_position().bounds
        axes.set_position((0, y, 1, high))
        axes.set_title(title, x=0.12 / WIDTH)
        draw_table(axes, columns, lines, heights[row])
    if curves:
        panel, series = curves
        quantity = time_of(panel.cells[0])
        axes = page.panel(len(blocks), 0)
        axes.set_title(f"{quantity.heading(panel.cells[0])} by length: {panel.title}")
        axes.set_ylabel(quantity.label)
        draw_panels([(axes, Place(panel, panel.title, 0, 0, series, []))], quantity)
    return [Picture("overview", page.figure, table_of(found), words, _spoken(found, lines))]


def _spoken(found: Overview, lines: list[Line]) -> str:
    """The table as sentences, a line each."""
    told = []
    for line in lines:
        answers = {
            "less time from": line.time_from,
            f"time at {length_text(found.time_at)}": line.time,
            "less memory from": line.memory_from,
            f"memory at {length_text(found.memory_at)}": line.memory,
        } | {f"score on {t.title}": a for t, a in zip(found.tasks, line.scores, strict=True)}
        words = [f"{name} {a.marked}" + f" ({a.detail})" * bool(a.detail) for name, a in answers.items() if a.text != NONE]
        told.append(f"{line.series.variant} {line.params}: ".replace(" :", ":") + ", ".join(words) + ".")
    return " ".join([f"{_cost_title(found)}." if found.time or found.memory else "", *told])


def _shown(found: Overview) -> list[Line]:
    """Of many variants those that take least time at the longest length, then, of those without a time, least memory."""
    if len(found.lines) <= MOST:
        return list(found.lines)

    def cost(line: Line) -> tuple[bool, float, bool, float]:
        time, memory = line.time.value, line.memory.value
        by_memory = memory if time is None else 0.0
        return time is None, time or 0.0, by_memory is None, by_memory or 0.0

    exact = [line for line in found.lines if line.is_baseline]
    others = sorted((line for line in found.lines if not line.is_baseline), key=cost)
    return exact + others[: MOST - len(exact)]


def _chosen(found: Overview, lines: Sequence[Line]) -> str:
    """How many lines of how many are shown, and by what rule they were chosen: `: 12 of 81, least time, then least memory`."""
    if len(lines) == len(found.lines):
        return ""
    others = [line for line in lines if not line.is_baseline]
    untimed = [line for line in others if line.time.value is None]
    rules = ["least time"] if len(untimed) < len(others) else []
    rules += ["least memory"] if any(line.memory.value is not None for line in untimed) else []
    rules += ["the order of the rows"] if any(line.memory.value is None for line in untimed) else []
    return f": {len(lines)} of {len(found.lines)}, {', then '.join(rules)}"


def _key(found: Overview, lines: Sequence[Line], curves: tuple[Panel, list[Any]] | None) -> str:
    """What the signs of the picture say; how many times were disturbed is counted in the panel of times."""
    cells = list(found.time.cells) if found.time else []
    told = "".join(found.marks) + marks_of(c for s in (curves[1] if curves else []) for c in s.cells)
    key = marks_key(cells, told)
    python = PYTHON_SHORT if any(PYTHON in line.series.variant for line in lines) and PYTHON not in key else ""
    return " · ".join(filter(None, [key, python]))


def _cost_title(found: Overview) -> str:
    panel = found.time or found.memory
    assert panel is not None
    cell = panel.cells[0]
    what = " and ".join(word for word, p in (("Time", found.time), ("memory", found.memory)) if p).capitalize()
    mode = MODE_WORDS.get(mode_of(cell), mode_of(cell))
    return f"{what}: {scope_text(scope_of(cell))}, {mode}, {contract(cell)}"


def _curves(found: Overview, styles: Styles) -> tuple[Panel, list[Any]] | None:
    """The panel of times and its curves, those of the table's lines and exact attention; None where there
    are too many to be named."""
    panel = found.time
    if panel is None or not panel.is_curve:
        return None
    looks = {line.series.key: line.series.look for line in found.lines}
    drawn = [s for s in panel.select(drawn_series([panel], styles)) if s.key in looks and by_length(s)]
    series = [replace(s, look=looks[s.key]) for s in drawn]
    return (panel, series) if 1 < len(series) <= MOST_CURVES else None


def _caption(rows: Rows, found: Overview) -> str:
    cells = [c for p in (found.time, found.memory) if p for c in p.cells]
    how = "as the search found it" if found.is_searched else "interpolated between measured lengths"
    scored = [c for task in found.tasks for c in task.group.cells]
    return caption(
        rows,
        [*cells, *scored],
        shape_words(found),
        f"The CSV has {len(found.tasks) - MOST_TASKS} more tasks." if len(found.tasks) > MOST_TASKS else "",
        f"Less time from: where medians cross, with the 95 % interval, {how}.",
        "Time: median over that of exact attention, with its 95 % interval." if found.time else "",
        repetitions(list(found.time.cells)) if found.time else "",
        "Memory: exact peak of the counted pool, inputs and weights included." if found.memory else "",
        "Score: mean over the seeds with half of its 95 % interval." if found.tasks else "",
        " ".join(f"{task.title}: {task.warning}." for task in found.tasks if task.warning),
        " ".join(f"{mark}: {words}." for mark, words in found.marks.items()),
    )


def shape_words(found: Overview) -> str:
    """`Costs: batch 1, 2 heads, head width 64, 1 thread.`; where times and memory are of two shapes, both."""
    cells = [p.cells[0] for p in (found.time, found.memory) if p]
    if not cells:
        return ""
    both = [{name: c.axes.get(name) for name in SHAPE} for c in cells]
    shared = [name for name in SHAPE if both[0][name] == both[-1][name]]
    words = shape_text(cells[0], shared)
    if len(shared) == len(SHAPE):
        return f"Costs: {words}."
    own = [shape_text(c, [name for name in SHAPE if name not in shared]) for c in cells]
    return f"Costs: {words}; time: {own[0]}; memory: {own[-1]}."


def table_of(found: Overview) -> pd.DataFrame:
    """A line for each number of each variant, with all that is read of it."""
    at = {"time": found.time_at, "memory": found.memory_at}
    table: list[dict[str, Any]] = []
    for line in found.lines:
        named = {**line.series.columns, "params": line.params}
        costs = [(name, at.get(name, ""), answer) for name, answer in line.answers.items()]
        scores = [("score", t.title, a) for t, a in zip(found.tasks, line.scores, strict=True)]
        for name, where, answer in [*costs, *scores]:
            if answer.cell:
                told = {"text": answer.text, "marks": answer.marks, "detail": answer.detail}
                number = {"value": answer.value, "low": answer.low, "high": answer.high}
                table.append({**named, "question": name, "at": where, **number, **told, "cell": answer.cell})
    return pd.DataFrame(table)
