"""Synthetic rows for the tests: the shape of a real quick run, from simple growth laws."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)
VARIANTS = (
    ("full", {"kernel": "tiled"}),
    ("truncated", {"window": 64}),
    ("linformer", {"rank": 64, "sharing": "heads"}),
    ("performer", {"features": 64, "kernel": "softmax"}),
    ("linear", {}),
)
# Forward seconds = a n^2 + b n, peak bytes = c n^2 + e n, relative error.
LAWS: dict[str, tuple[float, float, float, float, float]] = {
    "full": (1.1e-8, 2e-6, 0, 4200, 3e-7),
    "truncated": (0, 9e-6, 0, 4100, 0.62),
    "linformer": (0, 7e-6, 0, 4700, 0.81),
    "performer": (0, 2.1e-5, 0, 6900, 0.34),
    "linear": (0, 1.05e-5, 0, 5200, 0.93),
}
NO_CAUSAL = "cannot be causal"
TASKS: dict[str, dict[str, Any]] = {
    "listops": {
        "causal": False,
        "chance": 0.1,
        "shortcuts": {"majority": 0.17, "root_operator": 0.29},
        "test": {
            "full": 0.67,
            "truncated": 0.42,
            "linformer": 0.38,
            "performer": 0.40,
            "linear": 0.36,
        },
    },
    "mqar": {
        "causal": True,
        "chance": 0.016,
        "shortcuts": {"context_value": 0.12},
        "test": {"full": 0.99, "truncated": 0.21, "performer": 0.71, "linear": 0.55},
    },
    "image": {
        "causal": False,
        "chance": 0.1,
        "shortcuts": {"majority": 0.11, "linear_pixels": 0.34},
        "test": {
            "full": 0.71,
            "truncated": 0.66,
            "linformer": 0.58,
            "performer": 0.63,
            "linear": 0.61,
        },
    },
}


def header(run: str = "20260101T000000Z") -> dict[str, Any]:
    environment = {
        "version": "0.1.0",
        "commit": "0123456789abcdef",
        "dirty": False,
        "compiler": "g++ 12.2.0",
        "flags": "-O3",
        "build_type": "Release",
        "libraries": "Eigen 3.4.0",
        "instruction_set": "AVX2 FMA",
        "cpu_model": "Example CPU 9000 @ 2.50GHz",
        "caches": None,
        "cores": 2,
        "memory_bytes": 8 << 30,
        "kernel": None,
        "governor": None,
        "load_before": 0.1,
        "threads": 2,
        "benchmark_library_build": "release",
        "calibration": None,
    }
    variants = [
        {"name": name, "order": i, "params": params} for i, (name, params) in enumerate(VARIANTS)
    ]
    return {
        "schema": "attnbench/1",
        "kind": "run",
        "run": run,
        "argv": ["attnbench", "run"],
        "config": {},
        "environment": environment,
        "variants": variants,
    }


def key_of(what: Any) -> str:
    """What names a cell: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


def cell(
    measure: str,
    variant: str,
    params: dict[str, Any],
    axes: dict[str, Any],
    *,
    metrics: Any = None,
    task: dict[str, Any] | None = None,
    samples: Any = None,
    status: str = "ok",
    reason: str | None = None,
) -> dict[str, Any]:
    return {
        "schema": "attnbench/1",
        "kind": "cell",
        "run": "20260101T000000Z",
        "cell": key_of([measure, variant, params, axes, task]),
        "status": status,
        "reason": reason,
        "measure": measure,
        "variant": {"name": variant, "params": params},
        "task": task,
        "axes": axes,
        "metrics": metrics,
        "samples": samples,
        "started_at": "2026-01-01T00:00:00Z",
        "duration_s": 0.5,
    }


def seconds(variant: str, length: int, train: bool = False, causal: bool = False) -> float:
    square, line = LAWS[variant][:2]
    return (square * length**2 * (0.55 if causal else 1) + line * length) * (3.2 if train else 1)


def shape(length: int, mode: str, scope: str, causal: bool) -> dict[str, Any]:
    return {
        "length": length,
        "batch": 1,
        "heads": 4,
        "head_dim": 64,
        "mode": mode,
        "scope": scope,
        "causal": causal,
        "threads": 2,
        "seed": 1,
    }


def timed(
    name: str, params: dict[str, Any], axes: dict[str, Any], samples: np.ndarray, tokens: int
) -> dict[str, Any]:
    mid, spread = float(np.median(samples)), float(np.std(samples))
    flops = 4 * axes["length"] * 64
    metrics = {
        "time_s": {
            "median": mid,
            "mean": float(samples.mean()),
            "min": float(samples.min()),
            "mad": spread,
            "ci_low": mid - spread,
            "ci_high": mid + spread,
            "n": len(samples),
        },
        "tokens_per_s": tokens / mid,
        "flops": flops,
        "flops_per_s": flops / mid,
        "peak_fraction": 0.3,
    }
    row = cell("speed", name, params, axes, metrics=metrics, samples=samples.tolist())
    return row | {"visits": [len(samples) - 2 * (len(samples) // 3), *[len(samples) // 3] * 2]}


def speed_cells(
    rng: np.random.Generator, scopes: tuple[str, ...] = ("attention", "layer")
) -> list[dict[str, Any]]:
    out = []
    for scope in scopes:
        for mode in ("forward", "train"):
            for causal in (False, True) if scope == "attention" else (False,):
                for name, params in VARIANTS:
                    for n in LENGTHS:
                        axes = shape(n, mode, scope, causal)
                        if causal and name == "linformer":
                            out.append(
                                cell(
                                    "speed",
                                    name,
                                    params,
                                    axes,
                                    status="skipped",
                                    reason=NO_CAUSAL,
                                )
                            )
                            continue
                        if mode == "train" and name == "full" and n == 16384:
                            out.append(
                                cell(
                                    "speed",
                                    name,
                                    params,
                                    axes,
                                    status="timeout",
                                    reason="took over 600 s",
                                )
                            )
                            continue
                        base = seconds(name, n, mode == "train", causal) + (
                            2.5e-5 * n if scope == "layer" else 0
                        )
                        samples = base * (1 + 0.03 * rng.gamma(2.0, 1.0, 9))
                        out.append(timed(name, params, axes, samples, tokens=n))
    return out


def memory_cells() -> list[dict[str, Any]]:
    out = []
    kinds = (*VARIANTS, ("full", {"kernel": "materialized"}))
    for mode in ("forward", "train"):
        for name, params in kinds:
            for n in LENGTHS:
                axes = shape(n, mode, "attention", False)
                if params.get("kernel") == "materialized" and n == 16384:
                    out.append(
                        cell(
                            "memory",
                            name,
                            params,
                            axes,
                            status="oom",
                            reason="needs 8.6 GB of 6.0 GB",
                        )
                    )
                    continue
                peak = LAWS[name][3] * n * (2.4 if mode == "train" else 1)
                peak += (
                    16 * n * n * (2 if mode == "train" else 1)
                    if params.get("kernel") == "materialized"
                    else 0
                )
                metrics = {
                    "peak_bytes": int(peak),
                    "weights_bytes": 0,
                    "activations_bytes": int(peak * 0.9),
                    "workspace_bytes": int(peak * 0.1),
                    "state_bytes": 4096,
                    "rss_peak_bytes": int(peak) + 9**8,
                }
                out.append(cell("memory", name, params, axes, metrics=metrics))
    return out


def accuracy_cells() -> list[dict[str, Any]]:
    out = []
    for task, facts in TASKS.items():
        for name, params in VARIANTS:
            what = {"name": task, "params": {"length": 256, "train_examples": 6400}}
            axes = {"length": 256, "causal": facts["causal"], "threads": 1, "seed": 1}
            if name not in facts["test"]:
                out.append(
                    cell(
                        "accuracy",
                        name,
                        params,
                        axes,
                        task=what,
                        status="skipped",
                        reason=NO_CAUSAL,
                    )
                )
                continue
            if (task, name) == ("listops", "linear"):
                out.append(
                    cell(
                        "accuracy",
                        name,
                        params,
                        axes,
                        task=what,
                        status="diverged",
                        reason="loss is not finite at step 312",
                    )
                )
                continue
            test = facts["test"][name]
            metrics = {
                "metric": "accuracy",
                "test": test,
                "test_stderr": (test * (1 - test) / 1000) ** 0.5,
                "validation": test + 0.01,
                "chance": facts["chance"],
                "shortcuts": facts["shortcuts"],
                "lift": test / max(facts["shortcuts"].values()),
                "steps": 2000,
                "examples": 64000,
                "train_s": 31.0,
                "examples_per_s": 2064.0,
                "parameters": 90000,
            }
            curve = [
                {"step": s, "train_loss": 1.0, "validation": test * s / 2000, "seconds": s / 70}
                for s in range(0, 2001, 500)
            ]
            out.append(
                cell("accuracy", name, params, axes, task=what, metrics=metrics, samples=curve)
            )
    return out


def fidelity_cells() -> list[dict[str, Any]]:
    out = []
    kinds = (
        *VARIANTS,
        ("performer", {"features": 256, "kernel": "softmax"}),
        ("linformer", {"rank": 256, "sharing": "heads"}),
    )
    for given in ("random", "needle"):
        for name, params in kinds:
            for scale in (0.25, 0.5, 1.0, 2.0, 4.0):
                for n in (512, 2048):
                    worth = LAWS[name][4] * (1.3 if given == "needle" and name != "full" else 1)
                    wide = 0.5 if params.get("features") == 256 or params.get("rank") == 256 else 1
                    error = worth * (wide * scale / (1 + scale) * 2 if name != "full" else 1)
                    axes = {
                        **shape(n, "forward", "attention", False),
                        "input": given,
                        "input_scale": scale,
                    }
                    out.append(
                        cell(
                            "fidelity",
                            name,
                            params,
                            axes,
                            metrics={
                                "relative_error": error,
                                "cosine": max(0.0, 1 - error**2 / 2),
                                "weights_kl": None,
                            },
                        )
                    )
    for width, name, key in ((256, "performer", "features"), (256, "linformer", "rank")):
        params = {**dict(VARIANTS)[name], key: width}
        for n in (512,):  # as the quick profile: the ladder is timed where its errors are
            mid = 3.1 * seconds(name, n)
            time = {k: mid for k in ("median", "mean", "min", "ci_low", "ci_high")} | {
                "mad": 0.0,
                "n": 9,
            }
            out.append(
                cell(
                    "speed",
                    name,
                    params,
                    shape(n, "forward", "attention", False),
                    metrics={
                        "time_s": time,
                        "tokens_per_s": n / mid,
                        "flops": 1,
                        "flops_per_s": 1 / mid,
                        "peak_fraction": None,
                    },
                    samples=[mid] * 9,
                )
            )
    return out


def write(path: Path, cells: list[dict[str, Any]], head: dict[str, Any] | None = None) -> Path:
    lines = [json.dumps(row, allow_nan=False) for row in [head or header(), *cells]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def quick_cells() -> list[dict[str, Any]]:
    rng = np.random.default_rng(7)
    return [*speed_cells(rng), *memory_cells(), *accuracy_cells(), *fidelity_cells()]


if __name__ == "__main__":
    write(Path(sys.argv[1]), quick_cells())
