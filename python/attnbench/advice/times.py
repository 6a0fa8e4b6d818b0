"""What a variant's call takes at a length, on each machine: measured there, or between two measured lengths and then with
how far the curve may bend. Never past the lengths that were measured."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from attnbench.plots.rows.read import Cell
from attnbench.pooling.machines import Version

from .deciding import Estimate, combined
from .evidence import EXACT, Evidence, Key, Spot, key_of, shape_key

# The greatest slope of log time over log length that is thought possible between two lengths: the square, and caches that
# are left. The least is 0.
STEEPEST = 2.5
CHANGE = 2.0


@dataclass(frozen=True)
class Timed:
    """The logarithm of a time in seconds, and the cells that it comes from."""

    estimate: Estimate
    lengths: tuple[int, ...]  # one, or the two between which it lies
    cells: tuple[Cell, ...]


ByLength = dict[int, tuple[Estimate, Cell]]  # the logarithm of a time in seconds, and its cell


def neighbours(lengths: Iterable[int], length: int) -> tuple[int, int, float] | None:
    """Returns the measured lengths next to one that was not measured, and its place between their logarithms, from 0 to 1; None
    outside of what was measured."""
    known = list(lengths)
    left = max((n for n in known if n < length), default=None)
    right = min((n for n in known if n > length), default=None)
    if left is None or right is None:
        return None
    return left, right, math.log(length / left) / math.log(right / left)


def at_length(measured: ByLength, length: int) -> Timed | None:
    """Returns the time at a length, between its neighbours where it was not measured; None outside of what was."""
    if length in measured:
        estimate, cell = measured[length]
        return Timed(estimate, (length,), (cell,))
    found = neighbours(measured, length)
    if found is None:
        return None
    left, right, share = found
    one, other = measured[left][0], measured[right][0]
    error, freedom = combined([((1 - share) * one.error, one.freedom), (share * other.error, other.freedom)])
    value = (1 - share) * one.value + share * other.value
    bend = _bend({n: e.value for n, (e, _) in measured.items()}, left, right, length)
    return Timed(Estimate(value, error, freedom, bend), (left, right), (measured[left][1], measured[right][1]))


def _bend(logs: dict[int, float], left: int, right: int, length: int) -> float:
    """Returns how far the logarithm of a time may lie from the chord: the greater of two bounds. Between two lengths the slope of
    a sum of powers lies between the slopes of the neighbours on either side, or, where there is none, 0 and STEEPEST. And
    the chord's error is f''/2 · (x - a)(b - x), with f'' from these neighbours and CHANGE times that, since f'' changes."""
    x = {n: math.log(n) for n in logs}
    at, lengths = math.log(length), sorted(logs)
    i = lengths.index(left)
    own = _slope(x, logs, left, right)
    before = _slope(x, logs, lengths[i - 1], left) if i else 0.0
    after = _slope(x, logs, right, lengths[i + 2]) if i + 2 < len(lengths) else STEEPEST
    flat, steep = min(own, before, after), max(own, before, after)
    chord = logs[left] + own * (at - x[left])
    least = max(logs[left] + flat * (at - x[left]), logs[right] - steep * (x[right] - at))
    most = min(logs[left] + steep * (at - x[left]), logs[right] - flat * (x[right] - at))
    second = [abs(own - before) / (x[right] - x[lengths[i - 1]])] if i else []
    second += [abs(after - own) / (x[lengths[i + 2]] - x[left])] if i + 2 < len(lengths) else []
    curve = CHANGE * max(second, default=0.0) * (at - x[left]) * (x[right] - at)
    return max(chord - least, most - chord, curve)


def _slope(x: dict[int, float], logs: dict[int, float], left: int, right: int) -> float:
    return (logs[right] - logs[left]) / (x[right] - x[left])


@dataclass(frozen=True)
class Times:
    """Times of one shape at one length: by spot, of each variant that has one there."""

    shape: str
    axes: dict[str, Any]
    at: dict[Spot, dict[Key, Timed]]

    @property
    def machines(self) -> list[str]:
        return list(dict.fromkeys(spot.machine for spot in self.at))

    def ratios(self, key: Key, other: Key, evidence: Evidence) -> dict[str, Estimate]:
        """Returns by machine the logarithm of one variant's time over another's, such as exact attention's. Of several versions
        of the code or the protocol that which most machines have counts, of equals the one measured last; of several runs on
        a machine the one that knows the ratio best: the least bend, then the latest."""
        found: dict[Version, dict[str, tuple[float, int, Estimate]]] = {}
        for spot, timed in self.at.items():
            if key not in timed or other not in timed:
                continue
            ratio = timed[key].estimate.minus(timed[other].estimate)
            version = evidence.version(spot, (*timed[key].cells, *timed[other].cells))
            own = found.setdefault(version, {})
            held = own.get(spot.machine)
            if held is None or (ratio.bend, -spot.run) < (held[0], -held[1]):
                own[spot.machine] = ratio.bend, spot.run, ratio
        if not found:
            return {}
        chosen = max(found.values(), key=lambda own: (len(own), max(run for _, run, _ in own.values())))
        return {machine: ratio for machine, (_, _, ratio) in chosen.items()}


@dataclass(frozen=True)
class Clock:
    """All times of a mode and a mask that count, and what did not count."""

    cells: dict[str, dict[Spot, dict[Key, ByLength]]]  # by shape
    disturbed: tuple[Cell, ...]
    single: tuple[Cell, ...]  # of one visit, which does not tell how another would differ

    @property
    def lengths(self) -> list[int]:
        """Returns every length at which exact attention has a time in some shape."""
        return sorted(
            {n for spots in self.cells.values() for by_key in spots.values() for key, at in by_key.items()
             if key[0] == EXACT for n in at}
        )  # fmt: skip

    def at_length(self, length: int, exact: Key) -> Times | None:
        """Returns the times of the shape in which most variants have a ratio to exact attention at this length; of equals
        the one with more machines, then the first by its name. None where no shape has any."""
        found = [t for shape in sorted(self.cells) if (t := self._of_shape(shape, length)) is not None]
        useful = [t for t in found if any(exact in timed and len(timed) > 1 for timed in t.at.values())]
        return max(useful, key=lambda t: (_compared(t, exact), len(t.machines)), default=None)

    def _of_shape(self, shape: str, length: int) -> Times | None:
        at: dict[Spot, dict[Key, Timed]] = {}
        for spot, by_key in self.cells[shape].items():
            for key, by_length in by_key.items():
                timed = at_length(by_length, length)
                if timed is not None:
                    at.setdefault(spot, {})[key] = timed
        return Times(shape, json.loads(shape), at) if at else None


def _compared(times: Times, exact: Key) -> int:
    return len({key for timed in times.at.values() if exact in timed for key in timed})


def clock(evidence: Evidence, mode: str, causal: bool) -> Clock:
    """Gathers the times that count: of cells that ran in several visits, were not disturbed, and whose checks are not red."""
    cells: dict[str, dict[Spot, dict[Key, ByLength]]] = {}
    disturbed, single = [], []
    for cell in evidence.of("speed", mode, causal):
        if not cell.ok:
            continue
        if cell.noisy:
            disturbed.append(cell)
            continue
        time = evidence.log_time(cell)
        if time is None:
            single.append(cell)
            continue
        by_key = cells.setdefault(shape_key(cell), {}).setdefault(evidence.spot(cell), {})
        by_key.setdefault(key_of(cell), {})[cell.length or 0] = time, cell
    return Clock(cells, tuple(disturbed), tuple(single))
