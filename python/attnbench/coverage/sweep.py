"""The sweep file of chosen cells, which `attnbench run` accepts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..plots.rows.settings import spec_text
from .asked import REPEATED, Unit
from .worth import Candidate

# Axes of a training that its task and the settings decide.
OF_TRAINING = ("seed", "threads", "equal")


@dataclass(frozen=True)
class Block:
    """A [[sweep]] table without its variants and lengths."""

    measure: str
    task: str
    axes: str  # all but the length and what is joined, as JSON
    training: str
    tuning: str
    tune_by: str


def value_text(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return json.dumps(value)


def table_text(values: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{name} = {value_text(value)}" for name, value in values.items()) + " }"


def spec_of(name: str, params: dict[str, Any], defaults: dict[str, Any]) -> str:
    """`linformer[rank=16]`: the parameters that are not the default."""
    return spec_text(name, [(k, _grammar(v)) for k, v in params.items() if k not in defaults or defaults[k] != v])


def _grammar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def sweep_text(
    chosen: Sequence[Candidate], defaults: dict[str, dict[str, Any]], timeout: str | None, name: str = "coverage"
) -> str:
    """The text of the file. `defaults` are those of the parameters of each variant."""
    joined: dict[Block, dict[tuple[str, ...], list[Any]]] = {}
    specs: dict[tuple[Block, Any], list[str]] = {}
    for candidate in chosen:
        block, length = _block_of(candidate)
        spec = spec_of(candidate.unit.variant, candidate.unit.raw_params, defaults.get(candidate.unit.variant, {}))
        held = specs.setdefault((block, length), [])
        if spec not in held:
            held.append(spec)
    order = {name: i for i, name in enumerate(defaults)}
    for (block, length), held in specs.items():
        # In the order of the catalogue, so that lengths with the same variants share a table.
        held.sort(key=lambda spec: (order.get(spec.partition("[")[0], len(order)), spec))
        joined.setdefault(block, {}).setdefault(tuple(held), []).append(length)
    lines = [f"name = {json.dumps(name)}", 'summary = "cells that attnbench coverage chose"']
    if timeout:
        lines.append(f"timeout = {json.dumps(timeout)}")
    for block, by_variants in joined.items():
        for variants, lengths in by_variants.items():
            lines += ["", "[[sweep]]", f"measure = {json.dumps(block.measure)}", f"variants = {value_text(list(variants))}"]
            if block.task:
                lines.append(f"tasks = {value_text([block.task])}")
            axes = json.loads(block.axes)
            known = sorted(length for length in lengths if length is not None)
            if known:
                axes = {"length": known, **axes}
            lines.append(f"axes = {table_text(axes)}")
            for key in ("training", "tuning"):
                if values := json.loads(getattr(block, key)):
                    lines.append(f"{key} = {table_text(values)}")
            if block.tune_by:
                lines.append(f"tune_by = {json.dumps(block.tune_by)}")
    return "\n".join(lines) + "\n"


def _block_of(candidate: Candidate) -> tuple[Block, Any]:
    unit = candidate.unit
    axes = {k: v for k, v in unit.axes.items() if k not in REPEATED}
    if unit.training and unit.setting.measure == "accuracy":
        axes = {k: v for k, v in axes.items() if k in OF_TRAINING}
    length = axes.pop("length", None)
    if "seed" in unit.axes:
        axes["seed"] = list(candidate.seeds)
    if "repetitions" in unit.axes:
        axes["repetitions"] = candidate.repetitions or unit.axes["repetitions"]
    tuning = _tuning_of(candidate)
    training = {k: v for k, v in unit.training.items() if k not in unit.tuned}
    block = Block(
        unit.setting.measure,
        _task_of(unit),
        json.dumps(axes),
        json.dumps(training),
        json.dumps(tuning),
        "halving" if unit.is_halved and candidate.is_whole else "",
    )
    return block, length


def _tuning_of(candidate: Candidate) -> dict[str, Any]:
    """The choices of a search; of one that is done, the choice that won, so that the new seeds join its rows."""
    if not candidate.unit.tuned:
        return {}
    if candidate.is_whole:
        return candidate.unit.choices
    return {name: [value] for name, value in candidate.choice}


def _task_of(unit: Unit) -> str:
    """With every parameter, so that no preset matters. An empty text is the default, and cannot be written."""
    if not unit.raw_task:
        return ""
    return spec_of(unit.raw_task["name"], {k: v for k, v in unit.raw_task["params"].items() if v != ""}, {})
