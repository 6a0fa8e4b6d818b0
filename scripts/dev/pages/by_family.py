"""Markdown: test scores of many variants by family, of the settings chosen on validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attnbench.plots.rows.learned import published, setting_key, setting_of
from attnbench.plots.rows.read import Cell, Params, Rows, read_rows
from attnbench.plots.rows.scores import (
    TaskGroup,
    score,
    short_titles,
    task_groups,
)
from attnbench.plots.rows.settings import (
    CUT,
    SETTING,
    is_error,
    marks_of,
    shown,
    spec_among,
    told_apart,
    winners,
    without_settings,
)
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import markdown

from .parameters import heading, over_exact

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
    is_error: bool  # less of the score is better
    marks: dict[str, str]  # of a variant's scores, see settings.MEANINGS

    @property
    def finished(self) -> list[str]:
        """The variants whose trainings all ended by themselves: the others have no rank."""
        return [v for v in self.variants if CUT not in self.marks[v]]

    @property
    def floor(self) -> float | None:
        """What a rule without attention scores, with the sign of `test`."""
        return -self.best_shortcut if self.best_shortcut is not None and self.is_error else self.best_shortcut


def scores_of(path: Path) -> list[Scores]:
    """Error where a variant lacks a seed that another has: the two cannot be ranked."""
    every = published(read_rows([path]), without_control=False).of("accuracy")
    won = [c for c in winners([c for c in every if c.status != "skipped"]) if c.ok]
    if not won:
        raise ValueError(f"{path.name} has no score; give rows with --measure accuracy")
    return [_of_task(group, every, path) for group in task_groups(won)]


def _level(cell: Cell) -> Level:
    return cell.task or "", cell.task_params


def _of_task(group: TaskGroup, every: list[Cell], path: Path) -> Scores:
    own = group.cells
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
        sign < 0,
        {v: marks_of(by[v, s] for s in seeds) for v in variants},
    )


SEEDED = ("seed", "threads")  # axes that are no setting
WIDEST = 0.5  # an interval of scores on both sides of a mean says nothing beyond this; the table then gives the seeds' range


def table(path: Path) -> str:
    """A line a variant and a column a task: the mean over seeds ± half of its 95 % interval, with the
    marks of the trainings; and how many numbers its model learns beside that of exact attention."""
    rows = published(read_rows([path]), without_control=False)
    styles, groups = Styles(rows), task_groups(told_apart(rows.of("accuracy")))
    every = [c for group in groups for c in group.cells]
    keys = dict.fromkeys((s.variant, s.params) for s in styles.series(every))
    found: dict[str, list[tuple[str, ...]]] = {}
    for key in keys:
        own = tuple(entry([c for c in g.cells if (c.variant, c.params) == key]) for g in groups)
        found.setdefault(styles.kind(key[0]), []).append((_told_by(*key, every), *own, _parameters(groups, key)))
    lines = [("" if i else family, *line) for family, own in found.items() for i, line in enumerate(own)]
    shortcuts = [f"{best[1]:.2f}" if (best := g.best_shortcut()) else "—" for g in groups]
    heads = ["family", "variant", *(f"`{title}`" for title in short_titles(groups)), heading(groups)]
    return markdown(heads, [*lines, ("", "best shortcut", *shortcuts, "")]) + left_out(rows)


def _parameters(groups: list[TaskGroup], key: tuple[str, Params]) -> str:
    """On the first task that both have: other tasks differ in their tokens alone."""
    shares = (over_exact((c for c in group.cells if (c.variant, c.params) == key), group.cells) for group in groups)
    return next((f"{share:.2f}" for share in shares if share), "—")


def left_out(rows: Rows) -> str:
    """The line below a table on the settings that it has no column of; of several settings of a task, with what tells them apart."""
    settings: dict[str, list[Cell]] = {}
    for cell in winners(list(rows.unlearned)):
        settings.setdefault(setting_key(cell), []).append(cell)
    told = []
    for cells in settings.values():
        task, _, why = setting_of(cells).words.partition(": ")
        apart = _apart(cells[0], [own[0] for own in settings.values() if own[0].task == cells[0].task])
        told.append(f"{task}{f' ({apart})' if apart else ''}: {why}")
    return f"\n\nLeft out, for the control has not learned them: {'; '.join(told)}." if told else ""


def _apart(cell: Cell, others: list[Cell]) -> str:
    """Parameters of the task, axes and settings of training in which these settings of a task differ: `pairs=4, steps=900`."""
    every = [{**dict(c.task_params), **c.axes, **c.training} for c in others]
    own = every[others.index(cell)]
    return ", ".join(f"{k}={v}" for k, v in own.items() if k not in (*SEEDED, *cell.tuned) and any(other.get(k) != v for other in every))


def _told_by(variant: str, params: Params, every: list[Cell]) -> str:
    """Its spec, and the settings of training in which it differs: `full`, positions=alibi."""
    plain = [replace(cell, params=without_settings(cell.params)) for cell in every]
    settings = (f"{shown(k)}={v}" for k, v in params if k.startswith(SETTING))
    return ", ".join([f"`{spec_among(variant, without_settings(params), plain)}`", *settings])


def entry(cells: list[Cell]) -> str:
    found = score(tuple(cells))
    if found is None:
        return "—"
    mean = f"{found.mean:.2f}{marks_of(cells)}"
    if found.half is not None and found.half > WIDEST:
        return f"{mean} ({min(found.seeds):.2f} to {max(found.seeds):.2f})"
    return mean + ("" if found.half is None else f" ± {found.half:.2f}")
