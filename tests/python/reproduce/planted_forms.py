"""Planted rows of the entries of scripts/reproduce on closed forms and numerics, R1 to R13: laws that agree, that disagree, and rows that
do not tell. As cheap as writing the files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from attnbench.reproduce.product import load

from .planted import TEXTBOOK, TILED, entry_file, plant, records


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


def r13(folder: Path, kind: str) -> None:
    alphas = (0.5, 4.0) if kind == "noisy" else (0.5, 4.0, 16.0)
    found = []
    for alpha in alphas:
        weight = 1 / sum(math.exp(-alpha * k * k) for k in range(-40, 41))
        off = 0.05 if kind == "disagrees" else 1e-6
        found.append({"length": 64, "alpha": alpha, "weight_least": weight - off, "weight_most": weight, "error_at_ends": 0.5,
                      "error_inside": 1 - weight + off})  # fmt: skip
    records(folder, "convolution", [] if kind == "noisy" else found)
