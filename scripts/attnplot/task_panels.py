"""What pictures of test scores share: pages with a panel a task, and lines with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .accuracy import head
from .metric import label_scores
from .page import Page, Picture
from .sheets import WIDE, Place, Sheet, sheets
from .style import Look, Series, Styles
from .tasks import TaskGroup

OTHERS = "the variants of the other panels are grey"


@dataclass(frozen=True)
class TaskWords:
    """What a page of scores says; `subtitle` and `caption` are given the tasks shown."""

    name: str  # of its files
    title: str
    subtitle: Callable[[Sequence[TaskGroup]], str]
    caption: Callable[[Sequence[TaskGroup]], str]
    entries: Sequence[tuple[Line2D, str]]  # of the legend


@dataclass(frozen=True)
class TaskLayout:
    most_columns: int
    height: float  # inches of a panel
    row_gap: float
    below: float


Draw = Callable[[Axes, Place[TaskGroup]], None]
Table = Callable[[TaskGroup, list[Series]], list[dict[str, Any]]]


def task_pages(
    words: TaskWords,
    layout: TaskLayout,
    groups: list[TaskGroup],
    series: list[Series],
    styles: Styles,
    draw: Draw,
    table: Table,
    *,
    by_variant: bool = False,
) -> list[Picture]:
    """A page with a panel for each task, or a page for each task with its lines in parts."""
    columns = min(layout.most_columns, len(groups))
    grid = [(g, i // columns, i % columns) for i, g in enumerate(groups)]
    out, stems = [], []
    for sheet in sheets(grid, series, styles, by_variant=by_variant):
        shown = [sheet.panel] if sheet.panel else groups
        stem = f"{words.name}-{sheet.panel.cells[0].task}" if sheet.panel else words.name
        stems.append(stem)
        told = words.caption(shown)
        page = _page(words, layout, sheet, shown, told)
        _draw(page, sheet, draw)
        rows = [line for g in shown for line in table(g, g.select(series))]
        again = stems.count(stem)
        name = stem + (f"-{again}" if again > 1 else "")
        out.append(Picture(name, page.figure, pd.DataFrame(rows), told))
    return out


def _page(
    words: TaskWords,
    layout: TaskLayout,
    sheet: Sheet[TaskGroup],
    shown: Sequence[TaskGroup],
    told: str,
) -> Page:
    parts = sheet.panel is not None
    of = f": {', '.join(filter(None, sheet.panel.title.split(chr(10))))}" if sheet.panel else ""
    subtitle = words.subtitle(shown)
    several = len({g.metric for g in shown}) > 1
    return Page(
        words.title + of,
        f"{subtitle}; {OTHERS}" if parts and len(sheet.places) > 1 else subtitle,
        told,
        list(words.entries),
        [layout.height] * sheet.rows,
        sheet.columns,
        width=7.2 if not parts else WIDE if sheet.columns > 2 else 8.6,
        gaps=[0.46] + [layout.row_gap] * (sheet.rows - 1),
        between=0.66 if several or parts else 0.42,
        right=0.2,
        below=layout.below,
    )


def _draw(page: Page, sheet: Sheet[TaskGroup], draw: Draw) -> None:
    before: dict[int, str] = {}
    for place in sheet.places:
        axes = page.panel(place.row, place.column)
        if sheet.panel:
            axes.set_title(place.title)
        else:
            head(axes, place.panel)
        label_scores(axes, place.panel.metric, before.get(place.row))
        before[place.row] = place.panel.metric
        draw(axes, place)


def bar_line(
    axes: Axes, look: Look, x: Sequence[float], y: Sequence[float], half: Sequence[float]
) -> None:
    axes.plot(x, y, **look.line(), clip_on=False, zorder=3)
    axes.errorbar(x, y, yerr=half, color=look.color, elinewidth=1, capsize=2.4, fmt="none")
