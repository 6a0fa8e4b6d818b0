"""Planted rows for the tests of the report: as many cells as asked, and rows that mean harm."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from . import fixture

FAMILIES = ("exact", "pattern", "low rank", "kernel", "hashing", "convolution")
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


def variants(count: int) -> list[tuple[str, dict[str, Any]]]:
    """`full`, then variants of three parameterisations each."""
    others = [(f"variant{i // 3}", {"rank": 16 << (i % 3)}) for i in range(count - 1)]
    return [("full", {"kernel": "tiled"}), *others]


def head(count: int) -> dict[str, Any]:
    names = dict(variants(count))
    listed = [
        {"name": name, "order": i, "family": FAMILIES[0 if i == 0 else 1 + i % 5], "params": params}
        for i, (name, params) in enumerate(names.items())
    ]
    return {**fixture.header(), "variants": listed}


def planted(wanted: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A run line and `wanted` cells: times, peaks and scores of up to 58 parameterisations."""
    count = 6 if wanted <= 1000 else 22 if wanted <= 8000 else 58
    rng = np.random.default_rng(3)
    cells = [*_scored(count, rng)][: wanted // 5]
    grid = itertools.product((1, 2, 4, 8), ("forward", "train"), (False, True), range(count), range(12))
    for heads, mode, causal, index, power in grid:
        name, params = variants(count)[index]
        axes = {**fixture.shape(16 << power, mode, "attention", causal), "heads": heads}
        time = 1e-9 * axes["length"] * (axes["length"] if index == 0 else 100 + 20 * index)
        samples = time * heads * (1 + 0.03 * rng.gamma(2.0, 1.0, 9))
        speed = fixture.timed(name, params, axes, samples, tokens=axes["length"])
        if rng.random() < 0.02:
            speed["noisy"] = ["witness"]
        peak = int(time * 1e9) + 4096
        held = {"peak_bytes": peak, "weights_bytes": 0, "activations_bytes": peak, "workspace_bytes": 0}
        held |= {"state_bytes": 4096, "rss_peak_bytes": peak + 9**8}
        for row in (speed, fixture.cell("memory", name, params, axes, metrics=held)):
            if len(cells) == wanted:
                return head(count), cells
            cells.append(row)
    raise ValueError(f"the grid holds {len(cells)} cells, not {wanted}")


def _scored(count: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    out = []
    for task, seed, (name, params) in itertools.product(("recall", "copy", "sort"), range(3), variants(count)):
        axes = {"length": 256, "causal": False, "threads": 1, "seed": seed}
        test = 0.99 if name == "full" else float(rng.uniform(0.3, 0.9))
        metrics = {"metric": "accuracy", "test": test, "test_stderr": 0.01, "validation": test}
        metrics |= {"chance": 0.1, "shortcuts": {"majority": 0.35}, "lift": test / 0.35, "steps": 700}
        metrics |= {"examples": 6400, "train_s": 3.0, "examples_per_s": 2064.0, "parameters": 90000}
        what = {"name": task, "params": {"length": 256}}
        out.append(fixture.cell("accuracy", name, params, axes, task=what, metrics=metrics, samples=[]))
    return out


def hostile(path: Path, *, names: bool = False) -> Path:
    """Rows whose every free text is markup or a script; `names`: the names too, which the schema
    forbids."""
    run = fixture.header()
    run["argv"] = ["attnbench", "run", HOSTILE]
    run["environment"] = {**run["environment"], "cpu_model": HOSTILE, "compiler": HOSTILE}
    cells = [c for c in fixture.quick_cells() if c["axes"]["length"] <= 1024]
    name = HOSTILE if names else "linear"
    run["variants"] = [
        {**v, "family": HOSTILE, "name": name if v["name"] == "linear" else v["name"]}
        for v in run["variants"]
    ]
    for row in cells:
        if row["variant"]["name"] == "linear":
            row["variant"] = {"name": name, "params": {"a": HOSTILE}}
        if row["task"]:
            task = HOSTILE if names else row["task"]["name"]
            row["task"] = {"name": task, "params": {"length": HOSTILE}}
        if row["reason"]:
            row["reason"] = HOSTILE
        if row["measure"] == "accuracy" and row["metrics"]:
            row["metrics"] = {**row["metrics"], "shortcuts": {HOSTILE: 0.3}}
    return fixture.write(path, cells, run)


def write(path: Path, wanted: int) -> Path:
    run, cells = planted(wanted)
    return fixture.write(path, cells, run)
