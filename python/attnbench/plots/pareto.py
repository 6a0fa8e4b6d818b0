"""The Pareto front of scores and speeds, with its uncertainty: which variants no other beats in
both, and how good a score may be at each speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .joined import Record
from .tasks import Score
from .visits import DRAWS, central

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
    """Returns None unless two records are whole. A variant is on the front if none is better in
    score or speed and at least as good in the other."""
    whole = [r for r in records if r.whole]
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
