"""Synthetic rows of any number of variants, in families, for every kind of picture; of many
variants fewer panels."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from attnbench.plots.rows.read import Rows, read_rows

from .. import fixture
from . import probe_rows

Variant = tuple[str, str, dict[str, Any]]  # name, family, parameters
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
# Families with the names of their first members; the others are numbered.
FAMILIES = {
    "exact": ("full",),
    "pattern": ("truncated", "local", "sparse", "longformer", "bigbird", "graph"),
    "low rank": ("linformer",),
    "kernel": ("performer", "linear"),
    "other scores": ("relu", "additive"),
    "convolution": ("conv", "window_mlp"),
    "recurrent": ("recurrent",),
    "hashing or routing": ("reformer", "sinkhorn"),
    "synthetic": ("synthesizer",),
    "control": ("mean",),
}
PARAMS = dict(fixture.VARIANTS)
SLOW = "recurrent"  # a hundred times slower than the others
TASKS = ("image", "listops")


def variants(count: int) -> list[Variant]:
    """The 19 of FAMILIES and more members of some of them, family by family; of 5 the fixture's."""
    if count == 5:
        names = [name for name, _ in fixture.VARIANTS]
        every = variants(19)
        return [v for v in every if v[0] in names]
    chosen = [
        (name, family, PARAMS.get(name, {})) for family, own in FAMILIES.items() for name in own
    ]
    growing = ("pattern", "low rank", "kernel", "recurrent", "hashing or routing", "other scores")
    extra: dict[str, list[Variant]] = {family: [] for family in FAMILIES}
    for number in range(count - len(chosen)):
        family = growing[number % len(growing)]
        extra[family].append((f"{family.split()[0]}_attention_{number}", family, {}))
    return [v for f in FAMILIES for v in (*(c for c in chosen if c[1] == f), *extra[f])]


def header(chosen: list[Variant]) -> dict[str, Any]:
    listed = [
        {"name": name, "order": i, "family": family, "params": params}
        for i, (name, family, params) in enumerate(chosen)
    ]
    return fixture.header() | {"variants": listed}


def cells(chosen: list[Variant]) -> list[dict[str, Any]]:
    rng = np.random.default_rng(11)
    out: list[dict[str, Any]] = []
    few = len(chosen) < 10
    for index, (name, _, params) in enumerate(chosen):
        out += _speed(rng, index, name, params, few) + _memory(index, name, params)
        out += _accuracy(rng, index, name, params, few) + _fidelity(index, name, params, few)
        out += _reach(index, name, params, few)
    out += _memory(0, "full", {"kernel": "materialized"})
    return out


def _seconds(index: int, name: str, n: int) -> float:
    if name == "full" or index % 9 == 8:
        return 1.1e-8 * n**2 * (1 + 0.1 * index) + 2e-7 * n
    return n * 4e-6 * (1 + (index * 37 % 23) / 6) * (100 if name == SLOW else 1)


def _speed(
    rng: np.random.Generator, index: int, name: str, params: Any, few: bool
) -> list[dict[str, Any]]:
    out = []
    for mode, causal in (("forward", False), ("train", True))[: 2 if few else 1]:
        for n in LENGTHS:
            axes = fixture.shape(n, mode, "attention", causal)
            why = None
            if causal and index % 6 == 5:
                why = ("skipped", fixture.NO_CAUSAL)
            elif index % 10 == 7 or index % 10 == 6 and n == LENGTHS[-1]:
                why = ("timeout", "took over 600 s")
            if why:
                broken = {"status": why[0], "reason": why[1]}
                out.append(fixture.cell("speed", name, params, axes, **broken))
                continue
            base = _seconds(index, name, n) * (3 if mode == "train" else 1)
            samples = base * (1 + 0.03 * rng.gamma(2.0, 1.0, 9))
            out.append(fixture.timed(name, params, axes, samples, tokens=n))
    return out


def _memory(index: int, name: str, params: Any) -> list[dict[str, Any]]:
    square = 16 if params.get("kernel") == "materialized" or index % 9 == 8 else 0
    return [
        fixture.cell(
            "memory",
            name,
            params,
            fixture.shape(n, "forward", "attention", False),
            metrics={"peak_bytes": int(square * n**2 + n * 4200 * (1 + index % 5 / 4))},
        )
        for n in LENGTHS
    ]


def _accuracy(
    rng: np.random.Generator, index: int, name: str, params: Any, few: bool
) -> list[dict[str, Any]]:
    """Performer's is of more features than its costs; of few variants on more tasks."""
    out = []
    if name == "performer":
        params = {**params, "features": 256}
    for task in TASKS if few else TASKS[:1]:
        test = float(np.clip(0.5 + 0.25 * rng.standard_normal(), 0.03, 0.99))
        bins = [
            {"from": d, "to": d + 24, "labels": 200, "accuracy": test / (1 + i / 4), "stderr": 0.02}
            for i, d in enumerate((0, 25, 50, 75, 100))
        ]
        longer = [
            {"factor": f, "length": 64 * f, "test": test / f**0.3, "stderr": 0.01}
            | {"chance": 0.06, "reason": None}
            for f in (1, 2, 4)
        ]
        state = 1024 * (index % 7 + 1) ** 2
        hops = [
            {"from": h, "to": h, "labels": 300, "examples": 100, "test": test / h**0.5, "stderr": 0.02} for h in (1, 2, 3)
        ]
        more = {"by_distance": bins, "by_length": longer, "state_bytes": state, "slices": {"hops": hops}}
        row = probe_rows.cell(
            name,
            task,
            test,
            params=params,
            causal=False,
            **(more if task == TASKS[0] else {}),
        )
        if few or task == TASKS[0]:
            row["metrics"]["flops"] = 1e7 * (1 + index % 5)
            row["samples"] = [
                {"step": s, "train_loss": 1.0, "validation": test * s / 800, "seconds": s * (1 + index % 4) / 70}
                for s in (100, 200, 400, 800)
            ]
        out.append(row)
    return out


def _reach(index: int, name: str, params: Any, few: bool) -> list[dict[str, Any]]:
    """Falls with the distance, for half of the variants to an edge; of many variants one panel."""
    return [
        probe_rows.reach_cell(
            name,
            params,
            layers,
            lambda d, most=16 * layers: 0.3 / d if index % 2 or d <= most else 0.0,
            causal=not few,
        )
        for layers in ((1, 2, 4) if few else (2,))
    ]


def _fidelity(index: int, name: str, params: Any, few: bool) -> list[dict[str, Any]]:
    out = []
    for given in ("random", "needle")[: 2 if few else 1]:
        for scale in (0.5, 1.0, 2.0, 4.0):
            error = 3e-7 if name == "full" else 0.1 * (1 + index % 13) ** 0.7 * scale**0.4
            axes = fixture.shape(512, "forward", "attention", False)
            axes |= {"input": given, "input_scale": scale}
            metrics = {"relative_error": error, "cosine": 0.5, "weights_kl": None}
            out.append(fixture.cell("fidelity", name, params, axes, metrics=metrics))
    return out


def write(path: Path, count: int) -> Path:
    chosen = variants(count)
    return fixture.write(path, cells(chosen), header(chosen))


@cache
def rows(count: int) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        return read_rows([write(Path(folder) / f"many-{count}.jsonl", count)])
