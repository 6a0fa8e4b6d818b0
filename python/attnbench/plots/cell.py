"""A measured cell of rows, as pictures and reports see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Params = tuple[tuple[str, str], ...]
# Stands behind the name of a variant in Python, and what it says.
PYTHON = "\u2021"
PYTHON_NOTE = (
    f"{PYTHON}: written in Python and run by torch in an interpreter; its time and memory are those of "
    "that program, not of a native kernel."
)


@dataclass(frozen=True)
class Cell:
    """One measured cell; `params` and `task_params` are canonical: they compare and hash."""

    id: str
    status: str
    reason: str | None
    measure: str
    variant: str  # its name, which ends with PYTHON where it is written in Python
    params: Params
    task: str | None
    task_params: Params
    axes: dict[str, Any]
    metrics: dict[str, Any]
    samples: Any
    run: str = ""
    training: dict[str, Any] = field(default_factory=dict)
    visits: tuple[int, ...] = ()  # how many samples each process gave; empty in older rows
    tuned: tuple[str, ...] = ()  # training settings to be chosen on validation
    noisy: tuple[str, ...] = ()  # why its times are unreliable
    ledger: dict[str, Any] = field(default_factory=dict)  # what the variant was given
    is_gated: bool = False  # a contract check of its variant or task is red
    is_referenced: bool | None = None  # compared with declared mathematics; None: older rows
    verified: dict[str, Any] = field(default_factory=dict)  # how its own answer was compared

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def length(self) -> int | None:
        return self.axes.get("length")

    def metric(self, name: str) -> float | None:
        """A metric by name, `time_s.median` for a nested one; None where it is missing or null."""
        value = inside(self.metrics, name)
        return None if value is None or isinstance(value, (bool, str, dict, list)) else float(value)

    @property
    def scored_by(self) -> str:
        """The metric of an accuracy cell, by name."""
        return str(self.metrics.get("metric") or "accuracy")

    def times(self) -> list[float]:
        """The raw repetitions of a speed cell, in seconds."""
        raw = self.samples.get("time_s", []) if isinstance(self.samples, dict) else self.samples
        return [float(s) for s in raw or [] if isinstance(s, (int, float))]

    def visited(self) -> list[list[float]]:
        """The repetitions of each visit; where the row does not say, as if of one."""
        times, out = self.times(), []
        for size in self.visits or (len(times),):
            out.append(times[:size])
            times = times[size:]
        return out


def inside(metrics: Any, name: str) -> Any:
    """Returns a nested metric by its dotted name, None where the metric is missing."""
    for part in name.split("."):
        metrics = metrics.get(part) if isinstance(metrics, dict) else None
    return metrics
