"""Synthetic rows of decoding whose numbers follow from formulas: a token takes a nanosecond a byte of what is kept; a score falls by the
share that is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .fixture import cell, header, key_of, timed

LENGTHS = (4096, 16384)
EXACT_BYTES = 2 * 2 * 128 * 4  # of a position: keys and values of two heads of 128 in float32
BANDWIDTH = 20e9
FULL = {"kernel": "tiled"}
SEEDS = (0, 1, 2)
TASKS = {"mqar": 64, "needle": 63}  # with their lengths
VARIANTS = ("full", "truncated", "linear", "gated_deltanet")
MODEL = {"layers": 2, "heads": 4, "kv_heads": 0, "width": 64, "steps": 100, "learning_rate": 0.002}


def run_line() -> dict[str, Any]:
    head = header()
    head["environment"] |= {
        "caches": "L1d 32K, L1i 32K, L2 512K, L3 32768K",
        "calibration": {
            "fma_flops_per_s_one": 1e11,
            "fma_flops_per_s_all": 2e11,
            "copy_bytes_per_s_one": BANDWIDTH,
            "copy_bytes_per_s": BANDWIDTH,
            "threads": 2,
        },
    }
    head["variants"] = [{"name": name, "order": i, "family": "", "params": FULL if name == "full" else {}} for i, name in enumerate(VARIANTS)]
    return head


def token(name: str, params: dict[str, Any], length: int, size: float, threads: int = 2, **axes: Any) -> dict[str, Any]:
    """One decoded token: a nanosecond a byte, with an interval of 1 % to either side."""
    shape = {"length": length, "batch": 1, "heads": 8, "kv_heads": 2, "head_dim": 128, "mode": "decode", "scope": "attention", "causal": True}
    row = timed(name, params, {**shape, "threads": threads, "seed": 0, **axes}, np.full(9, size * 1e-9), tokens=1)
    row["metrics"] |= {"state_bytes": size, "bytes": size}
    row["metrics"]["time_s"] |= {"ci_low": 0.99 * size * 1e-9, "ci_high": 1.01 * size * 1e-9}
    row["witness"] = {"flops_per_s": [1e11] * 3, "copy_bytes_per_s": [50e9, 60e9, 40e9]}
    return row | {"verified": {"by": "reference", "shape": [1, 8, length, 128], "rows": 8, "error": 1e-7, "bound": 1e-3, "seconds": 1.0}}


def time_cells() -> list[dict[str, Any]]:
    out = []
    for n in LENGTHS:
        whole = n * EXACT_BYTES
        for name, share in (("float32", 1), ("bfloat16", 1 / 2), ("int8", 1 / 4), ("int4", 1 / 8)):
            typed = {} if name == "float32" else {"kv_dtype": name}
            out.append(token("full", FULL, n, whole * share, threads=1, **typed))
        out.append(token("full", FULL, n, whole))
        out.append(token("full", FULL, n, 4 * whole, kv_heads=8))
        for method in ("recent", "h2o"):
            out += [token("full", FULL | {"evict": method, "budget": b, "when": "always"}, n, b / n * whole) for b in (n // 16, n // 4)]
        out.append(token("truncated", {"window": n // 8}, n, whole / 8))
        out += [token(name, {}, n, 2.0**19) for name in ("linear", "gated_deltanet")]
    return out


def serving_cells() -> list[dict[str, Any]]:
    out = []
    for threads in (1, 2):
        row = token("linear", {}, 1024, 65536, threads=threads, mode="serve", workload="q64_2q1kv1k")
        figures = {"prompts": 1, "decoding": 2, "calls": 32, "rounds": 1, "first_token_s": 0.08 / threads, "token_p50_s": 0.004 / threads}
        row["metrics"]["serving"] = figures | {"token_p99_s": 0.09 / threads, "generated_per_s": 500.0 * threads}
        out.append(row)
    return out


def packed_cell() -> dict[str, Any]:
    row = token("full", FULL, 1024, 65536, mode="forward", packed="uniform")
    del row["metrics"]["state_bytes"]
    packed = {"sequences": 4, "tokens": 2560, "useful": 0.625, "padded_tokens_per_s": 4000.0}
    row["metrics"] |= {"tokens_per_s": 10000.0, "packed": packed | {"speedup": 2.5}}
    return row


def score_cell(
    task: str, name: str, params: dict[str, Any], test: float, seed: int, size: float, ended_by: str = "target", **training: Any
) -> dict[str, Any]:
    n = TASKS[task]
    metrics = {
        "metric": "accuracy", "test": test, "test_stderr": 0.01, "validation": test, "chance": 0.02, "shortcuts": {"majority": 0.2},
        "lift": test - 0.2, "steps": 100, "examples": 1600, "train_s": 1.0, "examples_per_s": 1600.0, "parameters": 8, "ended_by": ended_by,
        "state_bytes": size,
    }  # fmt: skip
    axes = {"length": n, "causal": True, "threads": 1, "seed": seed}
    row = cell("accuracy", name, params, axes, task={"name": task, "params": {"length": n}}, metrics=metrics)
    curve = [{"step": s, "train_loss": 1.0, "validation": test * s / 100, "seconds": 1.0} for s in (50, 100)]
    row |= {"training": MODEL | training, "samples": curve}
    row["cell"] = key_of([task, name, params, seed, training])
    return row


def score_cells(unfinished: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Exact attention scores 1, h2o loses 0.02 at a quarter, and recent half of what it forgets."""
    out = []
    for task, n in TASKS.items():
        whole = 2 * 64 * 2 * n * 4
        for seed in SEEDS:
            row = score_cell(task, "full", FULL, 1.0, seed, whole)
            row["metrics"]["by_params"] = [
                {"params": FULL | {"evict": method, "budget": float(b), "when": "always"}, "test": test, "stderr": 0.01, "reason": None}
                for b in (4, 16)
                for method, test in (("recent", 0.5 + b / n / 2), ("h2o", 0.98 if b == 16 else 0.6))
            ]
            row["test_with"] = [entry["params"] for entry in row["metrics"]["by_params"]]
            out += [row, score_cell(task, "full", FULL, 0.99, seed, whole / 4, kv_heads=1)]
            out.append(score_cell(task, "truncated", {"window": 8}, 0.4, seed, whole / 8))
            for name, test in (("linear", 0.3), ("gated_deltanet", 0.97)):
                out.append(score_cell(task, name, {}, test, seed, 8192, "steps" if name in unfinished else "target"))
    return out


def written(path: Path, cells: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in [run_line(), *cells]), encoding="utf-8")
    return path
