"""Planted rows of the entries of scripts/reproduce: times, bytes, scores and errors by given laws."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from attnbench.reproduce.entries import FOLDER

from .. import fixture

Row = dict[str, Any]
VISITS, EACH = 3, 3  # processes, and samples of each
TEXTBOOK, TILED = {"kernel": "materialized"}, {"kernel": "tiled"}
DEFAULTS = {
    "full": {"kernel": "tiled"},
    "linear": {},
    "performer": {"as": "paper", "features": 64, "kernel": "softmax", "orthogonal": True},
    "linformer": {"rank": 64, "share_heads": True, "share_kv": False},
    "local": {"as": "paper", "block": 256, "look_back": 0, "look_ahead": 0},
    "longformer": {"as": "paper", "global_tokens": 1, "window": 256},
    "reformer": {"as": "paper", "buckets": 0, "chunk": 64, "rounds": 4},
    "truncated": {"window": 64},
    "sinkhorn": {"as": "lra", "block": 50},
    "synthesizer": {"as": "lra"},
    "bigbird": {"as": "lra"},
    "mean": {},
}


class Plant:
    """Collects rows; `noise` is the relative scatter of times between processes."""

    def __init__(self, noise: float = 0.005) -> None:
        self.rows: list[Row] = []
        self.noise = noise
        self._rng = np.random.default_rng(3)

    def time(self, variant: str, length: int, seconds: float, **more: Any) -> None:
        params, axes = _told(variant, length, more)
        between = np.repeat(self.noise * self._rng.normal(size=VISITS), EACH)
        within = 0.001 * self._rng.normal(size=VISITS * EACH)
        samples = seconds * np.exp(between + within)
        row = fixture.timed(variant, params, axes | {"repetitions": 9}, samples, length)
        medians = np.log([np.median(samples[i * EACH : (i + 1) * EACH]) for i in range(VISITS)])
        reach = 4.303 * medians.std(ddof=1) / np.sqrt(VISITS)  # Student's t of two degrees
        row["metrics"]["time_s"] |= {
            "ci_low": float(np.exp(medians.mean() - reach)),
            "ci_high": float(np.exp(medians.mean() + reach)),
        }
        self.rows.append(row | {"visits": [EACH] * VISITS})

    def peak(self, variant: str, length: int, peak: float, **more: Any) -> None:
        params, axes = _told(variant, length, more)
        metrics = {"peak_bytes": round(peak), "weights_bytes": 0, "activations_bytes": round(peak),
                   "workspace_bytes": 0, "state_bytes": None, "rss_peak_bytes": round(peak),
                   "extra_bytes": round(peak)}  # fmt: skip
        self.rows.append(fixture.cell("memory", variant, params, axes, metrics=metrics))

    def both(self, variant: str, lengths: Iterable[int], seconds: Callable[[int], float],
             peak: Callable[[int], float], **more: Any) -> None:  # fmt: skip
        for n in lengths:
            self.time(variant, n, seconds(n), **more)
            self.peak(variant, n, peak(n), **more)

    def error(self, variant: str, value: float, **more: Any) -> None:
        params, axes = _told(variant, more.pop("length", 4096), more)
        metrics = {"relative_error": value, "cosine": None, "weights_kl": None}
        self.rows.append(fixture.cell("fidelity", variant, params, axes, metrics=metrics))

    def score(self, variant: str, task: str, test: float, seed: int, **more: Any) -> None:
        params, _ = _told(variant, 64, more)
        training = {"learning_rate": more.get("rate", 1e-3)} | more.get("training", {})
        metrics = {"metric": "accuracy", "test": test, "test_stderr": 0.005, "validation": more.get("validation", test),
                   "chance": 0.1, "shortcuts": more.get("shortcuts", {"majority": 0.1}), "lift": 0.0, "steps": 20,
                   "examples": 20, "train_s": 1.0, "examples_per_s": 20.0, "parameters": 10,
                   "final_train_loss": more.get("loss", 1.0)}  # fmt: skip
        axes = {"length": 64, "causal": False, "threads": 1, "seed": seed}
        curve = [{"step": s, "train_loss": more.get("loss", 1.0) * 20 / s, "validation": test, "seconds": s}
                 for s in range(1, 21)]  # fmt: skip
        row = fixture.cell("accuracy", variant, params, axes, metrics=metrics, samples=curve,
                           task={"name": task, "params": more.get("task_params", {})})  # fmt: skip
        row["cell"] = fixture.key_of([row["cell"], training])
        if "by_params" in more:
            row["metrics"]["by_params"] = more["by_params"]
            row["test_with"] = [one["params"] for one in more["by_params"]]
        if "by_task" in more:
            row["metrics"]["by_task"] = more["by_task"]
            row["test_on"] = [one["params"] for one in more["by_task"]]
        self.rows.append(row | {"training": training, "tuned": ["learning_rate"]})

    def write(self, folder: Path, name: str, source: Path, *, find: bool = False) -> None:
        """As rows of the sweep file `source`."""
        sweeps = [_sweep_of(measure, [r for r in self.rows if r["measure"] == measure])
                  for measure in dict.fromkeys(r["measure"] for r in self.rows)]  # fmt: skip
        config = {"profile": None, "profile_version": None, "protocol": 1, "sweeps": sweeps, "jobs": 0,
                  "timeout_s": 600.0, "max_memory_bytes": 0, "shard": "0/1", "pin": "auto",
                  "sweep_file": source.read_text(encoding="utf-8")}  # fmt: skip
        head = fixture.header() | {"config": config | ({"find": "crossing"} if find else {}), "order_seed": 1}
        head |= {"started_at": "2026-01-01T00:00:00Z",
                 "variants": [{"name": n, "order": i, "family": "any"} for i, n in enumerate(DEFAULTS)]}  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        fixture.write(folder / f"{name}.jsonl", self.rows, head)


def plant(kind: str) -> Plant:
    """Rows whose times scatter as those of their kind."""
    return Plant(noise=0.7 if kind == "noisy" else 0.004)


def entry_file(name: str) -> Path:
    return FOLDER / name


def records(folder: Path, name: str, found: Iterable[Row]) -> None:
    """As rows of a program."""
    schema = {"schema": "attnbench-reproduction/1"}
    head = schema | {"kind": "run", "program": f"{name}.py", "small": False,
                     "environment": fixture.header()["environment"]}  # fmt: skip
    lines = [head, *(schema | {"kind": "record"} | record for record in found)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _told(variant: str, length: int, more: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and axes of a row, from both in one."""
    params = DEFAULTS[variant]
    axes = fixture.shape(length, "forward", "attention", False) | {"threads": 1, "seed": 0}
    axes |= {k: v for k, v in more.items() if k in (*axes, "input_scale")}
    return {k: more.get(k, v) for k, v in params.items()}, axes


def _sweep_of(measure: str, rows: list[Row]) -> Row:
    own = [r for r in rows if r["variant"]["name"] != "full"]
    axes: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row["axes"].items():
            if value not in axes.setdefault(name, []):
                axes[name].append(value)
    return {"measure": measure, "variants": sorted({_spec(r) for r in own}), "tasks": [], "axes": axes,
            "training": [], "tuned": []}  # fmt: skip


def _spec(row: Row) -> str:
    params = row["variant"]["params"]
    told = ",".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in sorted(params.items()))
    return row["variant"]["name"] + (f"[{told}]" if told else "")
