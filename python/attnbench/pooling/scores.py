"""Memory, fidelity and scores by machine. Bytes and the distance to exact attention are the same wherever the same code runs, so that machines are
compared, not pooled; differences of scores to exact attention are pooled, each training once."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..plots.rows.settings import marks_of, unfinished, winners
from .figures import Figure, Found, Group, groups_of
from .machines import Fleet, Measured, Place, version_of
from .ratios import beside_exact, is_exact
from .seeds import EXACTLY, Scores, Seeds, together


def memory(fleet: Fleet) -> list[Group]:
    """The natural logarithm of each variant's peak of bytes over exact attention's."""
    found = []
    for one, rival in beside_exact(fleet, "memory"):
        own, other = one.cell.metric("peak_bytes"), rival.cell.metric("peak_bytes")
        if own and other:
            figure = Figure(one.machine, math.log(own / other), 0.0, EXACTLY, marks_of((one.cell, rival.cell)), f"{one.cell.id} {rival.cell.id}")
            found.append(Found(one.place, version_of(one, rival), one.run, figure))
    return groups_of(found, fleet)


def fidelity(fleet: Fleet) -> list[Group]:
    """The natural logarithm of each variant's relative error against exact attention."""
    found = []
    for one in fleet.of("fidelity"):
        error = one.cell.metric("relative_error") if one.cell.ok else None
        if error and not is_exact(one, fleet):
            figure = Figure(one.machine, math.log(error), 0.0, EXACTLY, marks_of((one.cell,)), one.cell.id)
            found.append(Found(one.place, version_of(one), one.run, figure))
    return groups_of(found, fleet)


def without_error(fleet: Fleet) -> list[tuple[int, Place]]:
    """Machines and places whose answers are exact attention's to the last bit: an error of 0 has no logarithm."""
    exact = (m for m in fleet.of("fidelity") if m.cell.ok and m.cell.metric("relative_error") == 0 and not is_exact(m, fleet))
    return list(dict.fromkeys((m.machine, m.place) for m in exact))


def differences(fleet: Fleet) -> list[Group]:
    """Each variant's score less exact attention's on the same task, over seeds: of the settings chosen on validation. Trainings that were cut off by
    their steps are left out, on either side; `cut_off` names them."""
    found = []
    for place, own, rival in _compared(fleet):
        if not unfinished(m.cell for m in (*own, *rival)):
            found.append(Found(place, version_of(*own, *rival), own[0].run, _difference(own, rival)))
    return groups_of(found, fleet)


def cut_off(fleet: Fleet) -> list[tuple[Place, int]]:
    """Places and machines whose scores are left out, since a training there was cut off."""
    return [(place, own[0].machine) for place, own, rival in _compared(fleet) if unfinished(m.cell for m in (*own, *rival))]


def _compared(fleet: Fleet) -> Iterable[tuple[Place, list[Measured], list[Measured]]]:
    """The seeds of each variant at each place of a run, with those of exact attention there."""
    by_run: dict[tuple[int, str], list[Measured]] = {}
    for one in fleet.of("accuracy"):
        by_run.setdefault((one.machine, one.run), []).append(one)
    for measured in by_run.values():
        chosen = {id(cell) for cell in winners([m.cell for m in measured])}
        places: dict[Place, list[Measured]] = {}
        for one in measured:
            if id(one.cell) in chosen and one.cell.status != "skipped":
                places.setdefault(one.place, []).append(one)
        places = {place: own for place, own in places.items() if any(m.cell.ok for m in own)}
        exact = {place.around: own for place, own in places.items() if is_exact(own[0], fleet)}
        for place, own in places.items():
            if place.around in exact and not is_exact(own[0], fleet):
                yield place, own, exact[place.around]


def _difference(own: list[Measured], rival: list[Measured]) -> Figure:
    marks = marks_of(m.cell for m in (*own, *rival))
    own, rival = ([m for m in side if m.cell.ok] for side in (own, rival))
    seeds = together([Seeds(_scores(own), _scores(rival), _error(own), _error(rival))])  # a seed that was trained twice is one
    value, error, degrees = seeds.difference
    cells = " ".join(m.cell.id for m in (*own, *rival))
    return Figure(own[0].machine, value, error, degrees, marks, cells, seeds=seeds)


def _scores(side: list[Measured]) -> Scores:
    return tuple(sorted((int(m.cell.axes.get("seed", 0)), float(m.cell.metric("test") or 0.0)) for m in side))


def _error(side: list[Measured]) -> float:
    """Over the test examples, of the mean over seeds."""
    errors = [m.cell.metric("test_stderr") for m in side]
    return math.nan if None in errors else math.hypot(*(e for e in errors if e)) / len(errors)
