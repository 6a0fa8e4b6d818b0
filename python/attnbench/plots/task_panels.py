"""Pages of test scores with a panel for each task, and lines that are named at their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from .accuracy import head
from .caption import caption
from .curves import grey_lines
from .ends import End, name_ends
from .marks import Entry, bar_line
from .metric import score_axis, unless_error
from .page import Page, Picture
from .rows import Cell, Rows
from .sheets import OTHERS, Place, Sheet, in_rows, scored_panels, sheets
from .style import Series, Styles
from .tasks import TaskGroup, cells_of, series_of, stand_ins, task_columns
from .tuned import tuning_note

COLUMNS = 2
Line = dict[str, Any]  # of a table
Points = Sequence[tuple[float, float, float]]  # place, mean score and half its interval
Notes = Callable[[Sequence[TaskGroup], list[Series]], Sequence[str]]  # of the tasks shown


@dataclass(frozen=True)
class TaskPage:
    """A kind of picture: what its pages say, how much room they leave, how a panel is drawn and
    tabulated."""

    name: str  # of its files
    title: str
    subtitle: str
    better: tuple[str, str]  # the subtitle's end for shares, and for errors
    legend: Sequence[Entry]
    height: float  # inches of a panel
    row_gap: float
    below: float
    draw: Callable[[Axes, Place[TaskGroup]], None]
    table: Callable[[TaskGroup, list[Series]], list[Line]]
    by_variant: bool = False  # whether the parameterisations of a variant are one line


def task_pages(
    kind: TaskPage,
    rows: Rows,
    styles: Styles,
    groups: list[TaskGroup],
    notes: Notes,
    undrawn: Iterable[Cell] = (),
) -> list[Picture]:
    """Draws one page with a panel for each task. Many lines get a page for each task, which shows
    them in parts. A caption tells of those cells of `undrawn` that belong to its tasks."""
    if not groups:
        return []
    series = series_of(groups, styles)
    out = []
    for sheet in sheets(in_rows(groups, COLUMNS), series, styles, by_variant=kind.by_variant):
        shown = sheet.panels
        own = cells_of(shown)
        tasks = {c.task for c in own}
        without = [c for c in undrawn if c.task in tasks]
        words = (*notes(shown, series), stand_ins(own), tuning_note(own))
        told = caption(rows, without, *words)
        page = _page(kind, sheet, told)
        for axes, place in scored_panels(page, sheet):
            if sheet.panel:
                axes.set_title(place.title)
            else:
                head(axes, place.panel)
            kind.draw(axes, place)
        table = [line for g in shown for line in kind.table(g, g.select(series))]
        out.append(Picture(kind.name + sheet.suffix, page.figure, pd.DataFrame(table), told))
    return out


def _page(kind: TaskPage, sheet: Sheet[TaskGroup], told: str) -> Page:
    metrics = {g.metric for g in sheet.panels}
    said = [kind.subtitle, unless_error(metrics, *kind.better), OTHERS if sheet.in_parts else ""]
    return Page(
        kind.title + sheet.told(": "),
        "; ".join(filter(None, said)),
        told,
        list(kind.legend),
        [kind.height] * sheet.rows,
        sheet.columns,
        width=sheet.width(8.6 if sheet.panel else 7.2),
        gaps=[0.46] + [kind.row_gap] * (sheet.rows - 1),
        between=0.66 if len(metrics) > 1 or sheet.panel else 0.42,
        right=0.2,
        below=kind.below,
    )


def draw_lines(
    axes: Axes,
    place: Place[TaskGroup],
    points: Callable[[Sequence[Cell]], Points],
    levels: Iterable[float],
) -> list[End]:
    """Draws a line for each variant and sets the axis of scores, which holds the levels too. The
    caller sets the other axis and calls `finish_lines`."""
    drawn = [(s, own) for s in place.own if (own := points(s.cells))]
    for s, own in drawn:
        bar_line(axes, s.look, *zip(*own))
    values = [mean for _, own in drawn for _, mean, _ in own]
    score_axis(axes, place.panel.metric, [*levels, *values])
    return [End(own[-1][:2], s.label, s.look) for s, own in drawn]


def finish_lines(
    axes: Axes,
    place: Place[TaskGroup],
    points: Callable[[Sequence[Cell]], Points],
    ends: list[End],
    share: float,
) -> None:
    """Draws the lines of other panels behind and names the own lines at their ends."""
    grey_lines(axes, ([p[:2] for p in points(s.cells)] for s in place.others))
    name_ends(axes, ends, share)


def cell_lines(series: list[Series], lines: Callable[[Cell], Iterable[Line]]) -> list[Line]:
    """Returns the `lines` of each cell, each after the columns of the cell's task and series."""
    return [
        {**task_columns(cell), **s.columns, **line, "cell": cell.id}
        for s in series
        for cell in s.cells
        for line in lines(cell)
    ]
