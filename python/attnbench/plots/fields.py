"""Any axis, parameter or metric of a cell by its name: its value, its interval, and how it reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .context import contract
from .metric import NAMES
from .rows import Cell

# Metrics whose value is one of several figures; low and high are the ends of its interval.
NESTED = {"time_s": ("time_s.median", "time_s.ci_low", "time_s.ci_high")}
LABELS = {
    "length": "sequence length (tokens)",
    "time_s": "time per call",
    "tokens_per_s": "tokens per second",
    "peak_bytes": "peak memory",
    "state_bytes": "decode state",
    "extra_bytes": "memory beyond inputs and outputs",
    "relative_error": "relative error",
    "input_scale": "scale of the inputs",
    "keys_read": "keys read by a query",
    "weights_rank": "rank of the weights",
    "head_dim": "head width",
    "peak_fraction": "share of the FMA peak",
    "parameters": "learned parameters",
}
SHARES = ("test", "validation", "peak_fraction", "cosine", "lift")  # drawn on a linear axis
OF_CELL = ("variant", "task", "measure", "mask")


@dataclass(frozen=True)
class Field:
    """A name that the user gave."""

    name: str

    @property
    def kind(self) -> str:
        """Of units.TEXTS, `length`, or `number`."""
        if self.name == "length":
            return "length"
        if self.name.endswith("_bytes") or self.name == "bytes":
            return "bytes"
        return "seconds" if self.name.partition(".")[0].endswith("_s") and "per_s" not in self.name else "number"

    @property
    def is_log(self) -> bool:
        return self.name not in SHARES and self.name not in ("seed", "window")

    def label(self, cells: Iterable[Cell]) -> str:
        if self.name == "test":
            known = {c.scored_by for c in cells}
            return NAMES.get(known.pop(), "test score") if len(known) == 1 else "test score"
        return LABELS.get(self.name, self.name.replace("_", " "))

    def value(self, cell: Cell) -> Any:
        """Returns a number, a text, or None where the cell has no such axis, parameter or metric."""
        if self.name in OF_CELL:
            return {"variant": cell.variant, "task": cell.task, "measure": cell.measure,
                    "mask": contract(cell)}[self.name]  # fmt: skip
        if self.name in cell.axes:
            return cell.axes[self.name]
        metric = cell.metric(NESTED.get(self.name, (self.name,))[0])
        return metric if metric is not None else dict((*cell.params, *cell.task_params)).get(self.name)

    def number(self, cell: Cell) -> float | None:
        value = self.value(cell)
        if isinstance(value, bool):
            return None
        try:
            return float(value)
        except (TypeError, ValueError):
            return None

    def ends(self, cell: Cell) -> tuple[float, float] | None:
        """Returns the row's own 95 % interval."""
        if self.name in NESTED:
            low, high = (cell.metric(name) for name in NESTED[self.name][1:])
            return None if low is None or high is None else (low, high)
        error = cell.metric("test_stderr") if self.name == "test" else None
        value = self.number(cell)
        return None if error is None or value is None else (value - 1.96 * error, value + 1.96 * error)


def known_names(cells: Iterable[Cell]) -> list[str]:
    """Returns every name that some cell has a number or a text for."""
    found: dict[str, None] = dict.fromkeys(OF_CELL)
    for cell in cells:
        found |= dict.fromkeys(cell.axes)
        found |= dict.fromkeys(k for k, v in cell.metrics.items() if isinstance(v, (int, float, dict)))
        found |= dict.fromkeys(k for k, _ in (*cell.params, *cell.task_params))
    return list(found)
