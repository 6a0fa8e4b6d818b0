"""Accuracy cells of probes: decode states, scores at longer lengths, errors and exact matches.

Accuracy cells of two seeds and two learning rates, with accuracy by distance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import fixture

LENGTHS = {  # score at 1, 2, 4, 8 times the length of training, by variant and positions
    ("full", "sinusoidal"): (0.99, 0.71, 0.32, 0.12),
    ("full", "none"): (0.98, 0.93, 0.84, 0.7),
    ("full", "learned"): (0.99, None, None, None),
    ("linear", "none"): (0.82, 0.55, 0.3, 0.15),
}
STATES = {  # bytes and score by heads, or by the parameter of the variant
    ("linear", 8): (4352, 0.31),
    ("linear", 4): (8704, 0.52),
    ("linear", 2): (17408, 0.74),
    ("linear", 1): (34816, 0.9),
    ("performer", 16): (17408, 0.48),
    ("performer", 64): (67584, 0.79),
    ("performer", 256): (268288, 0.93),
    ("full", 0): (65536, 0.99),
}
DEPTHS = {
    "full": (0.99, 0.99, 0.98, 0.99, 0.99),
    "truncated": (0.98, 0.97, 0.2, 0.12, 0.11),
    "linear": (0.9, 0.8, 0.7, 0.6, 0.55),
}
ERRORS = {"full": 0.002, "truncated": 0.16, "linformer": 0.05, "performer": 0.03, "linear": 1.3}
SETTINGS = {"learning_rate": 0.002, "steps": 100, "heads": 2, "positions": "sinusoidal"}


def cell(
    name: str,
    task: str,
    test: float,
    *,
    params: dict[str, Any] | None = None,
    metric: str = "accuracy",
    seed: int = 0,
    training: dict[str, Any] | None = None,
    tuned: tuple[str, ...] = (),
    causal: bool = True,
    **metrics: Any,
) -> dict[str, Any]:
    """One ok row; `training` over the usual settings, `metrics` over the usual figures."""
    settings = {**SETTINGS, **(training or {})}
    error = metric in ("mean_squared_error", "bits_per_token")
    level = {"majority": 0.2, "last_number": 0.17} if error else {"majority": 0.1, "last": 0.14}
    best = min(level.values()) if error else max(level.values())
    row = fixture.cell(
        "accuracy",
        name,
        {**dict(fixture.VARIANTS).get(name, {}), **(params or {})},
        {"length": 64, "causal": causal, "threads": 1, "seed": seed},
        task={"name": task, "params": {"length": 64, "train_examples": 6400}},
        metrics={
            "metric": metric,
            "test": test,
            "test_stderr": 0.04 * test * (1 if error else 1 - test) + 0.001,
            "validation": test,
            "chance": 0.17 if error else 0.06,
            "shortcuts": level,
            "lift": best - test if error else test - best,
            "steps": 100,
            "examples": 3200,
            "train_s": 1.0,
            "examples_per_s": 3200.0,
            "parameters": 9000,
            "state_bytes": None,
            **metrics,
        },
        samples=[{"step": 100, "train_loss": 1.0, "validation": test, "seconds": 1.0}],
    )
    row["cell"] = fixture.key_of([row["cell"], sorted(settings.items())])
    return {**row, "training": settings, "tuned": list(tuned)}


def length_cells() -> list[dict[str, Any]]:
    out = []
    for (name, positions), scores in LENGTHS.items():
        for seed in (0, 1):
            entries = [
                {
                    "factor": 2**i,
                    "length": 64 * 2**i,
                    "test": None if value is None else value - 0.02 * seed,
                    "stderr": None if value is None else 0.01,
                    "chance": None if value is None else 0.06 / (1 + i),
                    "reason": "learned positions end at 64" if value is None else None,
                }
                for i, value in enumerate(scores)
            ]
            more = {"by_length": entries, "training": {"positions": positions}}
            out.append(cell(name, "copy", scores[0] or 0.0, seed=seed, **more))
    return out


def state_cells(tuned: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    out = []
    for (name, value), (state, test) in STATES.items():
        for seed in (0, 1):
            given = {
                "params": {"features": value} if name == "performer" else None,
                "training": {"heads": value} if name == "linear" else None,
                "tuned": tuned,
            }
            score = test - 0.03 * seed
            out.append(cell(name, "mqar", score, seed=seed, state_bytes=state, **given))
    return [*out, cell("truncated", "mqar", 0.2, params={"window": 8}, tuned=tuned)]


def needle_cells() -> list[dict[str, Any]]:
    out = []
    for name, scores in DEPTHS.items():
        bins = [
            {"from": d, "to": d + w, "labels": 200, "accuracy": value, "stderr": 0.02}
            for (d, w), value in zip(((0, 24), (25, 25), (51, 24), (76, 24), (101, 25)), scores)
        ]
        test = sum(scores) / len(scores)
        out.append(cell(name, "needle", test, causal=False, by_distance=bins))
    return out


def error_cells() -> list[dict[str, Any]]:
    """`linear` has learned nothing and is worse than the best constant."""
    metric = "mean_squared_error"
    out = []
    for name, test in ERRORS.items():
        states = {"full": 65536, "linear": 17408, "performer": 33000}
        bins = [
            {"from": first, "to": first + 19, "labels": 90, "accuracy": value, "stderr": test / 9}
            for first, value in zip((1, 21, 41), (test, 1.3 * test, 1.1 * test))
        ]
        longer = [
            {"factor": f, "length": 64 * f, "test": test * f, "stderr": 0.1 * test}
            | {"chance": 0.17, "reason": None}
            for f in (1, 2, 4)
        ]
        more = {"by_distance": bins, "by_length": longer, "state_bytes": states.get(name)}
        out.append(cell(name, "adding", test, metric=metric, causal=False, **more))
    return out


def sequence_cells() -> list[dict[str, Any]]:
    decoding = {
        "sequences": 16,
        "tokens": 300,
        "tokens_per_s": 4000.0,
        "recompute_tokens_per_s": 500.0,
        "speedup": 8.0,
        "same": 1.0,
    }
    return [
        cell(
            name,
            "reverse",
            test,
            metric="exact_match",
            token_accuracy=0.5 + test / 2,
            places=["encoder", "decoder", "cross"] if name != "linformer" else ["encoder", "cross"],
            decoding=decoding if name != "linformer" else None,
            causal=False,
        )
        for name, test in {"full": 0.97, "linear": 0.41, "linformer": 0.3}.items()
    ]


def tested_on_cells() -> list[dict[str, Any]]:
    """`length_cells` by other parameters of the task: at half and twice the length, at a length that the task does not
    have, and, at two lengths, with other symbols."""
    out = []
    for name, score in (("full", 0.9), ("linear", 0.5)):
        on = [
            {"params": {"length": n, "train_examples": 6400} | more, "length": known, "test": test, "stderr": error}
            | {"chance": None if test is None else 0.06, "reason": None if test is not None else "no such length"}
            for n, known, test, error, more in (
                (128, 128, score / 2, 0.01, {}),
                (32, 32, score + 0.05, 0.01, {}),
                (256, 0, None, None, {}),
                (64, 64, 0.1, 0.01, {"symbols": 5}),
                (512, 512, 0.1, 0.01, {"symbols": 5}),
            )
        ]
        out.append(cell(name, "copy", score, by_task=on))
    return out


def effort_cells() -> list[dict[str, Any]]:
    """Two seeds of `full`, of which one stops at step 20, and one of `linear`, of which no FLOPs are known."""
    out = []
    for name, seed, steps, flops in (("full", 0, (10, 20, 30), 1e6), ("full", 1, (10, 20), 1e6), ("linear", 0, (10, 20), None)):
        curve = [
            {"step": s, "train_loss": 1.0, "validation": s / 50 + 0.1 * seed, "seconds": s * (2.0 + seed)} for s in steps
        ]
        figures = {"steps": steps[-1], "examples": 32 * steps[-1], "flops": flops}
        row = cell(name, "copy", 0.6, seed=seed, **figures)
        out.append(row | {"samples": curve})
    return out


def reach_cell(
    name: str,
    params: dict[str, Any],
    layers: int,
    influence: Callable[[int], float],
    *,
    causal: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    past = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 63]
    later = [0.0 if causal else influence(d) for d in past]
    felt = [*zip([-d for d in past], later), (0, 1.0), *((d, influence(d)) for d in past)]
    last = max((d for d in past if influence(d) > 1e-6), default=0)
    reached = {"past": last, "future": 0 if causal else last}
    return fixture.cell(
        "reach",
        name,
        params,
        {"length": 64, "heads": 2, "head_dim": 8, "causal": causal, "threads": 1, "seed": seed, "layers": layers},
        metrics={
            "floor": 1e-6,
            "positions": 16,
            **{method: reached for method in ("gradient", "perturbation", "connected")},
            "by_distance": [
                {"distance": d, "gradient": value / 1.4, "perturbation": value} for d, value in sorted(felt)
            ],
        },
    )


def probe_cells() -> list[dict[str, Any]]:
    return [
        *length_cells(),
        *state_cells(),
        *needle_cells(),
        *error_cells(),
        *sequence_cells(),
    ]


RATES = (0.001, 0.003)
# validation and test by variant and learning rate: the best test is not always the best validation
SCORES = {
    "full": {0.001: (0.90, 0.80), 0.003: (0.70, 0.95)},
    "linear": {0.001: (0.40, 0.41), 0.003: (0.60, 0.59)},
}


def by_distance(test: float, seed: int) -> list[dict[str, Any]]:
    edges = ((1, 15), (16, 31 + seed), (32 + seed, 63))
    return [
        {"from": low, "to": high, "labels": 300, "accuracy": test - 0.1 * i, "stderr": 0.01}
        for i, (low, high) in enumerate(edges)
    ]


def cells() -> list[dict[str, Any]]:
    out = []
    for name in SCORES:
        for rate in RATES:
            for seed in (0, 1):
                out.append(_cell(name, rate, seed))
    return out


def _cell(name: str, rate: float, seed: int) -> dict[str, Any]:
    validation, test = (x + 0.01 * seed for x in SCORES[name][rate])
    row = fixture.cell(
        "accuracy",
        name,
        dict(fixture.VARIANTS)[name],
        {"length": 64, "causal": True, "threads": 1, "seed": seed},
        task={"name": "mqar", "params": {"length": 64, "train_examples": 6400}},
        metrics={
            "metric": "accuracy",
            "test": test,
            "test_stderr": 0.01,
            "validation": validation,
            "chance": 0.016,
            "shortcuts": {"majority": 0.03},
            "lift": test - 0.03,
            "steps": 100,
            "examples": 3200,
            "train_s": 1.0,
            "examples_per_s": 3200.0,
            "parameters": 9000,
            "by_distance": by_distance(test, seed),
        },
        samples=[{"step": 100, "train_loss": 1.0, "validation": validation, "seconds": 1.0}],
    )
    row["cell"] = row["cell"][:12] + f"{RATES.index(rate):04d}"
    return {**row, "training": {"learning_rate": rate, "steps": 100}, "tuned": ["learning_rate"]}
