"""Planted rows of the entries of scripts/reproduce: times, bytes, scores and errors by given laws.

Planted rows of the entries of scripts/reproduce on closed forms and numerics, R1 to R13: laws that agree, that disagree, and rows that
do not tell. As cheap as writing the files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from attnbench.reproduce.entries import FOLDER
from attnbench.reproduce.product import load

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


def r1(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    verdict = load(entry_file("R1/verdict.py"))
    for feature_kind in ("positive", "hyperbolic"):
        for length, angle in ((0.5, 0.5), (1.0, 2.8)):
            for batch in range(8):
                one = {"kind": feature_kind, "length": length, "angle": angle, "directions": 16, "batch": batch}
                spread = math.exp((1.0 if kind == "noisy" else 0.01) * rng.normal())
                factor = 1.5 if kind == "disagrees" else 1.0
                mean = math.exp(length**2 * math.cos(angle)) * (1 + 1e-3 * rng.normal())
                found.append(one | {"mean": mean, "squared_error": factor * spread * verdict.form(one)})
    records(folder, "pairs", found)


def r2(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    bound = load(entry_file("R2/verdict.py")).bound
    for length, angle in ((0.5, 0.5), (0.75, 1.5)):
        for orthogonal in (True, False):
            for batch in range(8):
                one = {"length": length, "angle": angle, "dim": 8, "batch": batch, "orthogonal": orthogonal}
                gain = {"agrees": 2.0, "disagrees": 0.1, "noisy": 1.0}[kind] * bound(one)
                error = (5 * bound(one) - gain * orthogonal) * math.exp((0.5 if kind == "noisy" else 0.005) * rng.normal())
                mean = math.exp(length**2 * math.cos(angle)) * (1 + 1e-3 * rng.normal())
                found.append(one | {"mean": mean, "squared_error": error})
    records(folder, "gain", found)


def r3(folder: Path, kind: str) -> None:
    rows, rng = plant(kind), np.random.default_rng(1)
    gain = {"agrees": 0.5, "disagrees": 2.0, "noisy": 0.9}[kind]
    for seed in range(15):
        for m in (16, 64, 256):
            for scale in (0.5, 1.0, 2.0):
                for orthogonal in (True, False):
                    error = (gain if orthogonal else 1.0) / math.sqrt(m) * math.exp(rng.normal() * (2 if kind == "noisy" else 0.1))
                    rows.error("performer", error, features=m, orthogonal=orthogonal, seed=seed, input_scale=scale)
    rows.write(folder, "fidelity", entry_file("R3/fidelity.toml"))


def r4(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    for seed in range(5):
        for factor in (1.1, 3.0, 6.0):
            leak = {"agrees": 0.3, "disagrees": 1e-9, "noisy": 0.01}[kind] * math.exp((1 if kind == "noisy" else 0.1) * rng.normal())
            one = {"seed": seed, "factor": factor, "moved_last": 0.5}
            found.append(one | {"stabiliser": "over all keys", "constant": 1e-4, "moved_earlier": leak})
            found.append(one | {"stabiliser": "over the keys so far", "constant": 0.0, "moved_earlier": 0.0})
    records(folder, "leak", found)


def r5(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    power = 0.0 if kind == "disagrees" else 1.0
    for seed in range(5):
        spread = math.exp((2.0 if kind == "noisy" else 0.05) * rng.normal())
        for n in (1024, 8192):
            found.append({"seed": seed, "length": n, "of": "subtraction", "residual": 1e-6 * n**power * spread ** (n > 1024), "early": 1e-6})
        for n in (1024, 4096):
            found.append({"seed": seed, "length": n, "of": "stored states", "error": 1e-6})
    records(folder, "subtraction", found)


def r6(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    share = {"agrees": 0.9, "disagrees": 0.3, "noisy": 0.5}[kind]
    for seed in range(5):
        for correlation in (0.0, 0.98):
            for spread in (1.0, 4.0):
                one = {"seed": seed, "correlation": correlation, "spread": spread, "length": 512, "index": 128}
                near = share + (0.1 if kind == "noisy" else 0.01) * rng.normal()
                found.append(one | {"share": near, "share_of_squares": near, "effective_rank": 512 * near})
    records(folder, "spectra", found)


def r7(folder: Path, kind: str) -> None:
    rows = plant(kind)
    for mode in ("forward", "train"):
        for n in (1024, 2048, 4096, 8192):
            if kind == "noisy" and n == 4096:
                continue  # memory is exact: what leaves it undecided is a missing row
            rows.peak("full", n, n * n * (80 if kind == "disagrees" else 4), mode=mode, **TEXTBOOK)
            rows.peak("full", n, 820 * n, mode=mode, **TILED)
    rows.write(folder, "memory", entry_file("R7/memory.toml"))


def r8(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    for seed in range(8):
        for rounds in (1, 2, 4, 8):
            power = rounds if kind != "disagrees" else math.sqrt(rounds)
            p = 1 - 0.5**power + (0.3 * rng.normal() if kind == "noisy" else 0.001 * rng.normal())
            found.append({"seed": seed, "rounds": rounds, "found": p, "mass": p / 2, "seen": 0.03 * rounds})
    records(folder, "hashing", found)


def r9(folder: Path, kind: str) -> None:
    """The delta rule is better with β = 1/4 where keys are re-bound, and as good with 1/16 where not."""
    rng, found = np.random.default_rng(1), []
    gain = {"agrees": 0.3, "disagrees": -0.3, "noisy": 0.0}[kind]
    scatter = 0.3 if kind == "noisy" else 0.001
    for keys, pairs, strengths in (("orthonormal", 64, (1.0,)), ("orthonormal", 128, (1.0,)),
                                   ("random", 16, (1 / 16, 1 / 4, 1.0)), ("random", 128, (1 / 16, 1 / 4, 1.0))):  # fmt: skip
        for times in ("written once", "re-bound"):
            for rule, strength in [("sums", 0.0), *(("delta rule", s) for s in strengths)]:
                lost = rule == "sums" and (pairs > 64 or times == "re-bound")
                better = gain if rule == "delta rule" and (times, strength) == ("re-bound", 1 / 4) else 0
                for draw in range(8):
                    near = scatter * rng.normal()
                    one = {"keys": keys, "pairs": pairs, "times": times, "rule": rule, "strength": strength,
                           "draw": draw, "testing": draw >= 4}  # fmt: skip
                    error = 1 + 0.01 * near if lost else 1e-28
                    worse = -0.3 if kind == "disagrees" and rule == "delta rule" else 0
                    found.append(one | {"accuracy": 0.6 + (better or worse) + near, "squared_error": error})
    records(folder, "recall", found)


def r10(folder: Path, kind: str) -> None:
    off = 1e-2 if kind == "disagrees" else 1e-15
    found = []
    for variant in ("retention", "kda"):
        for of_type, unit in (("float32", 1e8), ("float64", 1.0)):
            for form in ("recurrent", "parallel", "chunks of 16", "library"):
                one = {"of": "forms", "variant": variant, "rate": 0.02, "seed": 0, "length": 512, "type": of_type}
                wrong = off if form == "parallel" else 1e-15
                found.append(one | {"form": form, "difference": min(wrong * unit, 1.0)})
        found.append({"of": "decoding", "variant": variant, "check": "decode", "kept": True})
    for of_type, largest in (("float32", 88.7), ("float64", 709.8)):
        if kind != "noisy":  # exact: what leaves it undecided is a missing record
            found.append({"of": "overflow", "type": of_type, "chunk": 64, "logarithm": 0.99 * largest})
    records(folder, "forms", found)


def r11(folder: Path, kind: str) -> None:
    """Six iterations and 20 err as the pseudo-inverse does, which is exact for as many landmarks as tokens."""
    rng, found = np.random.default_rng(1), []
    scatter = 3 if kind == "noisy" else 0.02
    power = 0.5 if kind == "disagrees" else -1.0
    near = {"agrees": 1e-3, "disagrees": 0.9, "noisy": 0.1}[kind]
    for correlation in (0.0, 0.98):
        for seed in range(8):
            told = {"correlation": correlation, "seed": seed}
            found.append(told | {"of": "equal weights", "error": 0.9})
            for m in (16, 32, 64, 128, 256, 512):
                one = told | {"landmarks": m}
                found.append(one | {"of": "weights", "condition": 100.0 * m})
                for step, residual in ((0, 1 - 1e-9), (6, near * math.exp(scatter * rng.normal()) if kind == "noisy" else near), (20, 1e-12)):
                    found.append(one | {"of": "residual", "iteration": step, "residual": residual})
                for steps in (6, 20, 0):
                    error = 1e-15 if (m, steps) == (512, 0) else (m / 16) ** power * 0.1 * math.exp(scatter * rng.normal())
                    found.append(one | {"of": "outputs", "iterations": steps, "error": error})
                    found.append(one | {"of": "NumPy", "iterations": steps, "difference": 1e-14})
    records(folder, "landmarks", found)


def r12(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    change = {"agrees": 1e-15, "disagrees": 0.1, "noisy": 1e-12}[kind]
    for correlation in (0.0, 0.98):
        for seed in range(8):
            told = {"correlation": correlation, "seed": seed}
            for length in (129, 256):
                one = told | {"prefix": 128, "length": length}
                for variant in ("cosformer", "cosformer[span=2048]", "linear", "full"):
                    own = change * math.exp(0.1 * rng.normal()) if variant == "cosformer" else 0.0
                    found.append(one | {"of": "prefix", "variant": variant, "change": own})
                found.append(one | {"of": "prefix of the same M", "variant": "cosformer", "change": 0.0})
            for position in (1, 128):
                one = told | {"variant": "cosformer", "prefix": 128, "length": 256}
                found.append(one | {"of": "position", "position": position, "change": change * position / 128})
            found.append(told | {"of": "doubling", "variant": "cosformer", "prefix": 64, "length": 128, "change": change})
    records(folder, "prefix", found)


def r13(folder: Path, kind: str) -> None:
    alphas = (0.5, 4.0) if kind == "noisy" else (0.5, 4.0, 16.0)
    found = []
    for alpha in alphas:
        weight = 1 / sum(math.exp(-alpha * k * k) for k in range(-40, 41))
        off = 0.05 if kind == "disagrees" else 1e-6
        found.append({"length": 64, "alpha": alpha, "weight_least": weight - off, "weight_most": weight, "error_at_ends": 0.5,
                      "error_inside": 1 - weight + off})  # fmt: skip
    records(folder, "convolution", [] if kind == "noisy" else found)
