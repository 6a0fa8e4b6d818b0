"""Rows files of several machines with planted ratios: real rows of results/reference/quick.jsonl with another environment, other times and their
checksums anew."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attnbench.plots.rows.checksum import FIELD, hash_of
from attnbench.plots.rows.read import read_rows
from attnbench.pooling.figures import Group
from attnbench.pooling.machines import Fleet, fleet_of

from ..faults import ROOT, InFolder

QUICK = ROOT / "results" / "reference" / "quick.jsonl"
LENGTHS = (128, 256, 512, 1024, 2048)
SPECS = {"full": {"kernel": "tiled"}, "linear": {}, "truncated": {"window": 16}}
Row = dict[str, Any]


@cache
def _real() -> tuple[Row, ...]:
    return tuple(json.loads(line) for line in QUICK.read_text().splitlines())


def head() -> Row:
    """The run line without its sweeps and the variants that are not planted, which nothing here reads."""
    row = copy.deepcopy(_real()[0])
    row["config"]["sweeps"] = []
    row["variants"] = [v for v in row["variants"] if v["name"] in SPECS]
    return row


def cell(measure: str, variant: str, **axes: Any) -> Row:
    """A real ok cell of this measure, variant and axes."""
    for row in _real()[1:]:
        told = row["variant"]["name"] == variant and row["variant"]["params"] == SPECS[variant]
        if row["measure"] == measure and row["status"] == "ok" and told and all(row["axes"].get(k) == v for k, v in axes.items()):
            return copy.deepcopy(row)
    raise AssertionError(f"{QUICK.name} has no {measure} of {variant} with {axes}")


FORWARD = {"scope": "attention", "mode": "forward", "causal": False, "head_dim": 64, "heads": 2}


@dataclass
class Planted:
    """A machine. Times are `slowness` times those of the real rows for exact attention; a variant's are `ratio(variant, length)` of these. Each visit
    is off by a deviation of `noise`, its three samples by a tenth of that."""

    name: str
    ratio: Callable[[str, int], float]
    slowness: float = 1.0
    noise: float = 0.02
    seed: int = 0
    visits: int = 3
    environment: dict[str, Any] = field(default_factory=dict)
    lengths: Iterable[int] = LENGTHS
    variants: Iterable[str] = ("linear", "truncated")
    changes: Callable[[Row], None] = lambda row: None
    more: Iterable[Row] = ()
    head_changes: dict[str, Any] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        first = head()
        first["run"] = f"{abs(hash_number(self.name)):016x}"
        first["environment"] |= {"cpu_model": f"Example {self.name}", **self.environment}
        first |= self.head_changes
        rng = np.random.default_rng(self.seed)
        cells = [self._timed(variant, length, rng) for length in self.lengths for variant in ("full", *self.variants)]
        cells += [copy.deepcopy(row) for row in self.more]
        for row in cells:
            row["run"] = first["run"]
            self.changes(row)
        return [first, *cells]

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.jsonl"
        return write(path, self.rows())

    def _timed(self, variant: str, length: int, rng: np.random.Generator) -> Row:
        row = cell("speed", variant, length=length, **FORWARD)
        exact = cell("speed", "full", length=length, **FORWARD)["metrics"]["time_s"]["median"]
        seconds = exact * self.slowness * (1.0 if variant == "full" else self.ratio(variant, length))
        between = np.repeat(self.noise * rng.normal(size=self.visits), 3)
        samples = seconds * np.exp(between + 0.1 * self.noise * rng.normal(size=3 * self.visits))
        row["samples"], row["visits"] = [float(s) for s in samples], [3] * self.visits
        row["metrics"]["time_s"] |= {"median": float(np.median(samples)), "n": len(samples)}
        row.pop("noisy", None)
        return row


def flat(of_linear: float, of_truncated: float = 2.0) -> Callable[[str, int], float]:
    """Ratios of `linear` and of `truncated` at every length."""
    return lambda variant, length: of_linear if variant == "linear" else of_truncated


def crossing_at(length: float) -> Callable[[str, int], float]:
    """Ratios that are 1 at a length and fall as 1 / length."""
    return lambda variant, n: (length if variant == "linear" else 4 * length) / n


class PlantedCase(InFolder):
    def fleet(self, *machines: Planted) -> Fleet:
        return fleet_of([read_rows([machine.write(self.folder)]) for machine in machines])

    def of(self, groups: list[Group], variant: str, length: int) -> Group:
        return next(g for g in groups if g.place.variant == variant and g.place.length == length)


def write(path: Path, rows: Iterable[Row]) -> Path:
    lines = []
    for row in rows:
        bare = {k: v for k, v in row.items() if k != FIELD}
        lines.append(json.dumps({**bare, FIELD: hash_of(bare)}))
    path.write_text("\n".join(lines) + "\n")
    return path


def hash_number(name: str) -> int:
    return int(hash_of(name), 16)
