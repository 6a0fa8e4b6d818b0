"""What was measured of one variant at one shape, joined across measures: records, the operating
point that stands beside an accuracy, and the Pareto front of scores and speeds with its
uncertainty."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .crossing import DRAWS, central, draws, sure
from .read import FAILURES, Cell, Params, ids
from .scores import Score, TaskGroup, score
from .settings import SCOPES, contract, decodes, dtype_of, mode_of, scope_of, scope_text, trained_width, unfinished, without_settings
from .style import Series
from .units import length_text

Context = tuple[Any, ...]


@dataclass(frozen=True)
class Point:
    """A place on the axes, the cell of each series there, and cells of other parameters."""

    context: Context
    cells: dict[tuple[str, Params], Cell]
    others: tuple[Cell, ...] = ()

    @property
    def axes(self) -> dict[str, Any]:
        return next(iter(self.cells.values())).axes

    def text(self) -> str:
        """Returns `attention alone, forward, length 16k, not causal`."""
        scope, mode, causal, length = self.context[:4]
        return (
            f"{scope_text(scope)}, {mode}, length {length_text(length)}, "
            f"{'causal' if causal else 'not causal'}"
        )


def context_of(cell: Cell) -> Context:
    axes = cell.axes
    return (
        scope_of(cell),
        mode_of(cell),
        bool(axes.get("causal")),
        cell.length or 0,
        *(axes.get(k) or 0 for k in ("batch", "heads", "head_dim")),
        axes.get("kv_heads") or axes.get("heads") or 0,  # the rank prefers heads of their own
        dtype_of(cell) == "float32",  # and float32
        -(axes.get("layers") or 2),  # and shallow models
        str(axes.get("equal") or "width"),  # of layers: what they have in common
    )


def operating_point(
    cells: Iterable[Cell],
    series: list[Series],
    *,
    causal: bool | None = None,
    near: int | None = None,
    also: Collection[Context] = (),
) -> Point | None:
    """Returns the context in which most series have a value. Of equals it prefers one of `also`,
    where another measure was taken, then the widest scope, the length nearest to `near`, a training
    step, the longest length."""
    groups: dict[Context, list[Cell]] = {}
    for cell in cells:
        if decodes(cell):  # one token's time says nothing of a whole sequence's
            continue
        if cell.status != "skipped" and (causal is None or bool(cell.axes.get("causal")) == causal):
            groups.setdefault(context_of(cell), []).append(cell)
    best: tuple[Any, Context] | None = None
    for context, members in groups.items():
        covered = sum(m.ok for s in series if (m := _match(s, members)))
        scope, mode, _, length = context[:4]
        rank = (
            covered,
            context in also,
            SCOPES.index(scope) if scope in SCOPES else -1,
            -abs(math.log(length / near)) if near and length else 0.0,
            mode == "train",
            length,
            context[4:],
        )
        if covered and (best is None or rank > best[0]):
            best = rank, context
    return point_at(best[1], groups[best[1]], series) if best else None


def point_at(context: Context, cells: Iterable[Cell], series: list[Series]) -> Point | None:
    """Returns the point of this context, or None where no series was measured there."""
    members = [c for c in cells if context_of(c) == context and c.status != "skipped"]
    matched = {s.key: m for s in series if (m := _match(s, members))}
    taken = {c.id for c in matched.values()}
    others = tuple(c for c in members if c.ok and c.id not in taken)
    return Point(context, matched, others) if matched else None


def _match(series: Series, cells: list[Cell]) -> Cell | None:
    """Returns the cell with the series' parameters."""
    wanted = series.variant, without_settings(series.params)
    return next((c for c in reversed(cells) if (c.variant, c.params) == wanted), None)


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
    def is_unfinished(self) -> bool:
        return unfinished(self.scored)

    @property
    def is_ranked(self) -> bool:
        """Returns whether it may stand on a front, or be better than another."""
        return self.whole and not self.is_unfinished

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
    cut = any(s.is_unfinished for s in known)
    return replace(known[0], mean=float(np.mean([s.mean for s in known])), half=whole, seeds=(), is_unfinished=cut)


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
    scores = {_shape(c, c.training, trained_width(c)) for c in scored}
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


SEED = 1
LOOK = {"color": "#5a5a5a", "linestyle": "-", "linewidth": 0.9}
BAND = {"color": "#9a9a9a", "alpha": 0.22, "linewidth": 0}


@dataclass(frozen=True)
class Front:
    """The best score among the variants at least as fast as each of `speeds`."""

    speeds: np.ndarray
    best: np.ndarray
    low: np.ndarray  # of the middle 95 % of the draws
    high: np.ndarray
    chance: dict[Any, float]  # by key of the series: share of the draws that hold it on the front


def pareto_front(records: Sequence[Record], *, fewer_is_better: bool) -> Front | None:
    """Returns None unless two records are whole and their trainings ended by themselves. A variant is
    on the front if none is better in score or speed and at least as good in the other."""
    whole = [r for r in records if r.is_ranked]
    if len(whole) < 2:
        return None
    rng = np.random.default_rng(SEED)
    sign = -1.0 if fewer_is_better else 1.0
    point = np.array([[r.speed for r in whole]]), sign * np.array([[r.mean for r in whole]])
    drawn = (
        np.stack([r.speeds(rng, DRAWS) for r in whole], axis=1),
        sign * np.stack([_scores(r.score, rng) for r in whole], axis=1),
    )
    around = np.geomspace(point[0].min() / 4, point[0].max() * 4, 400)
    speeds = np.union1d(around, point[0])
    middle = _best(*point, speeds)[0]
    low, high = central(_best(*drawn, speeds))
    chance = dict(zip((r.series.key for r in whole), _on_front(*drawn).mean(axis=0)))
    low, high = (low, high) if sign > 0 else (high, low)
    return Front(speeds, sign * middle, sign * low, sign * high, chance)


def _scores(score: Score, rng: np.random.Generator) -> np.ndarray:
    """Returns scores that agree with the interval: Student's t over the seeds, or normal."""
    if score.half is None:
        return np.full(DRAWS, score.mean)
    degrees = len(score.seeds) - 1
    if degrees > 0:
        reach = score.half / float(stdtrit(degrees, 0.975))
        return score.mean + reach * rng.standard_t(degrees, DRAWS)
    return score.mean + score.half / 1.96 * rng.standard_normal(DRAWS)


def _best(speeds: np.ndarray, scores: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Returns [draw, place]: the best score of what is at least as fast; -inf where nothing is."""
    order = np.argsort(-speeds, axis=1)
    fastest = np.take_along_axis(speeds, order, axis=1)
    best = np.maximum.accumulate(np.take_along_axis(scores, order, axis=1), axis=1)
    out = np.full((len(speeds), len(at)), -np.inf)
    for column in range(speeds.shape[1]):
        reached = fastest[:, column, None] >= at[None, :]
        out = np.where(reached, best[:, column, None], out)
    return out


def _on_front(speeds: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Returns [draw, variant]: whether no other is better in one and at least as good in both."""
    faster = speeds[:, None, :] >= speeds[:, :, None]
    better = scores[:, None, :] >= scores[:, :, None]
    strictly = (speeds[:, None, :] > speeds[:, :, None]) | (scores[:, None, :] > scores[:, :, None])
    return ~(faster & better & strictly).any(axis=2)
