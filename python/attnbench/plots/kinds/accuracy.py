"""Test scores: the page of all tasks, a line for each variant with the levels of chance and of the
best shortcut; and the pages with a panel for each task, whose lines are named at their ends."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator

from ..layout.axes import (
    CHANCE,
    LEVELS,
    SHORTCUT,
    End,
    Entry,
    bar_line,
    beside,
    cross,
    entry,
    error_ticks,
    log_ticks,
    make_room,
    name_ends,
    name_lines,
    score_axis,
    text_width,
)
from ..layout.caption import caption
from ..layout.page import Page, Picture
from ..layout.panels import grey_lines
from ..layout.sheets import OTHERS, Place, Sheet, in_rows, scored_panels, sheets
from ..rows.read import FAILURES, Cell, Rows, ids
from ..rows.scores import (
    ONE_SEED,
    Score,
    TaskGroup,
    cells_of,
    controls,
    score,
    series_of,
    shortcut_words,
    stand_ins,
    task_columns,
    task_groups,
)
from ..rows.settings import (
    chosen_on_validation,
    is_error,
    key_of,
    marks_of,
    tuning_note,
    unfinished,
    unless_error,
    written,
)
from ..rows.style import GREY, INK, Look, Series, Styles

LINE, CLOSE = 0.26, 0.18  # inches per variant, and where there are many
GAP, TALLEST = 1.16, 24.0  # inches between rows of panels, and of a page
WRAPPED = 0.15625  # inches of a line of words under a panel


def accuracy(rows: Rows, styles: Styles) -> list[Picture]:
    """Draws pages of tasks, each page at most TALLEST inches high."""
    cells = chosen_on_validation(rows.of("accuracy"))
    groups = task_groups(cells)
    if not groups:
        return []
    series = series_of(groups, styles)
    columns = min(3, len(groups))
    height = (LINE if len(series) <= 8 else CLOSE) * len(series) + 0.1
    rows_of_page = max(1, int(TALLEST / (height + GAP)))
    each = rows_of_page * columns
    grouped = {c.id for g in groups for c in g.cells}
    out = []
    for number in range(math.ceil(len(groups) / each)):
        own = groups[number * each : (number + 1) * each]
        shown = [c for g in own for c in g.cells]
        if number == 0:  # the first caption names what no page draws
            shown += [c for c in cells if c.id not in grouped]
        name = "accuracy" + (f"-{number + 1}" if number else "")
        out.append(_page(name, rows, own, shown, series, columns, height))
    return out


def _page(
    name: str,
    rows: Rows,
    groups: list[TaskGroup],
    cells: list[Cell],
    series: list[Series],
    columns: int,
    height: float,
) -> Picture:
    grid_rows = math.ceil(len(groups) / columns)
    words = caption(
        rows,
        cells,
        _interval_note(series, groups),
        "Chance and shortcut scores are measured on the same test split.",
        controls(groups),
        stand_ins(cells),
        tuning_note(cells),
    )
    legend = []
    if any("chance" in g.levels for g in groups):
        legend.append(entry(CHANCE, "chance"))
    if any("best shortcut" in g.levels for g in groups):
        legend.append(entry(SHORTCUT, "best shortcut, named under each panel"))
    more = [_more_room(groups[row * columns : (row + 1) * columns]) for row in range(grid_rows)]
    left = 0.3 + max(text_width(s.label, 8) for s in series) / 72
    page = Page(
        "Accuracy by task",
        "test score of the weights that were best on validation; "
        + unless_error([g.metric for g in groups], "further right is better", "further left"),
        words,
        legend,
        [height] * grid_rows,
        columns,
        gaps=[0.46] + [GAP + extra for extra in more[:-1]],
        width=max(7.2, 5.4 + left),
        left=left,
        between=0.62,
        right=0.58,
        below=0.86 + more[-1],
        key=" \u00b7 ".join(key_of(cells_of(groups))),
    )
    table: list[dict[str, Any]] = []
    for index, group in enumerate(groups):
        axes = page.panel(index // columns, index % columns)
        _draw(axes, group, group.select(series), labels=index % columns == 0)
        table += _table(group, group.select(series))
    return Picture(name, page.figure, pd.DataFrame(table), words)


def _named(shortcut: str) -> list[str]:
    return textwrap.wrap(shortcut_words(shortcut), 24)


def _more_room(groups: list[TaskGroup]) -> float:
    """Inches under a row of panels for names of shortcuts that take more than a line."""
    found = (group.best_shortcut() for group in groups)
    return WRAPPED * max((len(_named(shortcut[0])) - 1 for shortcut in found if shortcut), default=0)


def _draw(axes: Axes, group: TaskGroup, series: list[Series], *, labels: bool) -> None:
    head(axes, group.title, group.control)
    axes.set_ylim(len(series) - 0.5, -0.5)
    scores = {s.key: score(s.cells) for s in series}
    means = [sc.mean for sc in scores.values() if sc]
    if is_error(group.metric):
        axes.set_xscale("log")
        axes.set_xlim(error_ticks(axes.xaxis, [*means, *group.levels.values()], most=4))
        log_ticks(axes, axes.xaxis, lambda v: f"{v:g}")
    else:
        axes.set_xlim(min([0.0, *means]), max([1.0, *means]))
        axes.xaxis.set_major_locator(MaxNLocator(2))
    for level, value in group.levels.items():
        axes.axvline(value, **LEVELS[level], zorder=1.5)
    for y, s in enumerate(series):
        found = scores[s.key]
        if found is None:
            _draw_missing(axes, y, s)
        else:
            _draw_score(axes, y, s.look, found, written(found.mean, group.metric) + marks_of(s.cells))
    name_lines(axes, [s.label if labels else "" for s in series])
    shortcut = group.best_shortcut()
    under = ""
    if shortcut is not None:
        named = "\n".join(_named(shortcut[0]))
        under = f"\nbest shortcut {written(shortcut[1], group.metric)}:\n{named}"
    axes.set_xlabel(group.label + under, linespacing=1.3)


def _draw_missing(axes: Axes, y: float, series: Series) -> None:
    """Writes the status instead of a score. A cross marks a failure."""
    edge = axes.get_yaxis_transform()
    failed = next((c.status for c in series.cells if c.status in FAILURES), None)
    if failed:
        cross(axes, [0], [y], series.look, transform=edge)
    style = {
        "color": series.look.ink if failed else GREY,
        "style": "normal" if failed else "italic",
        "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    }
    status = failed or ("skipped" if series.cells else "not run")
    beside(axes, status, (0, y), (8, 0), xycoords=edge, **style)


def _draw_score(axes: Axes, y: float, look: Look, score: Score, text: str) -> None:
    """Draws the mean with its interval and writes the number at the right. Several seeds get a tick
    each."""
    if len(score.seeds) > 1:
        ticks = {"color": look.color, "markersize": 7, "alpha": 0.6}
        axes.plot(score.seeds, [y] * len(score.seeds), "|", **ticks)
    style = look.hollow() if score.is_unfinished else look.line()
    axes.plot([score.mean], [y], **{**style, "markersize": 4}, clip_on=False)
    if score.half is not None:
        low, high = axes.get_xlim()  # a bar ends where the axis does
        ends = [[min(score.half, score.mean - low)], [min(score.half, high - score.mean)]]
        bar = {"color": look.color, "elinewidth": 1.3, "capsize": 3.2, "capthick": 1.1}
        axes.errorbar([score.mean], [y], xerr=ends, **bar, fmt="none", zorder=4, clip_on=False)
    beside(axes, text, (1, y), (9, 0), xycoords=axes.get_yaxis_transform(), color=INK)


def head(axes: Axes, title: str, control: str | None = None) -> None:
    """Writes the task as the panel's title and its parameters below."""
    task, _, told = title.partition("\n")
    axes.set_title(f"{task}, a control" if control else task, pad=16)
    style = {"xycoords": "axes fraction", "va": "baseline", "color": GREY}
    beside(axes, told, (0, 1), (0, 5), **style)


def _interval_note(series: list[Series], groups: list[TaskGroup]) -> str:
    counts = {len(sc.seeds) for g in groups for s in g.select(series) if (sc := score(s.cells))}
    if counts == {1}:
        known = any(c.metric("test_stderr") is not None for g in groups for c in g.cells)
        return (
            f"n = 1 seed; bars are 95 % intervals. They are {ONE_SEED}."
            if known
            else "n = 1 seed; the rows hold no error of the test score."
        )
    n = (
        f"{min(counts, default=0)}\u2013{max(counts, default=0)}"
        if len(counts) > 1
        else str(max(counts, default=0))
    )
    one = f" Those of one seed are {ONE_SEED}." if 1 in counts else ""
    return f"n = {n} seeds (ticks); bars are 95 % t-intervals of their mean.{one}"


def _table(group: TaskGroup, series: list[Series]) -> list[dict[str, Any]]:
    shortcut = group.best_shortcut()
    out = []
    for s in series:
        found = score(s.cells)
        out.append(
            {
                **task_columns(group.cells[0]),
                **s.columns,
                "status": ",".join(sorted({c.status for c in s.cells})),
                "reason": "; ".join(sorted({c.reason for c in s.cells if c.reason})),
                "metric": group.metric,
                "test": found.mean if found else None,
                "half_interval": found.half if found else None,
                "seeds": len(found.seeds) if found else 0,
                "chance": group.levels.get("chance"),
                "control": group.control,
                "best_shortcut": shortcut[0] if shortcut else None,
                "best_shortcut_score": group.levels.get("best shortcut"),
                "cell": ids(s.cells),
            }
        )
    return out


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
    draw: Callable[[Axes, Place[TaskGroup]], None]
    table: Callable[[TaskGroup, list[Series]], list[Line]]
    height: float = 1.9  # inches of a panel
    row_gap: float = 0.85
    below: float = 0.55
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
        page = _task_page(kind, sheet, told)
        for axes, place in scored_panels(page, sheet):
            if sheet.panel:
                axes.set_title(place.title)
            else:
                head(axes, place.panel.title, place.panel.control)
            kind.draw(axes, place)
        table = [line for g in shown for line in kind.table(g, g.select(series))]
        out.append(Picture(kind.name + sheet.suffix, page.figure, pd.DataFrame(table), told))
    return out


def _task_page(kind: TaskPage, sheet: Sheet[TaskGroup], told: str) -> Page:
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
        key=" \u00b7 ".join(key_of(cells_of(sheet.panels))),
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
        bar_line(axes, s.look, *zip(*own), is_hollow=unfinished(s.cells) and not place.panel.is_course)
    values = [mean for _, own in drawn for _, mean, _ in own]
    score_axis(axes, place.panel.metric, [*levels, *values])
    return [End(own[-1][:2], s.label + marks_of(s.cells), s.look) for s, own in drawn]


def draw_over_numbers(
    axes: Axes,
    place: Place[TaskGroup],
    points: Callable[[Sequence[Cell]], Points],
    shown: Sequence[Series],
    label: str,
    *,
    whole: bool = True,
) -> None:
    """Draws the lines of a panel and the levels of chance and of the best shortcut over numbers, which are
    `whole`, from the first to the last of the series shown."""
    levels = place.panel.levels
    for level, value in levels.items():
        axes.axhline(value, **LEVELS[level], zorder=1.5)
    ends = draw_lines(axes, place, points, levels.values())
    places = [at for s in shown for at, *_ in points(s.cells)]
    first, last = min(places, default=0.0), max(places, default=1.0)
    axes.set_xlim(left=first - 0.06 * (last - first))
    share = make_room(axes, ends, last)
    ticks = MaxNLocator(4 if share > 0.6 else 3, integer=whole).tick_values(first, last)
    axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if first <= t <= last]))
    axes.set_xlabel(label)
    finish_lines(axes, place, points, ends, share)


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
