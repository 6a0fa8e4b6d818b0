"""Times as ratios to exact attention's on the same machine in the same run, the only times that machines may share.

A time is the mean of the logarithms of its visits' medians, with the variance between visits, steadied by the run's other cells; the ratio's degrees
of freedom are Satterthwaite's (1946): the rule of `attnbench compare` (harness/compare/times.cc). A time of a single visit gives a ratio without an
interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ..plots.layout.caption import Floors
from ..plots.rows.learned import EXACT
from ..plots.rows.read import Cell, Params, canonical
from ..plots.rows.settings import marks_of
from .figures import Figure, Found, Group, groups_of
from .machines import Fleet, Measured, Place, version_of
from .variances import Variance, degrees_of_sum, steadied


class LogTime(NamedTuple):
    mean: float
    of_mean: Variance


def ratios(fleet: Fleet) -> list[Group]:
    """The natural logarithm of each variant's time over exact attention's, by place and machine. Places without exact attention beside them in the
    run are left out: `without_exact` names them."""
    return groups_of(_ratios(fleet), fleet)


def beside_exact(fleet: Fleet, measure: str) -> list[tuple[Measured, Measured]]:
    """Each ok cell of the measure with that of exact attention in the same run on the same axes."""
    exact = {(m.machine, m.run, m.place.around): m for m in fleet.of(measure) if m.cell.ok and is_exact(m, fleet)}
    pairs = []
    for one in fleet.of(measure):
        rival = exact.get((one.machine, one.run, one.place.around))
        if one.cell.ok and rival and not is_exact(one, fleet):
            pairs.append((one, rival))
    return pairs


def without_exact(fleet: Fleet, measure: str) -> list[tuple[int, Place]]:
    """Machines and places that have a figure, and in no run one of exact attention beside it."""
    paired = {(one.machine, one.place) for one, _ in beside_exact(fleet, measure)}
    alone = ((m.machine, m.place) for m in fleet.of(measure) if m.cell.ok and not is_exact(m, fleet))
    return [one for one in dict.fromkeys(alone) if one not in paired]


def is_exact(measured: Measured, fleet: Fleet) -> bool:
    """Whether the cell is exact attention with the parameters that the run calls its defaults. Older rows name none: there it is the tiled kernel."""
    return measured.cell.variant == EXACT and measured.cell.params == default_of_exact(fleet, measured.run)


def default_of_exact(fleet: Fleet, run: str) -> Params:
    named: dict[str, Any] = next((v for v in fleet.heads[run].get("variants") or [] if v.get("name") == EXACT), {})
    return canonical(named.get("params", {"kernel": "tiled"}))


def difference(one: LogTime, rival: LogTime) -> tuple[float, float, float]:
    """Of the logarithms: one less the other, its standard error, its degrees of freedom; NaN and 0 where one is of a single visit."""
    variances = [one.of_mean, rival.of_mean]
    if not all(v.degrees > 0 for v in variances):
        return one.mean - rival.mean, math.nan, 0.0
    return one.mean - rival.mean, math.sqrt(sum(v.value for v in variances)), degrees_of_sum(variances)


def log_times(cells: Iterable[Cell]) -> list[LogTime]:
    """Of the ok speed cells of one run. The variance of a single visit has no degrees of freedom."""
    cells = list(cells)
    logs = [np.log([median(visit) for visit in cell.visited() if visit]) for cell in cells]
    means = [float(np.mean(own)) if len(own) else math.log(cell.metric("time_s.median") or math.nan) for own, cell in zip(logs, cells, strict=True)]
    own = [Variance(float(np.var(log, ddof=1)), len(log) - 1) if len(log) > 1 else Variance(math.nan, 0) for log in logs]
    told = steadied(own)
    return [LogTime(mean, Variance(v.value / max(len(log), 1), v.degrees)) for mean, v, log in zip(means, told, logs, strict=True)]


def _ratios(fleet: Fleet) -> Iterable[Found]:
    floors = Floors(list(fleet.heads.values()))
    by_run: dict[tuple[int, str], list[Measured]] = {}
    for one in fleet.of("speed"):
        if one.cell.ok:
            by_run.setdefault((one.machine, one.run), []).append(one)
    times: dict[tuple[tuple[int, str], str], LogTime] = {}
    for run, own in by_run.items():
        times.update({(run, m.cell.id): time for m, time in zip(own, log_times(m.cell for m in own), strict=True)})
    for one, rival in beside_exact(fleet, "speed"):
        added, taken = times[(one.machine, one.run), one.cell.id], times[(rival.machine, rival.run), rival.cell.id]
        figure = Figure(
            one.machine,
            *difference(added, taken),
            marks_of((one.cell, rival.cell)),
            f"{one.cell.id} {rival.cell.id}",
            floor=math.log1p(floors.share(one.cell) or 0.0),
        )
        yield Found(one.place, version_of(one, rival), one.run, figure)
