"""What the trade-off pictures show: per task, each variant's accuracy, speed and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .curves import length_text
from .facets import facets
from .metric import is_error, name
from .operating import Point, operating_point
from .rows import FAILURES, Cell, Rows
from .style import Series, Styles
from .tasks import Score, TaskGroup, score, task_groups
from .trained import without_settings
from .tuned import chosen_on_validation


@dataclass(frozen=True)
class Dot:
    """One variant in one panel: what is known of it, and the status that stands for what is not."""

    series: Series
    score: Score | None
    speed: float | None  # tokens per second
    peak: float | None
    status: str
    params: str = ""  # where the cost was measured with others: `cost at features=256`


@dataclass(frozen=True)
class Trade:
    """One panel."""

    title: str
    dots: list[Dot]
    speed: Point
    memory: Point | None
    causal: bool
    groups: tuple[TaskGroup, ...]
    chance: float | None = None
    shortcut: float | None = None

    @property
    def metric(self) -> str:
        return self.groups[0].metric

    @property
    def slug(self) -> str:
        """Of the files of a picture of this panel alone."""
        return "mean" if len(self.groups) > 1 else str(self.groups[0].cells[0].task)

    def select(self, series: list[Series]) -> list[Series]:
        mine = {d.series.key for d in self.dots}
        return [s for s in series if s.key in mine]

    @property
    def axis(self) -> str:
        """Of the costs: where they were measured, and the scores where that is elsewhere."""
        lengths = sorted({c.length for g in self.groups for c in g.cells if c.length})
        told = f"tokens per second\n({self.speed.text()})"
        if not lengths or lengths == [self.speed.context[3]]:
            return told
        span = "\u2013".join(length_text(n) for n in dict.fromkeys((lengths[0], lengths[-1])))
        return f"{told}\nscores: length {span}"

    @property
    def label(self) -> str:
        """Of the upward axis: up is better, so that of errors stands on its head."""
        return name(self.metric) + (", downwards" if is_error(self.metric) else "")

    @property
    def spread(self) -> float:
        """Of the lift, the score over that of the best shortcut."""
        scores = [d.score.mean for d in self.dots if d.score]
        return (max(scores) - min(scores)) / self.shortcut if scores and self.shortcut else 0.0


def trade_panels(
    rows: Rows, styles: Styles, only: tuple[TaskGroup, ...] | None = None
) -> list[Trade]:
    """The mean accuracy over the tasks without a causal mask that every variant finished, then each
    task; other metrics are never part of a mean."""
    groups = list(only) if only else task_groups(chosen_on_validation(rows.of("accuracy")))
    series = styles.series([c for g in groups for c in g.cells])
    out = []
    open_tasks = [g for g in groups if not any(c.axes.get("causal") for c in g.cells)]
    whole = [
        g
        for g in open_tasks
        if g.metric == "accuracy"
        and not g.control
        and all(score(s.cells) for s in g.select(series))
    ]
    common = whole if len(whole) > 1 else []
    if common:
        names = " and ".join(g.title.partition("\n")[0] for g in common)
        out += _trade(f"mean of {names}", rows, series, common)
    for group in groups:
        out += _trade(group.title.replace("\n", ", ").rstrip(", "), rows, series, [group])
    return out


def telling_trade(trades: list[Trade]) -> Trade | None:
    """For the summary: a task that no shortcut solves rather than a control, then the one with the
    most variants measured; of equals one without a causal mask like the other panels, then a share
    rather than an error, then the one that tells the variants apart best."""

    def rank(trade: Trade) -> tuple[bool, int, bool, bool, float]:
        measured = sum(bool(d.score and d.speed) for d in trade.dots)
        open_to_lift = not trade.groups[0].control
        return open_to_lift, measured, not trade.causal, not is_error(trade.metric), trade.spread

    return max((t for t in trades if len(t.groups) == 1), key=rank, default=None)


def _trade(title: str, rows: Rows, series: list[Series], groups: list[TaskGroup]) -> list[Trade]:
    causal = next(
        (bool(c.axes["causal"]) for g in groups for c in g.cells if "causal" in c.axes), None
    )
    near = max((c.length for g in groups for c in g.cells if c.length), default=None)
    speed = operating_point(
        rows.of("speed"), series, causal=causal, near=near
    ) or operating_point(rows.of("speed"), series, near=near)
    if speed is None:
        return []
    memory = operating_point(rows.of("memory"), series, like=speed.context, near=near)
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
            whole[0]
            if len(whole) == len(scores) == 1
            else Score(float(np.mean([sc.mean for sc in whole])), None, ())
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
                _peak(s, at, peak),
                status,
                _other_params(s, at) if at else "",
            )
        )
    shortcut = groups[0].best_shortcut() if len(groups) == 1 else None
    chance = groups[0].reference("chance") if len(groups) == 1 else None
    best = shortcut[1] if shortcut else None
    return [Trade(title, dots, speed, memory, bool(causal), tuple(groups), chance, best)]


def _peak(series: Series, at: Cell | None, peak: Cell | None) -> float | None:
    """The memory, where it is that of the score's parameters, or of those that the point names."""
    if peak is None or not peak.ok:
        return None
    known = [without_settings(series.params), *([at.params] if at else [])]
    return peak.metric("peak_bytes") if peak.params in known else None


def _other_params(series: Series, cell: Cell) -> str:
    """`cost at features=256`; empty where the parameters are those of the score."""
    own, other = dict(without_settings(series.params)), dict(cell.params)
    differ = sorted(k for k in own.keys() | other.keys() if own.get(k) != other.get(k))
    return f"cost at {', '.join(f'{k}={other.get(k)}' for k in differ)}" if differ else ""


def front(trade: Trade, styles: Styles) -> set[Any]:
    """The series to be named: all of a few; of many exact attention and those that no other beats
    in both score and speed."""
    measured = [d for d in trade.dots if d.score and d.speed]
    if len(facets([d.series for d in trade.dots], styles)) == 1:
        return {d.series.key for d in trade.dots}
    sign = -1 if is_error(trade.metric) else 1
    named = {s.key for s in styles.baselines([d.series for d in trade.dots])}
    for dot in measured:
        beaten = any(
            sign * o.score.mean > sign * dot.score.mean and o.speed > dot.speed for o in measured
        )
        if not beaten:
            named.add(dot.series.key)
    return named
