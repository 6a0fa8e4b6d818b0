"""Planted rows for the tests of the report: as many cells as asked, and rows that mean harm."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from .. import fixture

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
    if names:
        run["protocol"] = {"name": HOSTILE, "hash": HOSTILE, "departs": [HOSTILE]}
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


def everything(folder: Path) -> tuple[list[Path], Path, Path]:
    """Rows files for every section that needs no program, a file of peers and a folder of a history."""
    cells = [{**c, "referenced": True} for c in fixture.quick_cells()]
    for number, row in enumerate(cells):
        if row["status"] == "ok":
            row["ledger"] = {"parameters": None, "flops": 1e6, "precision": "float32", "threads": 2, "kernel": "avx2",
                             "loops": "avx2", "cost": "declared"}  # fmt: skip
        if row["measure"] == "accuracy" and row["metrics"]:
            row["metrics"] = {**row["metrics"], "state_bytes": 512 * (1 + number % 5)}
        if row["measure"] == "speed" and row["metrics"] and row["axes"]["length"] == 512:
            shares = {"products": 0.6, "softmax": 0.2, "packing": 0.1, "other": 0.1}
            told = {"passes": 3, "pass_s": 1e-3, "marks": 5.0, "overhead": 0.01, "shares": shares}
            row["metrics"] = {**row["metrics"], "breakdown": told}
    rows = [fixture.write(folder / "everything.jsonl", cells)]
    peers = folder / "peers.jsonl"
    reference = Path(__file__).resolve().parents[3] / "results" / "reference" / "peers.jsonl"
    peers.write_text("".join(reference.read_text(encoding="utf-8").splitlines(keepends=True)[:20]), encoding="utf-8")
    past = folder / "past"
    past.mkdir()
    rng = np.random.default_rng(4)
    for number in range(8):
        head = {**fixture.header(f"2026010{number}T000000Z"), "started_at": f"2026-01-0{1 + number}T00:00:00Z"}
        head["environment"] = {**head["environment"], "commit": f"{number}" * 40}
        slow = 1.3 if number >= 4 else 1.0
        own = [
            fixture.timed(name, params, fixture.shape(512, "forward", "attention", False),
                          1e-3 * (slow if name == "linear" else 1) * (1 + 0.01 * rng.standard_normal(9)), 512)
            for name, params in fixture.VARIANTS
        ]  # fmt: skip
        fixture.write(past / f"{number}.jsonl", [{**c, "run": head["run"]} for c in own], head)
    return rows, peers, past
