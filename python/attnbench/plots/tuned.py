"""Settings chosen on validation: of cells that differ in them, those of the best are drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from .metric import is_error
from .rows import Cell
from .trained import differing, told_apart


def chosen_on_validation(cells: list[Cell]) -> list[Cell]:
    """Cells without those of tuned settings that lost, by the mean validation score over seeds.

    A cell that failed counts as the worst score, 0 or an endless error, a choice with fewer cells
    than another, in a sweep that is not done, loses to it, a tie goes to the smaller values: as in
    the table of `attnbench run`. What else differs in training becomes a parameter of the cells.
    """
    return told_apart(winners(cells))


def winners(cells: list[Cell], apart: Callable[[Cell], Any] = lambda _: None) -> list[Cell]:
    """The cells chosen; those for which `apart` differs do not compete with each other."""
    errors = {c.task for c in cells if c.ok and is_error(c.scored_by)}
    contests: dict[Any, dict[tuple[Any, ...], list[float]]] = {}
    for cell in filter(is_tuned, cells):
        scores = contests.setdefault((_shared(cell), apart(cell)), {})
        scores.setdefault(_values(cell), []).append(_merit(cell, cell.task in errors))
    best = {
        shared: max(sorted(choices), key=lambda v: (len(choices[v]), sum(choices[v])))
        for shared, choices in contests.items()
    }
    return [c for c in cells if not is_tuned(c) or best[_shared(c), apart(c)] == _values(c)]


def _merit(cell: Cell, error: bool) -> float:
    """Validation, of an error its negative; the worst there is where the cell failed."""
    score = cell.metric("validation") if cell.ok else None
    if error:
        return -math.inf if score is None else -score
    return score or 0.0


def is_tuned(cell: Cell) -> bool:
    return bool(cell.tuned and cell.training)


def choice_of(cell: Cell) -> str:
    """`learning_rate=0.003`: the tuned settings of a cell."""
    return ", ".join(f"{name}={json.dumps(cell.training.get(name))}" for name in cell.tuned)


def tuning_note(cells: list[Cell]) -> str:
    """The caption's word on what was chosen, for every variant from the same choices, and on what
    differs without having been chosen."""
    names = sorted({name for c in cells if is_tuned(c) for name in c.tuned})
    others = differing(cells)
    words = [f"Chosen on validation for each variant and task: {_listed(names)}."] if names else []
    words += [f"Trained with different {_listed(others)}."] if others else []
    return " ".join(words)


def _listed(names: list[str]) -> str:
    return ", ".join(names).replace("_", " ")


def _values(cell: Cell) -> tuple[Any, ...]:
    return tuple(cell.training.get(name) for name in cell.tuned)


def _shared(cell: Cell) -> str:
    """All but seed and choice; runs that must be told apart are so by a parameter, see runs.py."""
    training: dict[str, Any] = {k: v for k, v in cell.training.items() if k not in cell.tuned}
    axes = {k: v for k, v in cell.axes.items() if k != "seed"}
    what = [cell.variant, cell.params, cell.task, cell.task_params, axes, training, cell.tuned]
    return json.dumps(what, sort_keys=True)
