"""A table of how far apart the evidence of each task lies: of `attnbench sample`, without any training."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnbench._place import program
from attnbench.plots.rows.units import markdown

SHARES = (0.5, 0.9, 0.99)  # of the examples
PRESETS = ("small", "standard")  # a task with neither is sampled at its defaults
EXAMPLES = 200
Task = dict[str, Any]


def table(sweep: Path) -> str:
    """A line a task and preset, and a task as the sweep file trains it: the distance within which the evidence of every label of an example lies."""
    listed = json.loads(_printed("list", "tasks", "--json"))["tasks"]
    lines = []
    for spec, params in settings(listed, trained(sweep)):
        sampled = _printed("sample", spec, "--split", "test", "--count", str(EXAMPLES)).splitlines()
        lines.append([f"`{spec}`", *line_of(map(json.loads, sampled), params)])
    heads = ["task", "label of a", "longest input", "examples that count", *(f"{share:.0%} of examples" for share in SHARES)]
    return markdown([*heads, "labels within a tenth of the longest input"], lines)


def trained(sweep: Path) -> list[str]:
    """The tasks of a sweep file, as it writes them."""
    return [spec for part in tomllib.loads(sweep.read_text(encoding="utf-8"))["sweep"] for spec in part.get("tasks", [])]


def settings(listed: Iterable[Task], specs: Sequence[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each task with its presets, or at its defaults, and then as in those `specs` that are none of these; and the values of the parameters."""
    for task in listed:
        defaults = {p["name"]: p["default"] for p in task["params"]}
        presets = {p["name"]: p["params"] for p in task["presets"] if p["name"] in PRESETS}
        found = {f"{task['name']}[preset={name}]": defaults | presets[name] for name in sorted(presets, key=PRESETS.index)}
        found = found or {task["name"]: defaults}
        for spec in specs:
            name, _, given = spec.partition("[")
            if name == task["name"] and spec not in found:
                params = defaults | _values(given.rstrip("]"))
                if params not in found.values():
                    found[spec] = params
        yield from found.items()


def _values(given: str) -> dict[str, Any]:
    """Of `items=8,length=64`: numbers as numbers."""
    pairs = (word.split("=") for word in given.split(",") if word)
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


def line_of(examples: Iterable[Task], params: dict[str, Any]) -> list[str]:
    """Whose label the evidence tells, the longest input, how many examples count, the distances, and the share of labels that a
    short window holds. An example that no single position decides does not count."""
    examples = list(examples)
    length = max(_length(e, params) for e in examples)
    allowed = params.get("length", length)
    longest = str(length) if allowed == length else f"{length} of {allowed}"
    told = [e for e in examples if e["evidence"]]
    if not told:
        return ["unknown", longest, *["—"] * (len(SHARES) + 2)]
    of_sequence = all(len(e["distances"]) == 1 for e in told)
    labels = [np.array([d for d in e["distances"] if d >= 0]) for e in told]
    found = [str(holding(np.array([own.max() for own in labels]), share)) for share in SHARES]
    near = np.mean(np.concatenate(labels) <= length // 10)
    counted = "all" if len(told) == len(examples) else f"{len(told)} of {len(examples)}"
    return ["sequence" if of_sequence else "position", longest, counted, *found, f"{near:.0%}"]


def holding(distances: np.ndarray, share: float) -> int:
    """The least distance that is enough for this share of the examples."""
    return int(np.sort(distances)[int(np.ceil(share * len(distances) - 1e-9)) - 1])


def _length(example: Task, params: dict[str, Any]) -> int:
    """Positions of the input; of two documents, of one. Numbers stand several to a position."""
    return len(example["tokens"]) if "tokens" in example else int(params.get("length") or int(params["side"]) ** 2)


def _printed(*words: str) -> str:
    return subprocess.run([program(), *words], capture_output=True, text=True, check=True).stdout
