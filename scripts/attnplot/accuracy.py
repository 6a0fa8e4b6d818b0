"""Accuracy by task: a line per variant, with the chance line and the best shortcut's."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from .caption import caption
from .ends import text_width
from .metric import error_ticks, is_error, name, unless_error, written
from .page import Page, Picture
from .rows import FAILURES, Cell, Rows
from .style import GREY, INK, Series, Styles
from .tasks import ONE_SEED, TaskGroup, controls, score, stand_ins, task_columns, task_groups
from .ticks import log_ticks
from .tuned import chosen_on_validation, tuning_note

LINE, CLOSE = 0.26, 0.18  # inches per variant, and where there are many
GAP, TALLEST = 1.16, 24.0  # inches between rows of panels, and of a page
CHANCE = {"color": "#8a8a8a", "linestyle": (0, (1, 1.4)), "linewidth": 1.2}
SHORTCUT = {"color": "#444444", "linestyle": (0, (5, 2)), "linewidth": 1.1}


def accuracy(rows: Rows, styles: Styles) -> list[Picture]:
    """As many pages as keep below the tallest that is read well."""
    cells = chosen_on_validation(rows.of("accuracy"))
    groups = task_groups(cells)
    if not groups:
        return []
    series = styles.series([c for g in groups for c in g.cells])
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
    if any(g.reference("chance") is not None for g in groups):
        legend.append((Line2D([], [], **CHANCE), "chance"))
    if any(g.best_shortcut() for g in groups):
        legend.append((Line2D([], [], **SHORTCUT), "best shortcut, named under each panel"))
    left = 0.3 + max(text_width(s.label, 8) for s in series) / 72
    page = Page(
        "Accuracy by task",
        "test score of the weights that were best on validation; "
        + unless_error([g.metric for g in groups], "further right is better", "further left"),
        words,
        legend,
        [height] * grid_rows,
        columns,
        gaps=[0.46] + [GAP] * (grid_rows - 1),
        width=max(7.2, 5.4 + left),
        left=left,
        between=0.5,
        right=0.5,
        below=0.86,
    )
    table: list[dict[str, Any]] = []
    for index, group in enumerate(groups):
        axes = page.panel(index // columns, index % columns)
        _draw(axes, group, group.select(series), labels=index % columns == 0)
        table += _table(group, group.select(series))
    return Picture(name, page.figure, pd.DataFrame(table), words)


def _draw(axes: Axes, group: TaskGroup, series: list[Series], *, labels: bool) -> None:
    head(axes, group)
    axes.set_ylim(len(series) - 0.5, -0.5)
    scores = {s.key: score(s.cells) for s in series}
    chance, shortcut = group.reference("chance"), group.best_shortcut()
    means = [sc.mean for sc in scores.values() if sc]
    if is_error(group.metric):
        levels = [chance or 0.0, shortcut[1] if shortcut else 0.0]
        axes.set_xscale("log")
        axes.set_xlim(error_ticks(axes.xaxis, [*means, *levels], most=4))
        log_ticks(axes, axes.xaxis, lambda v: f"{v:g}")
    else:
        axes.set_xlim(min([0.0, *means]), max([1.0, *means]))
        axes.xaxis.set_major_locator(MaxNLocator(2))
    if chance is not None:
        axes.axvline(chance, **CHANCE, zorder=1.5)
    if shortcut is not None:
        axes.axvline(shortcut[1], **SHORTCUT, zorder=1.5)
    for y, s in enumerate(series):
        found = scores[s.key]
        edge = {
            "xycoords": axes.get_yaxis_transform(),
            "textcoords": "offset points",
            "va": "center",
            "fontsize": 8,
        }
        if found is None:
            failed = next((c.status for c in s.cells if c.status in FAILURES), None)
            if failed:
                axes.plot(
                    [0],
                    [y],
                    transform=axes.get_yaxis_transform(),
                    marker="X",
                    markersize=6.5,
                    color=s.look.color,
                    markeredgecolor="white",
                    markeredgewidth=0.5,
                    clip_on=False,
                    zorder=6,
                )
            axes.annotate(
                failed or ("skipped" if s.cells else "not run"),
                (0, y),
                xytext=(8, 0),
                **edge,
                color=s.look.ink if failed else GREY,
                style="normal" if failed else "italic",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            )
            continue
        if len(found.seeds) > 1:
            axes.plot(
                found.seeds,
                [y] * len(found.seeds),
                "|",
                color=s.look.color,
                markersize=7,
                alpha=0.6,
            )
        axes.plot([found.mean], [y], **{**s.look.line(), "markersize": 4}, clip_on=False)
        if found.half is not None:
            low, high = axes.get_xlim()  # a bar ends where the axis does
            axes.errorbar(
                [found.mean],
                [y],
                xerr=[
                    [min(found.half, found.mean - low)],
                    [min(found.half, high - found.mean)],
                ],
                color=s.look.color,
                elinewidth=1.3,
                capsize=3.2,
                capthick=1.1,
                fmt="none",
                zorder=4,
                clip_on=False,
            )
        axes.annotate(
            written(found.mean, group.metric),
            (1, y),
            xytext=(9, 0),
            **edge,
            color=INK,
        )
    axes.set_yticks(range(len(series)), [s.label for s in series] if labels else [])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    under = ""
    if shortcut is not None:
        named = textwrap.fill(shortcut[0].replace("_", " "), 24)
        under = f"\nbest shortcut {written(shortcut[1], group.metric)}:\n{named}"
    axes.set_xlabel(name(group.metric) + under, linespacing=1.3)


def head(axes: Axes, group: TaskGroup) -> None:
    """The task as the panel's title, its parameters below."""
    task, _, told = group.title.partition("\n")
    axes.set_title(f"{task}, a control" if group.control else task, pad=16)
    axes.annotate(
        told,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 5),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
    )


def _interval_note(series: list[Series], groups: list[TaskGroup]) -> str:
    counts = {len(sc.seeds) for g in groups for s in g.select(series) if (sc := score(s.cells))}
    if counts == {1}:
        known = any(c.metric("test_stderr") is not None for g in groups for c in g.cells)
        return (
            f"n = 1 seed; bars are 95 % intervals, {ONE_SEED}."
            if known
            else "n = 1 seed; the rows hold no error of the test score."
        )
    n = (
        f"{min(counts, default=0)}\u2013{max(counts, default=0)}"
        if len(counts) > 1
        else str(max(counts, default=0))
    )
    one = f"; {ONE_SEED}" if 1 in counts else ""
    return f"n = {n} seeds (ticks); bars are 95 % t-intervals of their mean{one}."


def _table(group: TaskGroup, series: list[Series]) -> list[dict[str, Any]]:
    chance, shortcut = group.reference("chance"), group.best_shortcut()
    out = []
    for s in series:
        found = score(s.cells)
        out.append(
            {
                **task_columns(group.cells[0]),
                "series": s.label,
                "variant": s.variant,
                "status": ",".join(sorted({c.status for c in s.cells})),
                "reason": "; ".join(sorted({c.reason for c in s.cells if c.reason})),
                "metric": group.metric,
                "test": found.mean if found else None,
                "half_interval": found.half if found else None,
                "seeds": len(found.seeds) if found else 0,
                "chance": chance,
                "control": group.control,
                "best_shortcut": shortcut[0] if shortcut else None,
                "best_shortcut_score": shortcut[1] if shortcut else None,
            }
        )
    return out
