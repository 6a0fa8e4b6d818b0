"""The first picture: a table with a line a variant. From which length on it takes less than exact
attention, what it takes at the longest length, and what it scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from .answer_marks import SHORT
from .caption import caption, machines, repetitions
from .context import MODE_WORDS, SHAPE, contract, mode_of, scope_of, scope_text, shape_text
from .curve_page import draw_panels
from .marks import LEVELS, entry
from .overview_costs import NONE
from .overview_draw import WIDTH, cost_columns, draw_table, height_of, score_columns
from .overview_rows import Line, Overview, overview_of
from .page import Page, Picture
from .panels import Panel, drawn_series
from .quantity import by_length
from .rows import Rows
from .sheets import Place
from .speed import time_of
from .style import Styles
from .units import length_text

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
    marks = [f"{mark} {SHORT[mark]}" for mark in found.marks]
    heights = [height_of(columns, len(lines)) for _, columns in blocks]
    few = "" if len(lines) == len(found.lines) else f": {len(lines)} of {len(found.lines)}, the least costly"
    page = Page(
        f"Attention variants on {machines(rows)}{few}",
        f"compared with {found.baseline}; time, memory: less is better; score: more",
        words,
        [entry(LEVELS[level], LEVEL_WORDS[level]) for level in levels],
        [*heights, *([CURVES] if curves else [])],
        1,
        width=WIDTH,
        gaps=[0.34 if title else 0.1 for title, _ in blocks] + ([0.46] if curves else []),
        left=0.7,
        below=0.5 if curves else 0.12,
        key=" · ".join(marks),
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
    """Of many variants those that take least time at the longest length, else least memory."""
    if len(found.lines) <= MOST:
        return list(found.lines)

    def cost(line: Line) -> tuple[bool, float]:
        value = line.time.value if found.time else line.memory.value
        return value is None, value or 0.0

    exact = [line for line in found.lines if line.is_baseline]
    others = sorted((line for line in found.lines if not line.is_baseline), key=cost)
    return exact + others[: MOST - len(exact)]


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
