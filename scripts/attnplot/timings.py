"""The times of a panel's series against those of exact attention: ratios and crossings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .crossing import DRAWS, SEED, Crossing, Samples, find_crossing
from .curves import by_length
from .faster import Interval, faster_from
from .panels import Panel
from .rows import Cell
from .runs import run_of
from .style import Series, Styles
from .visits import draws, sure


@dataclass(frozen=True)
class Timing:
    """A series of one panel over length."""

    series: Series
    medians: dict[int, float]
    samples: Samples
    intervals: dict[int, Interval]


def timing(series: Series) -> Timing:
    cells = by_length(series)
    return Timing(
        series,
        {n: float(np.median([_median(c) for c in own])) for n, own in cells.items()},
        {n: [v for c in own for v in c.visited()] for n, own in cells.items()},
        {n: _interval(own) for n, own in cells.items()},
    )


def against_exact(series: list[Series], styles: Styles) -> Iterator[tuple[Timing, Timing]]:
    """Each series with exact attention of its own run."""
    timed = {s.key: timing(s) for s in series}
    for s in series:
        full = styles.baseline(series, run_of(s.params))
        if full is not None:
            yield timed[s.key], timed[full.key]


@dataclass(frozen=True)
class Verdict:
    """A series against exact attention."""

    series: Series
    faster_from: str  # as the tables say
    crossing: Crossing


def verdicts(panel: Panel, series: list[Series], styles: Styles) -> list[Verdict]:
    """Of all but exact attention itself, which has no crossing."""
    out = []
    for own, full in against_exact(series, styles):
        if own.series.variant == full.series.variant:
            continue
        found = find_crossing(own.samples, full.samples, (own.medians, full.medians))
        if found is not None:
            said = faster_from(panel.lengths, own.intervals, full.intervals)
            out.append(Verdict(own.series, said, found))
    return out


def ratio(own: Timing, full: Timing, length: int) -> tuple[float, float, float] | None:
    """The time as a multiple of exact attention's, with its 95 % interval, which is the ratio
    itself where there are too few repetitions or the two are one."""
    if length not in own.medians or length not in full.medians:
        return None
    point = own.medians[length] / full.medians[length]
    pair = own.samples[length], full.samples[length]
    if own is full or not all(sure(samples) for samples in pair):
        return point, point, point
    rng = np.random.default_rng(SEED)
    drawn = np.sort(draws(pair[0], rng, DRAWS) / draws(pair[1], rng, DRAWS))
    low, high = float(drawn[int(0.025 * DRAWS)]), float(drawn[int(0.975 * DRAWS) - 1])
    return point, min(low, point), max(high, point)


def _median(cell: Cell) -> float:
    return cell.metric("time_s.median") or np.nan


def _interval(cells: list[Cell]) -> Interval:
    """Over all seeds."""
    low, high = (
        [cell.metric(f"time_s.{end}") or _median(cell) for cell in cells]
        for end in ("ci_low", "ci_high")
    )
    return min(low), max(high)
