"""Settings chosen on validation: of cells that differ in them, those of the best choice are drawn."""

from __future__ import annotations

import json
from typing import Any

from .rows import Cell


def chosen_on_validation(cells: list[Cell]) -> list[Cell]:
    """Cells without those of tuned settings that lost, by the mean validation score over seeds.

    A cell that failed counts as 0, a tie goes to the first: as in the table of `attnbench run`.
    """
    contests: dict[str, dict[str, list[float]]] = {}
    for cell in filter(is_tuned, cells):
        scores = contests.setdefault(_shared(cell), {}).setdefault(choice_of(cell), [])
        scores.append((cell.metric("validation") or 0.0) if cell.ok else 0.0)
    winners = {
        shared: max(choices, key=lambda name: sum(choices[name]) / len(choices[name]))
        for shared, choices in contests.items()
    }
    return [c for c in cells if not is_tuned(c) or winners[_shared(c)] == choice_of(c)]


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


def _shared(cell: Cell) -> str:
    training: dict[str, Any] = {k: v for k, v in cell.training.items() if k not in cell.tuned}
    axes = {k: v for k, v in cell.axes.items() if k != "seed"}
    what = [cell.run, cell.variant, cell.params, cell.task, cell.task_params, axes, training]
    return json.dumps(what, sort_keys=True)
