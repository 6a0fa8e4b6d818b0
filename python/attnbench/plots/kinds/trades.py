"""What the trade-off pictures show: per task, each variant's accuracy, speed and memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..layout.sheets import facets
from ..rows.joined import (
    Front,
    Point,
    Record,
    context_of,
    operating_point,
    pareto_front,
    point_at,
    record,
    shape_difference,
)
from ..rows.read import Rows
from ..rows.scores import TaskGroup, score, series_of, task_groups
from ..rows.settings import chosen_on_validation, is_error
from ..rows.style import Series, Styles
from ..rows.units import length_text


@dataclass(frozen=True)
class Trade:
    """One panel: the records of a task, or of the mean over tasks."""

    title: str
    dots: list[Record]
    speed: Point
    memory: Point | None
    causal: bool
    groups: tuple[TaskGroup, ...]
    levels: dict[str, float] = field(default_factory=dict)  # of a single task, see TaskGroup

    @cached_property
    def front(self) -> Front | None:
        return pareto_front(self.dots, fewer_is_better=is_error(self.metric))

    @property
    def unjoined(self) -> dict[str, str]:
        """Returns the parameters of costs that are not those of the score, by series."""
        return {d.series.label: d.other for d in self.dots if d.other}

    @property
    def shapes(self) -> str:
        """Tells the shapes of scores and costs where they differ."""
        return shape_difference([c for d in self.dots if d.whole for c in d.scored if c.ok], self.speed)

    @property
    def metric(self) -> str:
        return self.groups[0].metric

    @property
    def slug(self) -> str:
        """Names the files of a picture of this panel alone."""
        return "mean" if len(self.groups) > 1 else self.groups[0].slug

    @property
    def shortcut(self) -> float | None:
        """Returns the score of the best shortcut."""
        return self.levels.get("best shortcut")

    @property
    def series(self) -> list[Series]:
        return [d.series for d in self.dots]

    def select(self, series: list[Series]) -> list[Series]:
        mine = {s.key for s in self.series}
        return [s for s in series if s.key in mine]

    @property
    def where(self) -> str:
        """Tells what was timed: `attention alone, train`."""
        return self.speed.text().partition(", length")[0]

    @property
    def short_axis(self) -> str:
        """Labels the axis of costs of a small panel."""
        causal = next((bool(c.axes["causal"]) for g in self.groups for c in g.cells if "causal" in c.axes), None)
        mask = self.speed.context[2]
        other = "" if causal in (None, mask) else ", causal" if mask else ", not causal"
        return f"tokens/s at length {length_text(self.speed.context[3])}{other}"

    @property
    def axis(self) -> str:
        """Labels the axis of costs: where costs were measured, and at which lengths scores."""
        lengths = sorted({c.length for g in self.groups for c in g.cells if c.length})
        told = f"tokens per second\n({self.speed.text()})"
        if not lengths or lengths == [self.speed.context[3]]:
            return told
        span = "\u2013".join(length_text(n) for n in dict.fromkeys((lengths[0], lengths[-1])))
        return f"{told}\nscores: length {span}"

    @property
    def label(self) -> str:
        """Names the upward axis. Up is better, so an axis of errors is turned."""
        return self.groups[0].label + (", downwards" if is_error(self.metric) else "")

    @property
    def spread(self) -> float:
        """Returns how far the scores of the variants that are drawn lie apart."""
        scores = [d.score.mean for d in self.dots if d.is_ranked]
        return max(scores) - min(scores) if scores else 0.0


def trade_panels(
    rows: Rows, styles: Styles, only: tuple[TaskGroup, ...] | None = None
) -> list[Trade]:
    """Returns a panel of mean accuracy, then a panel for each task. The mean is over the tasks
    without a causal mask that every variant finished; other metrics are no part of a mean."""
    groups = list(only) if only else task_groups(chosen_on_validation(rows.of("accuracy")))
    series = series_of(groups, styles)
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
    """Chooses the panel of the summary: of tasks that no shortcut solves, and on which at least two
    variants are measured, a share rather than an error, and that on which variants differ most."""

    def rank(trade: Trade) -> tuple[bool, bool, bool, float]:
        measured = sum(d.is_ranked for d in trade.dots)
        open_to_lift = not trade.groups[0].control
        return open_to_lift, measured > 1, not is_error(trade.metric), trade.spread

    return max((t for t in trades if len(t.groups) == 1), key=rank, default=None)


def _trade(title: str, rows: Rows, series: list[Series], groups: list[TaskGroup]) -> list[Trade]:
    causal = next(
        (bool(c.axes["causal"]) for g in groups for c in g.cells if "causal" in c.axes), None
    )
    near = max((c.length for g in groups for c in g.cells if c.length), default=None)
    times, peaks = rows.of("speed"), rows.of("memory")
    also = {context_of(c) for c in peaks if c.ok}
    speed = operating_point(times, series, causal=causal, near=near, also=also)
    speed = speed or operating_point(times, series, near=near, also=also)
    if speed is None:
        return []
    memory = point_at(speed.context, peaks, series)
    exactness = rows.of("fidelity")
    dots = [d for s in series if (d := record(s, groups, speed, memory, exactness))]
    levels = groups[0].levels if len(groups) == 1 else {}
    return [Trade(title, dots, speed, memory, bool(causal), tuple(groups), levels)]


def front(trade: Trade, styles: Styles) -> set[Any]:
    """Returns the keys of the series to be named. Of few series these are all. Of many they are
    exact attention and the series that no other beats in both score and speed."""
    if len(facets(trade.series, styles)) == 1:
        return {s.key for s in trade.series}
    measured = [d for d in trade.dots if d.is_ranked]
    sign = -1 if is_error(trade.metric) else 1
    named = {s.key for s in styles.baselines(trade.series)}
    for dot in measured:
        beaten = any(
            sign * o.score.mean > sign * dot.score.mean and o.speed > dot.speed for o in measured
        )
        if not beaten:
            named.add(dot.series.key)
    return named


def largest_peak(trades: list[Trade]) -> float | None:
    return max([d.peak for t in trades for d in t.dots if d.peak], default=None)
