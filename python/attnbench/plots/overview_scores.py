"""The scores of the overview, and which tasks say something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .answer_marks import marks_of
from .metric import is_error, written
from .overview_costs import EMPTY, Answer
from .style import BASELINE, Series, Styles
from .tasks import TaskGroup, score, short_titles
from .trained import without_settings
from .units import length_text


@dataclass(frozen=True)
class Task:
    """A column of scores."""

    title: str
    group: TaskGroup
    where: str  # the score was measured: `64 tokens, causal`
    shape: str  # of the trained models' attention: `2 heads of 32`
    warning: str  # why its scores say little; empty where they do

    @property
    def is_bar(self) -> bool:
        return not is_error(self.group.metric)


def tasks_of(groups: list[TaskGroup], styles: Styles) -> Iterator[Task]:
    """Tasks whose scores say something come before those whose scores do not."""
    titles = dict(zip(map(id, groups), short_titles(groups), strict=True))
    found = [Task(titles[id(g)], g, _measured_at(g), _heads(g), warning(g, styles)) for g in groups]
    yield from sorted(found, key=lambda task: bool(task.warning))


def _measured_at(group: TaskGroup) -> str:
    lengths = sorted({c.length for c in group.cells if c.length})
    span = "\u2013".join(length_text(n) for n in dict.fromkeys((lengths[0], lengths[-1]))) if lengths else ""
    causal = any(c.axes.get("causal") for c in group.cells)
    return ", ".join(filter(None, [f"{span} tokens" if span else "", "causal" if causal else ""]))


def _heads(group: TaskGroup) -> str:
    """`2 heads of 32`; empty where the rows do not say, or say several."""
    told = {(c.training.get("heads"), c.training.get("width")) for c in group.cells}
    heads, width = told.pop()
    if told or not (isinstance(heads, int) and isinstance(width, int) and heads > 0):
        return ""
    return f"{heads} head{'s' if heads > 1 else ''} of {width // heads}"


def warning(group: TaskGroup, styles: Styles) -> str:
    """Why scores of a task compare nothing: a shortcut solves it, or exact attention has not learned it."""
    if group.control:
        return f"{group.control} solves it"
    exact = styles.baseline(styles.series(list(group.cells)))
    found = score(exact.cells) if exact else None
    if found is None:
        return f"no score of {BASELINE}"
    best = group.best_shortcut()
    sign = -1 if is_error(group.metric) else 1
    if best and not sign * (found.mean - best[1]) > (found.half or 0.0):
        return f"{BASELINE} has no lift"
    return ""


def score_of(series: Series, group: TaskGroup) -> Answer:
    own = [c for c in group.cells if c.variant == series.variant and without_settings(c.params) == series.params]
    first = own[0].params if own else ()  # of several settings of training the first
    cells = tuple(c for c in own if c.params == first)
    found = score(cells)
    if found is None:
        ended = next(iter(cells), None)
        return EMPTY if ended is None else Answer(ended.status, ended.reason or "", cell=ended.id)
    span = "" if found.half is None else f"\u00b1{found.half:.2g}" if found.half >= 0.0005 else "\u00b10.000"
    ends = (None, None) if found.half is None else (found.mean - found.half, found.mean + found.half)
    return Answer(written(found.mean, group.metric), span, found.mean, *ends, marks_of(cells), found.cell)
