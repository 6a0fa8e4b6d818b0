"""Whether a setting can be learned. The control of a task is exact attention, or the variant that its rows name as the solver. A score in a setting
that the control has not learned says nothing of a variant, and no picture or page holds it: as in the tables of `attnbench run`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .read import Cell, Rows
from .settings import unfinished, winners
from .terms import BITS, EXACT, is_error

BAR_SHARE = 0.5  # of the way from the best shortcut to a perfect score


@dataclass(frozen=True)
class Setting:
    """A task with the settings of training that its variants have in common. `learned` is None where no row has its control."""

    task: str
    control: str
    learned: bool | None = None
    seeds: int = 0  # of the control with the parameters that did best
    reached: int = 0
    mean: float = math.nan  # over these seeds
    bar: float = math.nan

    @property
    def words(self) -> str:
        """Returns `mqar: full scores 0.260, and reached the bar of 0.625 in 0 of 3 seeds`."""
        if self.learned is None:
            return f"{self.task}: no row of {self.control}"
        if math.isnan(self.mean):
            return f"{self.task}: no training of {self.control} has a score"
        seeds = "seed" if self.seeds == 1 else "seeds"
        reached = f"reached the bar of {self.bar:.3f} in {self.reached} of {self.seeds} {seeds}"
        return f"{self.task}: {self.control} scores {self.mean:.3f}, and {reached}"


def best_of_nothing(cell: Cell) -> float:
    """Returns what is scored without having learned the task: by the best shortcut, or by chance."""
    scores = [float(v) for v in (cell.metrics.get("shortcuts") or {}).values()]
    levels = [float(cell.metric("chance") or 0.0), *scores]
    return min(levels) if is_error(cell.scored_by) else max(levels)


def bar_of(cell: Cell) -> float:
    """Returns the score that a training of this setting must reach to have learned it."""
    best = best_of_nothing(cell)
    if cell.scored_by == BITS:  # nobody knows the least that can be reached
        return best
    return best + BAR_SHARE * ((0.0 if is_error(cell.scored_by) else 1.0) - best)


def setting_of(cells: Iterable[Cell]) -> Setting:
    """Learned in every seed by the control with one set of parameters. What a shortcut solves, and a task without cells
    that are ok, is not judged: it counts as learned."""
    cells = list(cells)
    scored = [c for c in cells if c.ok and c.metric("test") is not None]
    task = str(cells[0].task)
    if not scored or any(c.metrics.get("control") for c in scored):
        return Setting(task, "", True)
    control = next((str(c.metrics["solver"]) for c in scored if c.metrics.get("solver")), EXACT)
    by_params: dict[Any, list[Cell]] = {}
    for cell in cells:
        if cell.variant == control and cell.status != "skipped":
            by_params.setdefault(cell.params, []).append(cell)
    found = [_judged(task, control, own) for own in by_params.values()]
    return max(found, key=lambda s: s.reached / s.seeds, default=Setting(task, control))


def published(rows: Rows, *, without_control: bool = True) -> Rows:
    """The rows without the scores of settings that their control has not learned; `left_out` names these.
    `without_control`: whether settings that lack their control stay, since nothing is known of them."""
    settings: dict[str, list[Cell]] = {}
    for cell in winners(rows.of("accuracy")):
        settings.setdefault(setting_key(cell), []).append(cell)
    judged = {key: setting_of(cells) for key, cells in settings.items()}
    unlearned = {key for key, s in judged.items() if s.learned is False or (s.learned is None and not without_control)}
    out = [c for c in rows.of("accuracy") if setting_key(c) in unlearned]
    gone = {id(c) for c in out}
    words = dict.fromkeys(judged[key].words for key in judged if key in unlearned)
    return replace(rows, cells=[c for c in rows.cells if id(c) not in gone], left_out=tuple(words), unlearned=tuple(out))


def left_out_with_advice(rows: Rows) -> list[str]:
    """Returns why each setting is left out, and what may make its control learn: `attnbench table` says the same."""
    settings: dict[str, list[Cell]] = {}
    for cell in winners(list(rows.unlearned)):
        settings.setdefault(setting_key(cell), []).append(cell)
    return list(dict.fromkeys(f"{setting_of(cells).words}; {_advice(cells)}" for cells in settings.values()))


def _advice(cells: list[Cell]) -> str:
    """As harness/tables/accuracy_table.cc gives it."""
    steps = None if "steps" in cells[0].tuned else cells[0].training.get("steps")
    if unfinished(cells) and steps is not None:
        return f"try --train schedule=wsd, or steps=N, N above {steps}"
    return "try --tune learning_rate --tune-by halving"


def setting_key(cell: Cell, without: Iterable[str] = ()) -> str:
    """Returns the task and the settings of training that are not tuned, without those named, in one string that compares."""
    training = {k: v for k, v in cell.training.items() if k not in (*cell.tuned, *without)}
    axes = {k: v for k, v in cell.axes.items() if k not in ("seed", "threads")}
    return json.dumps([cell.task, cell.task_params, axes, training], sort_keys=True)


def _judged(task: str, control: str, cells: list[Cell]) -> Setting:
    known = [c for c in cells if c.ok and c.metric("test") is not None]
    reached = sum(has_reached(c) for c in known)
    tests = [float(c.metric("test") or 0.0) for c in known]
    mean, bar = (float(np.mean(tests)), bar_of(known[0])) if known else (math.nan, math.nan)
    return Setting(task, control, reached == len(cells), len(cells), reached, mean, bar)


def has_reached(cell: Cell) -> bool:
    test, bar = float(cell.metric("test") or 0.0), bar_of(cell)
    return test <= bar if is_error(cell.scored_by) else test >= bar
