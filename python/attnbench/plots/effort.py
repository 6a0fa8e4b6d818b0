"""Score against effort: validation score while a model trains, against seconds of training and
against its FLOPs. One pair of panels for each task, one line for each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from .curves import grey_lines
from .ends import End, make_room, name_ends
from .marks import CHANCE, level_entry
from .median import median
from .metric import name as name_of
from .metric import score_axis
from .page import Picture
from .rows import FAILURES, Cell, Rows
from .sheets import Place
from .style import Series, Styles
from .task_panels import Line, TaskPage, cell_lines, task_pages
from .tasks import TaskGroup, task_groups
from .ticks import log_ticks
from .tuned import chosen_on_validation
from .units import seconds_text, thousands_text

NOTE = (
    "Validation score against the time of training alone and against its FLOPs as counted. Lines are medians over the seeds, bands run from "
    "the lowest seed to the highest; a seed that stopped early keeps its last score."
)
EFFORTS = {"seconds": "seconds of training", "flops": "FLOPs of training"}
# Effort, and over the seeds the median, lowest and highest score.
Points = list[tuple[float, float, float, float]]


def _seconds(value: float) -> str:
    return seconds_text(value) if value < 999.5 else f"{value:,.0f} s"


TEXTS = {"seconds": _seconds, "flops": thousands_text}


@dataclass(frozen=True)
class Effort(TaskGroup):
    """The cells of a task, drawn against one kind of effort."""

    kind: str = "seconds"

    @property
    def label(self) -> str:
        return name_of(self.metric).replace("test", "validation", 1)

    @property
    def slug(self) -> str:
        return f"{super().slug}-{self.kind}"


def efforts(rows: Rows) -> list[Effort]:
    """Returns two panels for each task that was validated several times."""
    cells = [c for c in chosen_on_validation(rows.of("accuracy")) if len(curve(c, "seconds")) > 1]
    return [
        Effort(g.title, g.cells, kind)
        for g in task_groups(cells)
        for kind in EFFORTS
        if any(curve(c, kind) for c in g.cells)
    ]


def effort(rows: Rows, styles: Styles) -> list[Picture]:
    kind = TaskPage(
        "accuracy-effort",
        "Score against effort",
        "validation score while the model trains",
        ("up and to the left is better", "down and to the left"),
        [level_entry("chance")],
        height=1.9,
        row_gap=0.95,
        below=0.55,
        draw=_draw,
        table=_table,
    )
    failed = [c for c in rows.of("accuracy") if c.status in FAILURES]
    return task_pages(kind, rows, styles, efforts(rows), lambda *_: [NOTE], failed)


def curve(cell: Cell, kind: str) -> dict[int, tuple[float, float]]:
    """Returns effort and validation score by step; empty where the row does not tell them."""
    if not cell.ok or not isinstance(cell.samples, list):
        return {}
    each = _flops_of_step(cell)
    found = {}
    for point in cell.samples:
        at = point["seconds"] if kind == "seconds" else each and each * point["step"]
        if at and point.get("validation") is not None:
            found[int(point["step"])] = float(at), float(point["validation"])
    return found


def _flops_of_step(cell: Cell) -> float | None:
    """The counters give the FLOPs of an example, and every step takes as many examples."""
    flops, examples, steps = (cell.metric(name) for name in ("flops", "examples", "steps"))
    return flops * examples / steps if flops and examples and steps else None


def points(cells: Sequence[Cell], kind: str) -> Points:
    """Medians over seeds, of those that are still training for the effort, of all for the score."""
    curves = [found for c in cells if (found := curve(c, kind))]
    out: Points = []
    for step in sorted({step for found in curves for step in found}):
        spent = [found[step][0] for found in curves if step in found]
        scores = [score for found in curves if (score := _score_at(found, step)) is not None]
        out.append((median(spent), median(scores), min(scores), max(scores)))
    return out


def _score_at(found: dict[int, tuple[float, float]], step: int) -> float | None:
    """The last score until the step."""
    return next((found[s][1] for s in sorted(found, reverse=True) if s <= step), None)


def _draw(axes: Axes, place: Place[Effort]) -> None:
    kind, chance = place.panel.kind, place.panel.reference("chance")
    if chance is not None:
        axes.axhline(chance, **CHANCE, zorder=1.5)
    drawn = [(s, own) for s in place.own if (own := points(s.cells, kind))]
    for s, own in drawn:
        at, middle, low, high = zip(*own)
        axes.plot(at, middle, **s.look.line(), clip_on=False, zorder=3)
        axes.fill_between(at, low, high, color=s.look.color, alpha=0.18, linewidth=0, zorder=2)
    values = [v for _, own in drawn for p in own for v in p[1:]]
    score_axis(axes, place.panel.metric, [chance or 0.0, *values])
    axes.set_xscale("log")
    spent = [p[0] for _, own in drawn for p in own] or [1.0]
    axes.set_xlim(min(spent) / 1.15, max(spent) * 1.15)
    ends = [End(own[-1][:2], s.label, s.look) for s, own in drawn]
    share = make_room(axes, ends, max(spent))
    log_ticks(axes, axes.xaxis, TEXTS[kind])
    axes.set_xlabel(EFFORTS[kind])
    grey_lines(axes, ([p[:2] for p in points(s.cells, kind)] for s in place.others))
    name_ends(axes, ends, share)


def _table(group: TaskGroup, series: list[Series]) -> list[Line]:
    kind = group.kind if isinstance(group, Effort) else "seconds"

    def lines(cell: Cell) -> list[Line]:
        return [
            {
                "seed": cell.axes.get("seed"),
                "metric": group.metric,
                "effort": kind,
                "at": at,
                "step": step,
                "validation": score,
            }
            for step, (at, score) in curve(cell, kind).items()
        ]

    return cell_lines(series, lines)
