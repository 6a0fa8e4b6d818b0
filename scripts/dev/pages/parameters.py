"""How many numbers models learn, and over those of the model of exact attention."""

from __future__ import annotations

from collections.abc import Iterable

from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.scores import TaskGroup
from attnbench.plots.rows.terms import EXACT


def parameters_of(cells: Iterable[Cell]) -> int | None:
    """Of several models, as of one variant with other positions, the fewest."""
    return min((int(found) for c in cells if c.ok and (found := c.metric("parameters"))), default=None)


def over_exact(own: Iterable[Cell], task: Iterable[Cell]) -> float | None:
    """Of cells of a task over the smallest model of exact attention among all cells of that task."""
    found, exact = parameters_of(own), parameters_of(c for c in task if c.variant == EXACT)
    return found / exact if found and exact else None


def heading(groups: Iterable[TaskGroup]) -> str:
    """Of a column of over_exact."""
    sizes = ({c.metric("parameters") for c in g.cells if c.variant == EXACT and c.ok} for g in groups)
    return f"parameters over those of {'the smallest ' if any(len(own) > 1 for own in sizes) else ''}`{EXACT}`"
