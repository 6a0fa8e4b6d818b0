"""Settings of training that differ between cells: told like parameters, so that none are mixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .rows import Cell, Params

SETTING = "training."  # before the name of a setting among a cell's parameters


def told_apart(cells: list[Cell], always: tuple[str, ...] = ()) -> list[Cell]:
    """Cells that differ in a setting and in nothing else drawn carry it as a parameter, all cells
    those of `always` that differ anywhere. What was tuned is each variant's own choice."""
    own, shared = _values(cells, _series), _values(cells, lambda _: None).get(None, {})
    out = []
    for cell in cells:
        told = tuple(
            (SETTING + name, value)
            for name, value in sorted(_fixed(cell).items())
            if len(own[_series(cell)][name]) > 1 or (name in always and len(shared[name]) > 1)
        )
        out.append(replace(cell, params=(*cell.params, *told)) if told else cell)
    return out


def differing(cells: list[Cell]) -> list[str]:
    """Settings that were not tuned and differ between cells of one task."""
    values = _values(cells, _task)
    return sorted({name for of in values.values() for name, seen in of.items() if len(seen) > 1})


def without_settings(params: Params) -> Params:
    return tuple((k, v) for k, v in params if not k.startswith(SETTING))


def shown(key: str) -> str:
    return key.removeprefix(SETTING).replace("_", " ") if key.startswith(SETTING) else key


def _fixed(cell: Cell) -> dict[str, str]:
    return {
        k: v if isinstance(v, str) else json.dumps(v)
        for k, v in cell.training.items()
        if k not in cell.tuned
    }


def _values(cells: list[Cell], key: Callable[[Cell], Any]) -> dict[Any, dict[str, set[str]]]:
    """What each setting is among the cells of one key."""
    out: dict[Any, dict[str, set[str]]] = {}
    for cell in cells:
        for name, value in _fixed(cell).items():
            out.setdefault(key(cell), {}).setdefault(name, set()).add(value)
    return out


def _task(cell: Cell) -> Any:
    return cell.task, cell.task_params


def _series(cell: Cell) -> Any:
    return *_task(cell), cell.variant, cell.params
