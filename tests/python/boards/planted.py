"""Archives made up for the tests of the board: every statement begins with SYNTHETIC. python -m tests.python.boards.planted FOLDER [COUNT]"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from attnbench.bundles.archive import MANIFEST, json_bytes, manifest_of
from attnbench.bundles.container import packed
from attnbench.plots.rows.checksum import hash_of

from .. import fixture

SYNTHETIC = "SYNTHETIC, made by a test and measured by nobody"
# What would run, load, style or lead somewhere if a page took it for markup.
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> <a href=javascript:alert(1)>here</a> "
    "[here](javascript:alert(2)) javascript:alert(3) <style>*{display:none}</style> &lt;b&gt; {{script}} {{body}} \u2190 '\" onmouseover=alert(4) x='"
)
SETS = ("avx2", "avx512", "neon")
FAMILIES = {"full": "exact", "truncated": "pattern", "linformer": "low rank", "performer": "kernel", "linear": "kernel"}
# Median of the ratio to exact attention, by variant; with the scatter between machines no test may take them for one another.
RATIOS = {"truncated": 0.4, "linformer": 0.42, "performer": 1.3, "linear": 0.6}
TASKS = {"mqar": (0.99, 0.2, 0.15, 0.7, 0.55), "copy": (0.98, 0.3, 0.2, 0.6, 0.5), "listops": (0.6, 0.42, 0.38, 0.4, 0.36)}
Line = dict[str, Any]


def protocol(number: int = 5) -> Line:
    definition = {"name": f"test-{number}", "seeds": [0, 1]}
    return {"name": definition["name"], "hash": hash_of(definition), "definition": definition}


def summed(line: Line) -> Line:
    return {**line, "checksum": hash_of(line)}


def head(run: str, environment: Line, of: Line, departs: Iterable[str] = ()) -> Line:
    listed = [{"name": n, "order": i, "family": f} for i, (n, f) in enumerate(FAMILIES.items())]
    line = {**fixture.header(run), "variants": listed}
    line["protocol"] = {"name": of["name"], "hash": of["hash"], "departs": sorted(departs)}
    line["environment"] = {**line["environment"], **environment}
    return line


def archive(path: Path, cells: list[Line], *, statement: str = SYNTHETIC, environment: Line | None = None, of: Line | None = None,
            departs: Iterable[str] = (), contract: Line | None = None) -> str:  # fmt: skip
    """Writes an archive of one run; returns its SHA-256."""
    of = of or protocol()
    run = head("20260101T000000Z", environment or {}, of, departs)
    lines = [summed(run), *(summed({**c, "run": run["run"]}) for c in cells)]
    members = {
        "rows/rows.jsonl": "".join(json.dumps(line) + "\n" for line in lines).encode(),
        "statement.txt": statement.encode(),
        "environment.json": json_bytes({run["run"]: run["environment"]}),
        "protocol.json": json_bytes(of),
        "contract.json": json_bytes(contract or {"full": {"level": "quick", "red": 0, "lines": ["ok causality", "ok padding"]}}),
    }
    about = {"protocol": {"name": of["name"], "hash": of["hash"]}, "departs": sorted(departs)}
    members[MANIFEST] = manifest_of(members, about)
    data = packed(members)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def timed(rng: np.random.Generator, slow: float, length: int, mode: str, causal: bool = False) -> list[Line]:
    """Speed cells of all variants at one setting, three visits of three."""
    out = []
    for name, params in fixture.VARIANTS:
        scatter = 1.0 if name == "full" else float(np.exp(rng.normal(0, 0.05)))
        base = slow * 1e-6 * length * RATIOS.get(name, 1.0) * (3 if mode == "train" else 1) * scatter
        samples = base * np.exp(rng.normal(0, 0.01, 9))
        axes = {**fixture.shape(length, mode, "attention", causal), "threads": 1}
        row = fixture.timed(name, params, axes, samples, length)
        verified = {"by": "reference", "shape": [1, 4, length, 64], "rows": 64, "error": 1e-7, "bound": 1e-5, "seconds": 0.1}
        out.append({**row, "verified": verified})
    return out


def held(length: int, mode: str = "decode") -> list[Line]:
    out = []
    for index, (name, params) in enumerate(fixture.VARIANTS):
        peak = 4096 * (length if index == 0 else 64 * index)
        metrics = {"peak_bytes": peak, "weights_bytes": 0, "activations_bytes": peak, "workspace_bytes": 0, "state_bytes": peak // 2}
        row = fixture.cell("memory", name, params, {**fixture.shape(length, mode, "attention", True), "threads": 1}, metrics=metrics)
        out.append({**row, "verified": {"by": "identities", "shape": [1, 4, length, 64], "rows": 1, "error": 0, "bound": 1e-5, "seconds": 0.1, "identities": ["prefix"]}})
    return out


def scored(rng: np.random.Generator, tasks: Iterable[str] = TASKS, seeds: int = 2) -> list[Line]:
    out = []
    for task in tasks:
        for (name, params), middle in zip(fixture.VARIANTS, TASKS[task], strict=True):
            for seed in range(seeds):
                test = float(np.clip(middle + rng.normal(0, 0.005), 0, 1))
                metrics = {"metric": "accuracy", "test": test, "test_stderr": 0.01, "validation": test, "chance": 0.1, "shortcuts": {"majority": 0.12},
                           "lift": test - 0.12, "steps": 4, "examples": 4, "train_s": 1.0, "parameters": 1, "ended_by": "plateau"}  # fmt: skip
                axes = {"length": 64, "causal": True, "threads": 1, "seed": seed}
                out.append(fixture.cell("accuracy", name, params, axes, metrics=metrics, task={"name": task, "params": {"length": 64}}))
    return out


def verdict(path: Path, digest: str, said: str, cells: Iterable[Line] = ()) -> Path:
    """The verdict of another machine beside the archive, as `attnbench verify --json` prints it."""
    told = [{"cell": c["cell"], "what": c["measure"], "state": said, "words": "as before", "interval": None} for c in cells]
    found = {"bundle": path.name, "sha256": digest, "signature": {"state": "unsigned", "who": ""}, "cells": told, "fault": "", "verdict": said}
    beside = path.with_name(path.name.removesuffix(".attnbundle") + ".verified.json")
    beside.write_text(json.dumps(found), encoding="utf-8")
    return beside


def machine(number: int) -> Line:
    own = SETS[number % 3]
    return {"cpu_model": f"Example CPU {number}", "instruction_set": own, "kernel_instruction_set": own, "cores": 2 + number % 7}


def crowd(folder: Path, count: int = 200) -> Path:
    """Archives of so many machines of three instruction sets and two protocols; every second is verified, and one disagrees."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        rng = np.random.default_rng(number)
        slow = float(np.exp(rng.normal(0, 0.5)))
        cells = [c for n in (512, 4096) for mode in ("forward", "train") for c in timed(rng, slow, n, mode)]
        cells += [*held(4096), *scored(rng)]
        path = folder / f"example-{number:03}.attnbundle"
        about = f"{SYNTHETIC}. Machine {number} of team {'amber' if number % 5 == 0 else 'violet'}."
        digest = archive(path, cells, statement=about, environment=machine(number), of=protocol(5 if number % 10 else 4))
        if number % 2 == 0 or number == 1:
            verdict(path, digest, "disagree" if number == 1 else "agree", cells[:8])
    return folder


def hostile(folder: Path) -> Path:
    """Archives that mean harm in every text that may have any; beside them some that cannot be read."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    cells = [*timed(rng, 1.0, 512, "forward"), *held(512), *scored(rng, ("copy",))]
    cells[1] = {**cells[1], "variant": {"name": f"bad {HOSTILE[:60]}", "params": {f"p{HOSTILE}": HOSTILE}}}
    cells[-1] = {**cells[-1], "task": {"name": f"bad {HOSTILE[:60]}", "params": {"p": HOSTILE}}}
    cells.append(fixture.cell("speed", "truncated", {}, fixture.shape(64, "forward", "attention", False), status="failed", reason=HOSTILE))
    machine = {"cpu_model": f"=1+1 {HOSTILE}", "kernel_instruction_set": f"set {HOSTILE}"}
    contract = {f"name {HOSTILE}": {"level": HOSTILE, "lines": [f"RED {HOSTILE}"]}, "odd": [HOSTILE]}
    for number in range(3):
        about = {**machine, "cpu_model": f"{machine['cpu_model']} {number}"}
        path = folder / f"bad-{number}.attnbundle"
        digest = archive(path, cells, statement=f"{SYNTHETIC} {HOSTILE} {number}", environment=about, departs=[HOSTILE], contract=contract)
        beside = verdict(path, digest, "agree", [{"cell": f"'\"><b>{HOSTILE}", "measure": HOSTILE}, cells[0]])
        beside.write_text(beside.read_text(encoding="utf-8").replace("as before", json.dumps(HOSTILE)[1:-1]), encoding="utf-8")
    return folder


if __name__ == "__main__":
    crowd(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200)
