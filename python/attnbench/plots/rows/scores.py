"""Accuracy cells by task, and what they add up to: scores over seeds, chance and shortcuts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit  # scipy.stats takes over a second to load

from .read import FAILURES, Cell, ids
from .settings import contract, is_error, unfinished
from .settings import name as name_of
from .style import Series, Styles, among


@dataclass(frozen=True)
class Score:
    """Test score over seeds: the mean and half of its 95 % interval, None where unknown."""

    mean: float
    half: float | None
    seeds: tuple[float, ...]
    cell: str = ""  # ids of the cells, see rows.ids
    is_unfinished: bool = False  # see settings.unfinished


@dataclass(frozen=True)
class TaskGroup:
    """Cells of one task with the same parameters."""

    title: str
    cells: tuple[Cell, ...]

    @property
    def metric(self) -> str:
        return next((c.scored_by for c in self.cells if c.ok), "accuracy")

    @property
    def label(self) -> str:
        """Names the axis of scores."""
        return name_of(self.metric)

    @property
    def is_course(self) -> bool:
        """Whether lines go through a training: then they join the points of one that was cut off too."""
        return False

    @property
    def slug(self) -> str:
        """Names the files of a picture of this task alone."""
        return str(self.cells[0].task)

    @property
    def levels(self) -> dict[str, float]:
        """Returns the known scores of chance and of the best shortcut, by their names in LEVELS."""
        chance, best = self.reference("chance"), self.best_shortcut()
        known = {"chance": chance, "best shortcut": best[1] if best else None}
        return {level: value for level, value in known.items() if value is not None}

    def reference(self, name: str) -> float | None:
        """Returns the mean of a reference score, such as chance, which every cell measures on the
        same test split."""
        values = [v for c in self.cells if c.ok and (v := c.metric(name)) is not None]
        return float(np.mean(values)) if values else None

    def best_shortcut(self) -> tuple[str, float] | None:
        named: dict[str, list[float]] = {}
        for cell in self.cells:
            for name, value in (cell.metrics.get("shortcuts") or {}).items():
                named.setdefault(name, []).append(float(value))
        scores = {name: float(np.mean(values)) for name, values in named.items()}
        best = min if is_error(self.metric) else max
        return best(scores.items(), key=lambda item: item[1]) if scores else None

    @property
    def control(self) -> str | None:
        """Returns what solves the task without attention, if the rows call the task a control."""
        said = (c.metrics.get("control") for c in self.cells if c.ok)
        return next((str(text) for text in said if text), None)

    def select(self, series: list[Series]) -> list[Series]:
        return among(self.cells, series)


WINDOWS = {
    "best": "best rule that sees {} positions in a row",
    "pooled": "rule on all windows of {} positions, pooled",
    "last": "rule that sees the last {} positions",
}


def shortcut_words(name: str) -> str:
    """Returns the name of a shortcut as it reads; of a window, what it sees."""
    window = re.fullmatch(r"window of (\d+) \((\w+)\)", name.replace("_", " "))
    return WINDOWS[window[2]].format(window[1]) if window and window[2] in WINDOWS else name.replace("_", " ")


def short_titles(groups: Iterable[TaskGroup]) -> list[str]:
    """The task's name of each group, and its parameters where several groups have the name."""
    groups = list(groups)
    names = [str(g.cells[0].task) for g in groups]
    return [n if names.count(n) == 1 else one_line(g) for n, g in zip(names, groups, strict=True)]


def one_line(group: TaskGroup) -> str:
    return group.title.replace("\n", " ")


def cells_of(groups: Iterable[TaskGroup]) -> list[Cell]:
    """Returns each cell once, though several panels may draw it."""
    return list({id(c): c for g in groups for c in g.cells}.values())


def series_of(groups: Iterable[TaskGroup], styles: Styles) -> list[Series]:
    return styles.series(cells_of(groups))


def task_groups(cells: list[Cell]) -> list[TaskGroup]:
    """Groups cells by task in the order of the rows. A title tells the parameters that differ
    within a task."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.task, cell.task_params), []).append(cell)
    out = []
    for (task, params), members in groups.items():
        others = [dict(p) for t, p in groups if t == task]
        told = [
            f"{k}={v}"
            for k, v in params
            if k in ("length", "side") or any(o.get(k) != v for o in others)
        ]
        kind = [contract(members[0])] if "causal" in members[0].axes else []
        out.append(TaskGroup(f"{task}\n{', '.join(told + kind)}", tuple(members)))
    return [g for g in out if any(c.status != "skipped" for c in g.cells)]


def controls(groups: Iterable[TaskGroup]) -> str:
    """The caption's word on tasks that a shortcut solves."""
    told = {g.title.partition("\n")[0]: g.control for g in groups if g.control}
    names = "; ".join(f"{task}: {by} solves it" for task, by in told.items())
    return f"Controls, whose lift says nothing: {names}." if told else ""


# What the interval of a score says where only one seed was trained; tables give it none.
ONE_SEED = (
    "of one seed over the test examples (\u00b11.96 standard errors; they do not tell how much seeds differ)"
)
PLACES = {  # where an encoder-decoder holds attention
    "encoder": "the encoder",
    "decoder": "the decoder's self-attention",
    "cross": "cross-attention",
}


def absent_places(cell: Cell) -> tuple[str, ...]:
    """Where in an encoder-decoder exact attention stands in for the variant."""
    places = cell.metrics.get("places")
    return tuple(p for p in PLACES if places and p not in places) if cell.metrics.get("metric") == "exact_match" else ()


def stand_ins(cells: list[Cell]) -> str:
    """The caption's word on variants that cannot stand everywhere in an encoder-decoder."""
    told: dict[tuple[str, ...], list[str]] = {}
    for cell in cells:
        absent = absent_places(cell)
        if cell.ok and absent:
            names = told.setdefault(absent, [])
            if cell.variant not in names:
                names.append(cell.variant)
    parts = [
        f"{', '.join(names)} in {' and in '.join(PLACES[p] for p in absent)}"
        for absent, names in told.items()
    ]
    return f"Exact attention stands in for {'; for '.join(parts)}." if parts else ""


def score(cells: Iterable[Cell], split: str = "test") -> Score | None:
    """Returns the score over seeds on `split`, which is test or validation. Its `cell` also names the seeds whose
    training failed: the score lacks them, and carries their mark."""
    cells = list(cells)
    known = [c for c in cells if c.ok and c.metric(split) is not None]
    if not known:
        return None
    lost = [c for c in cells if c.status in FAILURES]
    values = [float(c.metric(split) or 0.0) for c in known]
    found = over_seeds(values, known[0].metric(f"{split}_stderr"))
    return replace(found, cell=ids([*known, *lost]), is_unfinished=unfinished(known))


def over_seeds(tests: list[float], stderr: float | None) -> Score:
    """Returns the score over seeds. `stderr` is that of a single seed over its test examples."""
    if len(tests) > 1:
        half = float(stdtrit(len(tests) - 1, 0.975) * np.std(tests, ddof=1) / math.sqrt(len(tests)))
    else:
        half = None if stderr is None else 1.96 * stderr
    return Score(float(np.mean(tests)), half, tuple(tests))


def task_columns(cell: Cell) -> dict[str, str]:
    """The first columns of a table of scores."""
    params = " ".join(f"{k}={v}" for k, v in cell.task_params)
    return {"task": cell.task, "task_params": params}
