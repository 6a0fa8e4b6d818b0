"""Rows of machines that never were, with known truth: what each variant takes, holds and scores is planted, and noise of visits,
samples and seeds is drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import fixture

Law = Callable[[int], float]
LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)
PARAMS: dict[str, dict[str, Any]] = {"full": {"kernel": "tiled"}, "truncated": {"window": 64}, "performer": {"features": 64}}
FULL_ERRORS = {"chance": 0.02, "shortcuts": {"majority": 0.1}}


def power(seconds: float, exponent: float) -> Law:
    return lambda n: seconds * n**exponent


def square(a: float, b: float) -> Law:
    """As exact attention's: a n² + b n."""
    return lambda n: a * n * n + b * n


EXACT = square(1e-9, 2e-7)


@dataclass
class World:
    """`seconds` and `peaks` are by variant; `tests` by task and variant, a score for each seed. `machines` holds for each machine a
    factor of time by variant. A cell for which `spoil` returns fields gets them."""

    seconds: Mapping[str, Law]
    machines: Sequence[Mapping[str, float]] = ({}, {}, {})
    lengths: Sequence[int] = LENGTHS
    mode: str = "forward"
    causal: bool = False
    peaks: Mapping[str, Law] = field(default_factory=dict)
    states: Mapping[str, Law] = field(default_factory=dict)
    tests: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    spoil: Callable[[dict[str, Any]], dict[str, Any]] = lambda row: {}
    noise: float = 0.01  # standard deviation of a visit's logarithm
    visits: int = 4
    seed: int = 1

    def rows(self, machine: int) -> list[dict[str, Any]]:
        rng = np.random.default_rng([self.seed, machine])
        out = [self._timed(name, n, machine, rng) for name in self.seconds for n in self.lengths]
        out += [self._held(name, n, law(n)) for name, law in self.peaks.items() for n in self.lengths]
        if machine == 0:
            out += [
                self._scored(task, name, seed, test)
                for task, by_variant in self.tests.items()
                for name, tests in by_variant.items()
                for seed, test in enumerate(tests)
            ]
        for row in out:
            row["run"] = f"run-of-machine-{machine}"
            row.update(self.spoil({**row, "machine": machine}))
        return out

    def write(self, folder: Path) -> list[Path]:
        """Writes a file for each machine."""
        files = []
        for machine in range(len(self.machines)):
            head = fixture.header(f"run-of-machine-{machine}")
            names = dict.fromkeys([*self.seconds, *self.peaks, *(v for by in self.tests.values() for v in by)])
            head["variants"] = [{"name": n, "order": i, "family": "planted", "params": PARAMS.get(n, {})} for i, n in enumerate(names)]
            head["environment"] = {**head["environment"], "cpu_model": f"Planted CPU {machine + 1}"}
            files.append(fixture.write(folder / f"machine{machine}.jsonl", self.rows(machine), head))
        return files

    def _axes(self, length: int) -> dict[str, Any]:
        return fixture.shape(length, self.mode, "attention", self.causal)

    def _timed(self, name: str, length: int, machine: int, rng: np.random.Generator) -> dict[str, Any]:
        middle = self.seconds[name](length) * self.machines[machine].get(name, 1.0)
        visits = middle * np.exp(self.noise * rng.standard_normal(self.visits))
        samples = np.repeat(visits, 3) * np.exp(0.2 * self.noise * rng.standard_normal(3 * self.visits))
        row = fixture.timed(name, PARAMS.get(name, {}), self._axes(length), samples, tokens=length)
        row["visits"] = [3] * self.visits
        row["verified"] = {"by": "reference", "shape": [1, 4, length, 64], "rows": 96, "error": 1e-6, "bound": 1e-3, "seconds": 0.1}
        if name in self.states:
            row["metrics"]["state_bytes"] = int(self.states[name](length))
        return row

    def _held(self, name: str, length: int, peak: float) -> dict[str, Any]:
        figures = dict.fromkeys(("weights_bytes", "activations_bytes", "workspace_bytes", "state_bytes"), 64)
        metrics = {"peak_bytes": int(peak), **figures, "rss_peak_bytes": int(peak) + 9**8}
        return fixture.cell("memory", name, PARAMS.get(name, {}), self._axes(length), metrics=metrics)

    def _scored(self, task: str, name: str, seed: int, test: float) -> dict[str, Any]:
        metrics = {
            "metric": "accuracy",
            "test": test,
            "test_stderr": (max(test * (1 - test), 1e-4) / 1000) ** 0.5,
            "validation": test,
            **FULL_ERRORS,
            "lift": test / 0.1,
            "steps": 2000,
            "examples": 64000,
            "train_s": 31.0,
            "examples_per_s": 2064.0,
            "parameters": 90000,
            "ended_by": "plateau",
        }
        axes = {"length": 64, "causal": self.causal, "threads": 1, "seed": seed}
        what = {"name": task, "params": {"length": 64, "train_examples": 6400}}
        return fixture.cell("accuracy", name, PARAMS.get(name, {}), axes, task=what, metrics=metrics, samples=[])
