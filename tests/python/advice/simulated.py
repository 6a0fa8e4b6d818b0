"""Simulated rows in which truth is known and hard: variants as fast as exact attention to the last digit, crossings that lie just at the
length asked for, machines that differ, scores that keep exactly as much as is asked. How often an answer claims what is not so:
PYTHONPATH=python:scripts .venv/bin/python -m tests.python.advice.simulated [TRIALS]."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnbench.advice.evidence import Evidence
from attnbench.advice.question import Question
from attnbench.advice.scoring import KEEP
from attnbench.advice.standing import table
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Rows, read_rows

from .planted import EXACT, Law, World, power

NAMES = [f"variant{i}" for i in range(8)]


@dataclass
class Tally:
    """`wrong`: answers with a claim that is not so. `claimed`: how many of the `clear` cases are claimed, rightly."""

    answers: int = 0
    wrong: int = 0
    claimed: int = 0
    clear: int = 0
    covered: int = 0  # intervals that hold the truth
    intervals: int = 0

    @property
    def share(self) -> float:
        return self.wrong / self.answers


Truth = dict[str, list[float]]  # by variant: the ratio on each machine at the length asked for
Draw = Callable[[np.random.Generator], tuple[World, Question, Truth]]


def alike(rng: np.random.Generator) -> tuple[World, Question, Truth]:
    """Half of the variants take exactly the time of exact attention, the others a little less or more."""
    factors = {name: 1.0 if i % 2 else float(np.exp(rng.normal(0, 0.05))) for i, name in enumerate(NAMES)}
    count = int(rng.integers(1, 5))
    laws: dict[str, Law] = {name: (lambda n, f=f: f * EXACT(n)) for name, f in factors.items()}
    world = World({"full": EXACT, **laws}, machines=[{}] * count, lengths=(1024, 2048, 4096), visits=int(rng.integers(3, 6)), seed=int(rng.integers(1 << 30)))
    return world, Question(2048), {name: [f] * count for name, f in factors.items()}


def crossing(rng: np.random.Generator) -> tuple[World, Question, Truth]:
    """Half of the variants cross exact attention just at a length between two that were measured."""
    length = int(rng.integers(300, 14000))
    step = int(rng.choice([2, 4]))
    lengths = [256 * step**i for i in range(8) if 256 * step**i <= 16384]
    exponents = rng.uniform(0.3, 1.3, len(NAMES))
    offsets = [1.0 if i % 2 else float(np.exp(rng.normal(0, 0.3))) for i in range(len(NAMES))]
    curve = float(np.exp(rng.normal(0, 1.5)))  # where the square of exact attention takes over
    exact: Law = lambda n: 1e-9 * (n * n + 200 * curve * n)
    laws: dict[str, Law] = {}
    for name, exponent, offset in zip(NAMES, exponents, offsets, strict=True):
        scale = offset * exact(length) / length**exponent
        laws[name] = power(scale, float(exponent))
    world = World({"full": exact, **laws}, machines=[{}] * int(rng.integers(1, 4)), lengths=lengths, seed=int(rng.integers(1 << 30)))
    return world, Question(length), {name: [laws[name](length) / exact(length)] * len(world.machines) for name in NAMES}


def apart(rng: np.random.Generator) -> tuple[World, Question, Truth]:
    """Machines differ about a mean of which nothing is known, or about exact attention's time itself."""
    count = int(rng.integers(2, 6))
    tau = float(rng.choice([0.02, 0.1, 0.4]))
    means = [0.0 if i % 2 else float(rng.normal(0, 0.5)) for i in range(len(NAMES))]
    machines = [{name: float(np.exp(rng.normal(mean, tau))) for name, mean in zip(NAMES, means, strict=True)} for _ in range(count)]
    world = World({"full": EXACT, **dict.fromkeys(NAMES, EXACT)}, machines=machines, lengths=(2048,), seed=int(rng.integers(1 << 30)))
    return world, Question(2048), {name: [m[name] for m in machines] for name in NAMES}


def times(draw: Draw, trials: int, seed: int) -> Tally:
    """Counts answers that call a variant faster or slower than exact attention which is not so on every machine, or that rank the
    fastest second."""
    rng, tally = np.random.default_rng(seed), Tally()
    for _ in range(trials):
        world, question, truth = draw(rng)
        found = table(Evidence(_read(world)), question)
        wrong = False
        for s in found.standings:
            if s.label not in truth or s.ratio is None:
                continue
            own = truth[s.label]
            is_clear = max(own) < 0.8 or min(own) > 1.25
            tally.clear += is_clear
            if s.time in ("faster", "slower"):
                is_so = max(own) < 1 - 1e-9 if s.time == "faster" else min(own) > 1 + 1e-9
                wrong |= not is_so
                tally.claimed += is_so and is_clear
            for name, estimate in s.ratio.by_machine.items():
                low, high = estimate.interval()
                at = math.log(own[int(name.split(",")[0].rpartition(" ")[2]) - 1])
                tally.intervals += 1
                tally.covered += low <= at <= high
        for one, other in found.timing.beats:
            if one[0] in truth and other[0] in truth:
                wrong |= not all(a < b for a, b in zip(truth[one[0]], truth[other[0]], strict=True)) and _is_fastest(other[0], truth)
        tally.answers += 1
        tally.wrong += wrong
    return tally


def _is_fastest(name: str, truth: Truth) -> bool:
    return all(max(truth[name]) <= min(other) for other in truth.values())


def scores(trials: int, seed: int, *, is_bimodal: bool = False) -> Tally:
    """Counts answers that say of a score that it keeps or loses what it does not. Half of the variants keep exactly KEEP; where
    training is bimodal, a seed in ten fails. To keep is said of trainings that do not fail: few seeds do not tell how many
    fail, and the answer says how many could (words.hidden_failures)."""
    rng, tally = np.random.default_rng(seed), Tally()
    best, nothing = 0.95, 0.1
    for _ in range(trials):
        shares = {n: KEEP if i % 2 else float(rng.choice([0.5, 0.85, 0.93, 0.97, 1.0, 1.02])) for i, n in enumerate(NAMES)}
        seeds, spread = int(rng.integers(3, 7)), float(rng.choice([0.002, 0.01, 0.05]))
        tests = {"full": list(np.clip(rng.normal(best, spread, seeds), 0, 1))}
        means = {"full": best}
        for name, share in shares.items():
            middle = nothing + share * (best - nothing)
            drawn = rng.normal(middle, spread, seeds)
            if is_bimodal:
                drawn = np.where(rng.random(seeds) < 0.1, nothing, drawn)
                middle = 0.9 * middle + 0.1 * nothing
            tests[name], means[name] = list(np.clip(drawn, 0, 1)), middle
        laws = {"full": EXACT, **dict.fromkeys(NAMES, power(1e-7, 1.0))}
        world = World(laws, machines=[{}], lengths=(2048,), tests={"listops": tests}, seed=int(rng.integers(1 << 30)))
        found = table(Evidence(_read(world)), Question(2048, task="listops"))
        wrong = False
        for s in found.standings:
            if s.label not in shares:
                continue
            on_the_whole = (means[s.label] - nothing) / (best - nothing)
            is_clear = abs(shares[s.label] - KEEP) > 0.1 and spread < 0.05
            tally.clear += is_clear
            if s.score in ("keeps", "loses"):
                is_so = shares[s.label] > KEEP + 1e-9 if s.score == "keeps" else on_the_whole < KEEP - 1e-9
                wrong |= not is_so
                tally.claimed += is_so and is_clear
        tally.answers += 1
        tally.wrong += wrong
    return tally


def _read(world: World) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        return published(read_rows(world.write(Path(folder))))


def main(trials: int) -> None:
    for name, draw in (("alike", alike), ("crossing", crossing), ("apart", apart)):
        t = times(draw, trials, 7)
        print(f"{name}: wrong {t.wrong}/{t.answers} = {t.share:.3f}; claimed {t.claimed} of {t.clear} clear ones; intervals hold {t.covered / t.intervals:.3f}")
    for is_bimodal in (False, True):
        t = scores(trials, 8, is_bimodal=is_bimodal)
        print(f"scores, bimodal {is_bimodal}: wrong {t.wrong}/{t.answers} = {t.share:.3f}; claimed {t.claimed} of {t.clear} clear ones")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
