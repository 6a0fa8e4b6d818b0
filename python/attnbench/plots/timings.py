"""The times of a panel's series against those of exact attention: ratios and crossings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .crossing import SEED, Crossing, Samples, find_crossing
from .faster import Floor, Interval, faster_from
from .floors import floors_of
from .panels import Panel
from .quantity import by_length
from .rows import Rows
from .runs import run_of
from .searched import searched_from, searches_of
from .speed import TIME
from .style import Series, Styles
from .visits import central, draws, sure


@dataclass(frozen=True)
class Timing:
    """The times of one series over length, in one panel."""

    series: Series
    medians: dict[int, float]
    samples: Samples
    intervals: dict[int, Interval]


def timing(series: Series) -> Timing:
    samples = {n: [v for c in own for v in c.visited()] for n, own in by_length(series).items()}
    return Timing(series, TIME.medians(series), samples, TIME.intervals(series))


def against_exact(series: list[Series], styles: Styles) -> Iterator[tuple[Timing, Timing]]:
    """Pairs each series with exact attention of the same run."""
    timed = {s.key: timing(s) for s in series}
    for s in series:
        full = styles.baseline(series, run_of(s.params))
        if full is not None:
            yield timed[s.key], timed[full.key]


@dataclass(frozen=True)
class Verdict:
    """A series compared with exact attention."""

    series: Series
    faster_from: str  # as the tables say
    crossing: Crossing
    baseline: Series
    is_searched: bool = False  # `attnbench run --find crossing` found it


def verdicts(
    panel: Panel, series: list[Series], styles: Styles, rows: Rows
) -> list[Verdict]:
    """Returns a verdict on each series except exact attention, which cannot cross itself. Where a
    search compared the two, the verdict is the search's."""
    out = []
    shares, searches = floors_of(rows).shares(panel.cells), searches_of(rows)
    for own, full in against_exact(series, styles):
        if own.series.variant == full.series.variant:
            continue
        searched = searches.crossing(own.series.cells, full.series.cells)
        if searched is not None:
            said = searched_from(searched)
            out.append(Verdict(own.series, said, searched, full.series, is_searched=True))
            continue
        found = find_crossing(own.samples, full.samples, (own.medians, full.medians))
        if found is not None:
            floor = Floor(shares, own.medians, full.medians)
            said = faster_from(panel.lengths, own.intervals, full.intervals, floor)
            out.append(Verdict(own.series, said, found, full.series))
    return out


def ratio(own: Timing, full: Timing, length: int) -> tuple[float, float, float] | None:
    """Returns the time as a multiple of exact attention's, and its 95 % interval. The interval is
    the ratio itself where there are too few repetitions, and for exact attention."""
    if length not in own.medians or length not in full.medians:
        return None
    point = own.medians[length] / full.medians[length]
    pair = own.samples[length], full.samples[length]
    if own is full or not all(sure(samples) for samples in pair):
        return point, point, point
    rng = np.random.default_rng(SEED)
    low, high = central(draws(pair[0], rng) / draws(pair[1], rng))
    return point, min(low, point), max(high, point)
