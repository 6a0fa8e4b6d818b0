"""Accuracy cells of two seeds and two learning rates, with accuracy by distance."""

from __future__ import annotations

from typing import Any

from .. import fixture

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
