"""A table of how far apart the evidence of each task lies: of `attnbench sample`, without any training."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from attnbench._place import program
from attnbench.plots.rows.units import markdown

SHARES = (0.5, 0.9, 0.99)  # of the examples
PRESETS = ("small", "standard")  # a task with neither is sampled at its defaults
EXAMPLES = 200
Task = dict[str, Any]


def table() -> str:
    """A line a task and preset: the distance within which the evidence of every label of an example lies."""
    listed = json.loads(_printed("list", "tasks", "--json"))["tasks"]
    lines = []
    for spec, params in settings(listed):
        sampled = _printed("sample", spec, "--split", "test", "--count", str(EXAMPLES)).splitlines()
        lines.append([f"`{spec}`", *line_of(map(json.loads, sampled), params)])
    heads = ["task", "label of a", "length", *(f"{share:.0%} of examples" for share in SHARES), "labels within a tenth of the length"]
    return markdown(heads, lines)


def settings(listed: Iterable[Task]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each task with its presets, or at its defaults; and the values of the parameters."""
    for task in listed:
        defaults = {p["name"]: p["default"] for p in task["params"]}
        presets = {p["name"]: p["params"] for p in task["presets"] if p["name"] in PRESETS}
        for name in sorted(presets, key=PRESETS.index):
            yield f"{task['name']}[preset={name}]", defaults | presets[name]
        if not presets:
            yield task["name"], defaults


def line_of(examples: Iterable[Task], params: dict[str, Any]) -> list[str]:
    """Whose label the evidence tells, the longest input, the distances, and the share of labels that a short window holds.
    An example that no single position decides is left out."""
    examples = list(examples)
    length = max(_length(e, params) for e in examples)
    told = [e for e in examples if e["evidence"]]
    if not told:
        return ["unknown", str(length), *["—"] * (len(SHARES) + 1)]
    of_sequence = all(len(e["distances"]) == 1 for e in told)
    labels = [np.array([d for d in e["distances"] if d >= 0]) for e in told]
    found = [str(holding(np.array([own.max() for own in labels]), share)) for share in SHARES]
    near = np.mean(np.concatenate(labels) <= length // 10)
    return ["sequence" if of_sequence else "position", str(length), *found, f"{near:.0%}"]


def holding(distances: np.ndarray, share: float) -> int:
    """The least distance that is enough for this share of the examples."""
    return int(np.sort(distances)[int(np.ceil(share * len(distances) - 1e-9)) - 1])


def _length(example: Task, params: dict[str, Any]) -> int:
    """Positions of the input; of two documents, of one. Numbers stand several to a position."""
    return len(example["tokens"]) if "tokens" in example else int(params.get("length") or int(params["side"]) ** 2)


def _printed(*words: str) -> str:
    return subprocess.run([program(), *words], capture_output=True, text=True, check=True).stdout
