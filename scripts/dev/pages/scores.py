"""Test scores by task, variant and seed, of the settings chosen on validation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.scores import TaskGroup, task_groups
from attnbench.plots.rows.settings import is_error, winners

Level = tuple[str, tuple]  # a task and its parameters


@dataclass(frozen=True)
class Scores:
    """Of one task: a line for each variant that ran on it, a column for each seed."""

    task: Level
    variants: list[str]
    test: np.ndarray  # [variants, seeds], greater is better: errors have their sign changed
    curves: list[list[dict[int, float]]]  # validation by step, of each variant and seed
    seconds: float  # of all cells of the task, those that lost the choice included
    best_shortcut: float | None


def scores_of(path: Path) -> list[Scores]:
    """Error where a variant lacks a seed that another has: the two cannot be ranked."""
    every = [c for c in read_rows([path]).cells if c.measure == "accuracy"]
    won = [c for c in winners([c for c in every if c.status != "skipped"]) if c.ok]
    if not won:
        raise ValueError(f"{path.name} has no score; give rows with --measure accuracy")
    return [_of_task(group, every, path) for group in task_groups(won)]


def _level(cell: Cell) -> Level:
    return cell.task or "", cell.task_params


def _of_task(group: TaskGroup, every: list[Cell], path: Path) -> Scores:
    own = list(group.cells)
    level = _level(own[0])
    sign = -1.0 if is_error(own[0].scored_by) else 1.0
    variants = sorted({c.variant for c in own}, key=lambda v: (v != "full", v))
    seeds = sorted({c.axes["seed"] for c in own})
    by = {(c.variant, c.axes["seed"]): c for c in own}
    missing = [f"{v} with seed {s}" for v in variants for s in seeds if (v, s) not in by]
    if missing:
        raise ValueError(f"{path.name} has no score of {missing[0]} on {level[0]}; measure every variant with the same seeds")
    if len(by) < len(own):
        raise ValueError(f"{path.name} has several scores of one variant and seed on {level[0]}; rank one choice of parameters")
    test = np.array([[sign * float(by[v, s].metric("test") or 0) for s in seeds] for v in variants])
    curves = [
        [{p["step"]: sign * float(p["validation"] or 0) for p in by[v, s].samples or ()} for s in seeds] for v in variants
    ]
    best = group.best_shortcut()
    return Scores(
        level,
        variants,
        test,
        curves,
        sum(float(c.metric("train_s") or 0) for c in every if _level(c) == level and c.ok),
        best[1] if best else None,
    )
