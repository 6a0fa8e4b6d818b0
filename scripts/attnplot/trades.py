"""What the trade-off pictures show: per task, each variant's accuracy, speed and memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .operating import Point, operating_point
from .rows import FAILURES, Rows
from .style import Series, Styles
from .tasks import Score, TaskGroup, score, task_groups


@dataclass(frozen=True)
class Dot:
    """One variant in one panel: what is known of it, and the status that stands for what is not."""

    series: Series
    score: Score | None
    speed: float | None  # tokens per second
    peak: float | None
    status: str


@dataclass(frozen=True)
class Trade:
    """One panel."""

    title: str
    dots: list[Dot]
    speed: Point
    memory: Point | None
    chance: float | None = None
    shortcut: float | None = None


def trade_panels(rows: Rows, styles: Styles) -> list[Trade]:
    """The mean over the tasks without a causal mask that every variant finished, then each task."""
    groups = task_groups(rows.of("accuracy"))
    series = styles.series([c for g in groups for c in g.cells])
    out = []
    open_tasks = [g for g in groups if not any(c.axes.get("causal") for c in g.cells)]
    whole = [g for g in open_tasks if all(score(s.cells) for s in g.select(series))]
    common = whole if len(whole) > 1 else []
    if common:
        names = " and ".join(g.title.partition("\n")[0] for g in common)
        out += _trade(f"mean of {names}", rows, series, common)
    for group in groups:
        out += _trade(group.title.replace("\n", ", ").rstrip(", "), rows, series, [group])
    return out


def _trade(title: str, rows: Rows, series: list[Series], groups: list[TaskGroup]) -> list[Trade]:
    causal = next(
        (bool(c.axes["causal"]) for g in groups for c in g.cells if "causal" in c.axes), None
    )
    speed = operating_point(rows.of("speed"), series, causal=causal) or operating_point(
        rows.of("speed"), series
    )
    if speed is None:
        return []
    memory = operating_point(rows.of("memory"), series, like=speed.context)
    dots = []
    for s in series:
        picked = [g.select([s])[0].cells for g in groups]
        scores = [score(cells) for cells in picked]
        statuses = [c.status for cells in picked for c in cells]
        if not statuses or all(status == "skipped" for status in statuses):
            continue
        at = speed.cells.get(s.key)
        peak = memory.cells.get(s.key) if memory else None
        whole = [sc for sc in scores if sc]
        mean = (
            Score(float(np.mean([sc.mean for sc in whole])), None, ())
            if len(whole) == len(scores)
            else None
        )
        status = (
            next((st for st in statuses if st in FAILURES), "ok")
            if mean is None
            else at.status
            if at
            else "not timed"
        )
        dots.append(
            Dot(
                s,
                mean,
                at.metric("tokens_per_s") if at and at.ok else None,
                peak.metric("peak_bytes") if peak and peak.ok else None,
                status,
            )
        )
    shortcut = groups[0].best_shortcut() if len(groups) == 1 else None
    chance = groups[0].reference("chance") if len(groups) == 1 else None
    return [Trade(title, dots, speed, memory, chance, shortcut[1] if shortcut else None)]
