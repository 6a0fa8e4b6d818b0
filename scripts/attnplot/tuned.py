"""Settings chosen on validation: of cells that differ in them, those of the best are drawn."""

from __future__ import annotations

import json
from typing import Any

from .rows import Cell


def chosen_on_validation(cells: list[Cell]) -> list[Cell]:
    """Cells without those of tuned settings that lost, by the mean validation score over seeds.

    A cell that failed counts as 0, a choice with fewer cells than another, in a sweep that is not
    done, loses to it, a tie goes to the smaller values: as in the table of `attnbench run`.
    """
    contests: dict[str, dict[tuple[Any, ...], list[float]]] = {}
    for cell in filter(is_tuned, cells):
        scores = contests.setdefault(_shared(cell), {}).setdefault(_values(cell), [])
        scores.append((cell.metric("validation") or 0.0) if cell.ok else 0.0)
    winners = {
        shared: max(sorted(choices), key=lambda v: (len(choices[v]), sum(choices[v])))
        for shared, choices in contests.items()
    }
    return [c for c in cells if not is_tuned(c) or winners[_shared(c)] == _values(c)]


def is_tuned(cell: Cell) -> bool:
    return bool(cell.tuned and cell.training)


def choice_of(cell: Cell) -> str:
    """`learning_rate=0.003`: the tuned settings of a cell."""
    return ", ".join(f"{name}={json.dumps(cell.training.get(name))}" for name in cell.tuned)


def tuning_note(cells: list[Cell]) -> str:
    """The caption's word on what was chosen, for every variant from the same choices."""
    names = sorted({name for c in cells if is_tuned(c) for name in c.tuned})
    if not names:
        return ""
    return f"Chosen on validation for each variant and task: {', '.join(names).replace('_', ' ')}."


def _values(cell: Cell) -> tuple[Any, ...]:
    return tuple(cell.training.get(name) for name in cell.tuned)


def _shared(cell: Cell) -> str:
    """All but seed and choice; runs that must be told apart are so by a parameter, see runs.py."""
    training: dict[str, Any] = {k: v for k, v in cell.training.items() if k not in cell.tuned}
    axes = {k: v for k, v in cell.axes.items() if k != "seed"}
    what = [cell.variant, cell.params, cell.task, cell.task_params, axes, training, cell.tuned]
    return json.dumps(what, sort_keys=True)
