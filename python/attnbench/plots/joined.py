"""Records: what was measured of one variant at one shape, joined across measures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .context import contract
from .operating import Point
from .rows import FAILURES, Cell, ids
from .style import Series
from .tasks import Score, TaskGroup, score
from .trained import without_settings
from .units import length_text
from .visits import draws, sure


@dataclass(frozen=True)
class Record:
    """A variant's scores, and the time, memory and fidelity measured with the same parameters. A
    status stands for a value that is missing."""

    series: Series
    score: Score | None
    scored: tuple[Cell, ...]
    timed: Cell | None = None
    held: Cell | None = None  # memory
    compared: Cell | None = None  # fidelity
    status: str = "ok"
    other: str = ""  # parameters of the only cost of the variant, where they are not the score's

    @property
    def whole(self) -> bool:
        return bool(self.score and self.speed)

    @property
    def mean(self) -> float | None:
        return self.score.mean if self.score else None

    @property
    def speed(self) -> float | None:
        """Returns tokens per second."""
        return _metric(self.timed, "tokens_per_s")

    @property
    def peak(self) -> float | None:
        return _metric(self.held, "peak_bytes")

    @property
    def cells(self) -> list[Cell]:
        return [*self.scored, *(c for c in (self.timed, self.held, self.compared) if c)]

    @property
    def costs(self) -> dict[str, Any]:
        """Returns the costs as columns of a table, with the cells that they come from."""
        return {
            "tokens_per_s": self.speed,
            "peak_bytes": self.peak,
            "relative_error": _metric(self.compared, "relative_error"),
            "score_cell": ids(self.scored),
            "speed_cell": ids([self.timed]),
            "memory_cell": ids([self.held]),
            "fidelity_cell": ids([self.compared]),
        }

    def speeds(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Returns `count` speeds that agree with the samples of the time."""
        visits = self.timed.visited() if self.timed else []
        if not self.speed or not sure(visits):
            return np.full(count, self.speed or np.nan)
        return self.speed * self.timed.metric("time_s.median") / draws(visits, rng, count)


def record(
    series: Series,
    groups: Iterable[TaskGroup],
    speed: Point,
    memory: Point | None,
    fidelity: Iterable[Cell],
) -> Record | None:
    """Joins the cells of a series. Returns None for a variant that was skipped on every task."""
    picked = [g.select([series])[0].cells for g in groups]
    scored = tuple(c for cells in picked for c in cells)
    if all(c.status == "skipped" for c in scored):
        return None
    timed, other = speed.cells.get(series.key), _other_parameters(series, speed)
    found = mean_score([score(cells) for cells in picked])
    if found is None:
        status = next((c.status for c in scored if c.status in FAILURES), "ok")
    else:
        status = timed.status if timed else f"cost at {other} alone" if other else "not timed"
    return Record(
        series,
        found,
        scored,
        timed,
        memory.cells.get(series.key) if memory else None,
        _compared(series, speed, fidelity),
        status,
        other,
    )


def mean_score(scores: list[Score | None]) -> Score | None:
    """Returns the mean over tasks, with the interval that follows from theirs, or None where a task
    has no score."""
    known = [s for s in scores if s]
    if not known or len(known) < len(scores):
        return None
    if len(known) == 1:
        return known[0]
    halves = [s.half for s in known if s.half is not None]
    half = float(np.sqrt(np.sum(np.square(halves)))) / len(known)
    whole = half if len(halves) == len(known) else None
    return replace(known[0], mean=float(np.mean([s.mean for s in known])), half=whole, seeds=())


def _other_parameters(series: Series, point: Point) -> str:
    """Returns `features=256`: the parameters of the only cost of the variant, where they are not
    those of the score, so that the two make no record."""
    costs = {c.params for c in point.others if c.variant == series.variant}
    if series.key in point.cells or len(costs) != 1:
        return ""
    own, other = dict(without_settings(series.params)), dict(costs.pop())
    differ = sorted(k for k in own.keys() | other.keys() if own.get(k) != other.get(k))
    return ", ".join(f"{k}={other.get(k)}" for k in differ)


def shape_difference(scored: Iterable[Cell], point: Point) -> str:
    """Returns `scores at length 64, 2 heads of 32; costs at length 128, 2 heads of 64`, or nothing
    where the two are of one shape."""
    scores = {_shape(c, c.training, c.training.get("width")) for c in scored}
    axes = point.axes
    wide = (axes.get("heads") or 0) * (axes.get("head_dim") or 0)
    cost = _shape(next(iter(point.cells.values())), axes, wide)
    if scores <= {cost}:
        return ""
    return f"scores at {' / '.join(sorted(scores))}; costs at {cost}"


def _shape(cell: Cell, at: dict[str, Any], width: Any) -> str:
    """`at` names heads and kv_heads."""
    told = [f"length {length_text(cell.length)}"] if cell.length else []
    heads, shared = at.get("heads"), at.get("kv_heads") or at.get("heads")
    if isinstance(heads, int) and isinstance(width, int) and heads > 0 and width > 0:
        told.append(f"{heads} head{'s' if heads > 1 else ''} of {width // heads}")
        if shared != heads:
            told.append(f"kv_heads {shared}")
    return ", ".join(told)


def _metric(cell: Cell | None, name: str) -> float | None:
    return cell.metric(name) if cell and cell.ok else None


def _compared(series: Series, speed: Point, cells: Iterable[Cell]) -> Cell | None:
    """Returns the fidelity at the point's length and contract, on random inputs of scale 1."""
    at = speed.axes
    wanted = {"length": at.get("length"), "heads": at.get("heads"), "head_dim": at.get("head_dim")}
    for cell in cells:
        same = all(cell.axes.get(name) == value for name, value in wanted.items())
        plain = cell.axes.get("input", "random") == "random"
        scale = float(cell.axes.get("input_scale", 1))
        mine = (cell.variant, cell.params) == (series.variant, without_settings(series.params))
        causal = contract(cell) == ("causal" if at.get("causal") else "not causal")
        if mine and same and plain and causal and scale == 1:
            return cell
    return None
