"""Rows with known figures, as a program of known behaviour would measure them, and that program's stand-in: tests of bundles need answers in
milliseconds, and lies on demand. The laws: exact attention takes 2e-9 n² s, others 4e-7 n s; errors, bytes and scores follow from the variant."""

from __future__ import annotations

import io
import json
import os
import random
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from statistics import fmean, median
from typing import Any
from unittest.mock import patch

from attnbench.bundles.figures import id_of, interval
from attnbench.bundles.sandbox import Done, Sandbox
from attnbench.plots.rows.checksum import hash_of

from ..faults import ROOT

Line = dict[str, Any]
DEFINITION = {"name": "attnbench-1", "timeout_s": 600.0, "profiles": {}}
PROTOCOL = {"name": "attnbench-1", "hash": hash_of(DEFINITION), "definition": DEFINITION}
RUN = "00000000000000aa"
VARIANTS: dict[str, Line] = {"full": {"kernel": "tiled"}, "truncated": {"window": 16}, "linear": {}}
TASKS = ("copy",)
SOURCE = {name: hash_of(name) for name in (*VARIANTS, *TASKS)}
TRAINING = {"batch": 16, "target": 0.99, "steps": 8000, "eval_every": 100}
ENVIRONMENT = {
    "version": "0.2.0", "commit": "0" * 40, "dirty": False, "compiler": "GNU 12.2.0", "flags": "-O3", "build_type": "Release", "libraries": "Eigen 3.4.0",
    "instruction_set": "avx2", "kernel_instruction_set": "avx2", "cpu_model": "Example CPU", "caches": None, "cores": 2, "memory_bytes": 8 << 30,
    "kernel": None, "governor": None, "load_before": 0.1, "threads": 2, "benchmark_library_build": "release",
    "calibration": {"fma_flops_per_s_one": 1e13, "fma_flops_per_s_all": 2e13, "copy_bytes_per_s_one": 1e10, "copy_bytes_per_s": 2e10, "threads": 2},
}  # fmt: skip


def sealed(line: Line) -> Line:
    """The line with its checksum, as it would be written: also of an edit."""
    rest = {name: value for name, value in line.items() if name != "checksum"}
    return {**rest, "checksum": hash_of(rest)}


def run_line(**changes: Any) -> Line:
    line = {"schema": "attnbench/1", "kind": "run", "run": RUN, "argv": ["--measure", "speed", "-o", "rows.jsonl"],
            "config": {"protocol": 1, "timeout_s": 600.0, "pin": "auto"}, "environment": ENVIRONMENT, "started_at": "2026-01-01T00:00:00Z",
            "variants": [], "protocol": {"name": PROTOCOL["name"], "hash": PROTOCOL["hash"], "departs": []}}  # fmt: skip
    return sealed({**line, **changes})


def cell(measure: str, variant: str, length: int = 256, *, seed: int = 0, noise: int = 1, factor: float = 1.0, **changes: Any) -> Line:
    """A row that is ok; `factor` makes its figure another, consistently; `noise` seeds the noise of its times, of about 1 %."""
    axes: Line = {"length": length, "batch": 1, "heads": 2, "head_dim": 16, "causal": False, "threads": 1, "seed": seed}
    line: Line = {"schema": "attnbench/1", "kind": "cell", "run": RUN, "cell": "", "status": "ok", "reason": None, "measure": measure,
                  "variant": {"name": variant, "params": VARIANTS.get(variant, {})}, "task": None, "axes": axes, "metrics": None, "samples": None,
                  "started_at": "2026-01-01T00:00:00Z", "duration_s": 0.5, "source": {"variant": SOURCE.get(variant, hash_of(variant))},
                  "referenced": True}  # fmt: skip
    if measure in ("speed", "memory"):
        axes |= {"mode": "forward", "scope": "attention"}
        line["verified"] = {"by": "reference", "shape": [1, 2, length, 16], "rows": 96, "error": 1e-7, "bound": 1e-4, "seconds": 0.01}
    if measure == "speed":
        axes["repetitions"] = 9
        stream = random.Random(f"{noise} {variant} {length} {seed}")
        base = (2e-9 * length**2 if variant == "full" else 4e-7 * length) * factor
        line |= _times([base * stream.lognormvariate(0, 0.01) for _ in range(9)], axes)
    elif measure == "memory":
        peak = round(5000 * length * factor)
        line["metrics"] = {"peak_bytes": peak, "weights_bytes": 0, "activations_bytes": peak, "workspace_bytes": 0, "state_bytes": 1, "rss_peak_bytes": 1 << 20}
    elif measure == "fidelity":
        axes |= {"input": "random", "input_scale": 1.0}
        line["metrics"] = {"relative_error": (1e-7 if variant == "full" else 0.5) * factor, "cosine": 0.9, "weights_kl": None}
    elif measure == "accuracy":
        del axes["batch"], axes["heads"], axes["head_dim"]
        line |= _training(variant, factor) | {"task": {"name": "copy", "params": {"length": length}}, "training": TRAINING}
        line["source"] = line["source"] | {"task": SOURCE["copy"]}
    line |= changes
    if not line["cell"]:
        line["cell"] = id_of(line, run_line())
    return sealed(line)


def _times(samples: list[float], axes: Line) -> Line:
    visits, middle = [3, 3, 3], median(samples)
    low, high = interval(samples, visits)
    time = {"median": middle, "mean": fmean(samples), "min": min(samples), "mad": median(abs(s - middle) for s in samples),
            "ci_low": min(low, middle), "ci_high": max(high, middle), "n": 9}  # fmt: skip
    flops = 1e5 * axes["length"]
    metrics = {"time_s": time, "tokens_per_s": axes["length"] / middle, "flops": flops, "flops_per_s": flops / middle, "peak_fraction": flops / middle / 1e13}
    return {"metrics": metrics, "samples": samples, "visits": visits}


def _training(variant: str, factor: float) -> Line:
    right = round((0.9375 if variant != "full" else 1.0) * factor * 256)  # of 256 examples
    bits = "".join("f" if i < right // 4 else "0" for i in range(64))
    test = right // 4 * 4 / 256
    metrics = {"metric": "accuracy", "test": test, "test_stderr": 0.01, "by_example": {"count": 256, "levels": 2, "digest": "0" * 16, "scores": bits},
               "validation": 0.995, "chance": 0.1, "shortcuts": {"majority": 0.2}, "lift": test - 0.2, "steps": 200, "best_step": 200, "ended_by": "target",
               "examples": 3200, "train_s": 2.0, "data_wait_share": 0.0, "examples_per_s": 1600.0, "parameters": 1000, "flops": 1.0,
               "final_train_loss": 0.1, "state_bytes": 1}  # fmt: skip
    curve = [{"step": step, "train_loss": 1.0, "validation": v, "seconds": step / 100} for step, v in ((100, 0.5), (200, 0.995))]
    return {"metrics": metrics, "samples": curve}


def honest() -> list[Line]:
    """A run of three variants, every measure."""
    rows = [cell("speed", v, n) for n in (256, 512, 1024) for v in VARIANTS]
    rows += [cell("memory", v, n) for n in (256, 512) for v in VARIANTS]
    rows += [cell("fidelity", v) for v in VARIANTS] + [cell("accuracy", v, 64) for v in VARIANTS]
    return [run_line(), *rows]


def text_of(lines: list[Line]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def edited(line: Line, path: str, value: Any, *, seal: bool = True) -> Line:
    """A copy with one value changed, by whoever knows how checksums are made, or not."""
    copy = json.loads(json.dumps(line))
    *way, last = path.split(".")
    inner = copy
    for part in way:
        inner = inner[part]
    inner[last] = value
    return sealed(copy) if seal else copy


def program_in(folder: Path, **behaviour: Any) -> Path:
    """A stand-in of the program attnbench; see stand_in.py for what it can be told to do."""
    path = folder / "attnbench"
    here = shlex.quote(json.dumps(behaviour))
    path.write_text(f"#!/bin/sh\nexport PYTHONPATH={shlex.quote(f'{ROOT}/python:{ROOT}')} PYTHONDONTWRITEBYTECODE=1\n"
                    f"exec {shlex.quote(sys.executable)} -m tests.python.bundles.stand_in {here} \"$@\"\n")  # fmt: skip
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@contextmanager
def standing_in(**behaviour: Any) -> Iterator[list[list[str]]]:
    """The stand-in in this process, which is faster: in place of the program for the modules that ask it. Yields the commands that it gets."""
    from . import stand_in

    asked: list[list[str]] = []

    def ask(sandbox: Sandbox, words: list[str], timeout_s: float = 0) -> Done:
        asked.append(words)
        said, here = io.StringIO(), Path.cwd()
        os.chdir(sandbox.folder)
        try:
            with redirect_stdout(said):
                code = stand_in.main(behaviour, words)
        finally:
            os.chdir(here)
        return Done(code, said.getvalue(), "")

    with patch("attnbench.bundles.program.ask", ask), patch("attnbench.bundles.measuring.ask", ask):
        yield asked
