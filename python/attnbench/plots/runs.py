"""Cells of several runs: a point measured twice is one point, or two series told apart by run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from .cell import Cell

MOMENT = ("load_before", "calibration")  # differ whenever the same machine runs the same program
RUN = "run"  # the parameter that tells runs apart
OF_RUN = "@"  # between a cell's own id and the place of its run, where runs are told apart
Loaded = list[tuple[Path, dict[str, Any], list[Cell]]]


def merge(loaded: Loaded) -> list[Cell]:
    """The cells of all files in order. Of a cell measured again by the same program on the same
    machine the later file's stands; any other second measurement of a point is kept, and then all
    cells carry the name of their run as a parameter, see _names."""
    kept: dict[tuple[Any, ...], tuple[int, Cell]] = {}
    for index, (_, head, cells) in enumerate(loaded):
        setup = _setup(head)
        for cell in cells:
            key = (_point(cell), cell.id, setup)
            kept.pop(key, None)
            kept[key] = index, cell
    runs: dict[Any, set[int]] = {}
    for (point, _, _), (index, _) in kept.items():
        runs.setdefault(point, set()).add(index)
    repeated = [of for of in runs.values() if len(of) > 1]
    if not repeated:
        return [cell for _, cell in kept.values()]
    names = _names(loaded, repeated)
    return [
        replace(cell, id=f"{cell.id}{OF_RUN}{index}", params=(*cell.params, (RUN, names[index])))
        for index, cell in kept.values()
    ]


def run_of(params: tuple[tuple[str, str], ...]) -> str | None:
    return dict(params).get(RUN)


def _setup(head: dict[str, Any]) -> str:
    """Program and machine, in one string that compares."""
    environment = head.get("environment") or {}
    return json.dumps({k: v for k, v in environment.items() if k not in MOMENT}, sort_keys=True)


def _point(cell: Cell) -> tuple[Any, ...]:
    axes = {k: v for k, v in cell.axes.items() if k != "repetitions"}
    where = json.dumps([axes, cell.training], sort_keys=True)
    return cell.measure, cell.variant, cell.params, cell.task, cell.task_params, where


def _names(loaded: Loaded, repeated: list[set[int]]) -> list[str]:
    """The name of each run: its file's without the ending. Runs of one file share it where the same
    program and machine measured them and no point has cells of two; else they are numbered."""
    of_file: dict[tuple[Path, str], list[int]] = {}
    for index, (file, head, _) in enumerate(loaded):
        of_file.setdefault((file, _setup(head)), []).append(index)
    groups: list[list[int]] = []
    for own in of_file.values():
        mixed = any(len(of.intersection(own)) > 1 for of in repeated)
        groups += [[index] for index in own] if mixed else [own]
    stems = [loaded[group[0]][0].stem for group in groups]
    names = [""] * len(loaded)
    for number, (group, stem) in enumerate(zip(groups, stems, strict=True), 1):
        for index in group:
            names[index] = stem if stems.count(stem) == 1 else f"{stem} {number}"
    return names
