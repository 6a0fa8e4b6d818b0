"""What of a cell can be computed again from the rest of its line: its id, the statistics of its samples, its rates, its score. An edit of
one number shows, unless the whole line was made up consistently: then only measuring again helps."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from statistics import fmean, median
from typing import Any

from ..plots.rows.checksum import hash_of
from ..plots.rows.terms import is_error
from .archive import Line

UNFINISHED = ("steps", "time")  # why a training ended that was cut off
CLOSE = 1e-9  # relative: sums of doubles in another order
MOST_STDERR = 1.0  # of a mean of n scores in [0, 1], times the root of n - 1: twice what is possible, for labels that weigh unequally
_GROUP = re.compile("([0-9]*)q([0-9]+)(k(?!v))?")  # of a workload, see harness/measure/mixed_batch.h
LEAST_PAIRS = 6  # of one visit whose ratio has an interval, as in harness/measure/statistics.cc
LEVEL = 0.5 / 15  # scores of examples in 16 levels, rounded: half of a level


def id_of(cell: Line, run: Line) -> str:
    """The cell's id: the hash of its key, as harness/cell/codec.cc makes it. Raises KeyError where the line lacks a part."""
    key = {
        "protocol": run["config"]["protocol"],
        "measure": cell["measure"],
        "variant": cell["variant"],
        "task": cell["task"],
        "axes": cell["axes"],
        "training": cell.get("training"),
        "source": cell.get("source", {}),
    }
    return hash_of(key | {name: cell[name] for name in ("test_with", "test_on") if name in cell})


def faults_of(cell: Line, run: Line) -> Iterator[str]:
    """Yields what does not fit together in a cell that is ok."""
    by_measure = {"speed": _speed, "memory": _memory, "accuracy": _accuracy, "fidelity": _fidelity}
    if check := by_measure.get(cell["measure"]):
        for name, said, right, tolerance in check(cell, run):
            if not math.isclose(said, right, rel_tol=CLOSE, abs_tol=tolerance):
                yield f"{name} is {said:.6g}, but the rest of the line makes it {right:.6g}"


Claim = tuple[str, float, float, float]  # name, as the line says, as computed, absolute tolerance


def _speed(cell: Line, run: Line) -> Iterator[Claim]:
    metrics, samples = cell["metrics"], cell["samples"]
    time, axes = metrics["time_s"], cell["axes"]
    middle = median(samples)
    yield "metrics.time_s.n", time["n"], len(samples), 0
    yield "metrics.time_s.median", time["median"], middle, 0
    yield "metrics.time_s.mean", time["mean"], fmean(samples), 0
    yield "metrics.time_s.min", time["min"], min(samples), 0
    yield "metrics.time_s.mad", time["mad"], median(abs(s - middle) for s in samples), CLOSE * middle
    visits = cell.get("visits") or [len(samples)]
    yield "the sum of visits", sum(visits), len(samples), 0
    if len(visits) > 1:
        low, high = interval(samples, visits)
        yield "metrics.time_s.ci_low", time["ci_low"], min(low, middle), 0
        yield "metrics.time_s.ci_high", time["ci_high"], max(high, middle), 0
    else:  # of a bootstrap: within the samples, about the median
        yield "metrics.time_s.ci_low", time["ci_low"], min(max(time["ci_low"], min(samples)), middle), 0
        yield "metrics.time_s.ci_high", time["ci_high"], max(min(time["ci_high"], max(samples)), middle), 0
    packed = metrics.get("packed")
    positions = packed["tokens"] if packed else _positions(axes)
    yield "metrics.tokens_per_s", metrics["tokens_per_s"], positions / middle, 0
    if packed:
        yield from _packed(packed, axes, middle)
        if padded := cell.get("padded_samples"):
            yield from _beside(packed, samples, padded, visits)
    if serving := metrics.get("serving"):
        if serving["prompts"]:
            yield "metrics.serving.first_token_s", serving["first_token_s"], middle, 0
        yield "metrics.serving.rounds", serving["rounds"], len(samples), 0
    yield "metrics.flops_per_s", metrics["flops_per_s"], metrics["flops"] / middle, 0
    calibration = run["environment"].get("calibration")
    if metrics.get("peak_fraction") is not None and calibration:
        peak = _peak(calibration, axes["threads"])
        yield "metrics.peak_fraction", metrics["peak_fraction"], metrics["flops_per_s"] / peak, 0
    if witness := cell.get("witness"):
        yield "the number of witnesses", len(witness["flops_per_s"]), len(visits), 0


def _packed(packed: dict[str, Any], axes: dict[str, Any], middle: float) -> Iterator[Claim]:
    tokens = packed["tokens"]
    yield "metrics.packed.sequences", packed["sequences"], axes["batch"], 0
    if "q" in axes["packed"]:
        yield "metrics.packed.tokens", tokens, _listed(axes["packed"]), 0
    yield "metrics.packed.useful", packed["useful"], tokens / (axes["batch"] * axes["length"]), 0
    if padded := packed.get("padded_time_s"):
        yield "metrics.packed.padded_tokens_per_s", packed["padded_tokens_per_s"], tokens / padded["median"], 0
        yield "metrics.packed.speedup", packed["speedup"], padded["median"] / middle, 0


def _beside(packed: dict[str, Any], samples: list[float], padded: list[float], visits: list[int]) -> Iterator[Claim]:
    """The padded pass, whose samples and the packed ones were taken in turn."""
    time, place = packed["padded_time_s"], "metrics.packed.padded_time_s"
    yield "the number of padded_samples", len(padded), len(samples), 0
    yield f"{place}.n", time["n"], len(padded), 0
    yield f"{place}.median", time["median"], median(padded), 0
    yield f"{place}.mean", time["mean"], fmean(padded), 0
    yield f"{place}.min", time["min"], min(padded), 0
    ratio = median(padded) / median(samples)
    low, high = packed.get("speedup_ci_low"), packed.get("speedup_ci_high")
    has_ends = len(visits) > 1 or len(samples) >= LEAST_PAIRS
    yield "the ends of metrics.packed.speedup", int(low is not None) + int(high is not None), 2 if has_ends else 0, 0
    if low is None or high is None or len(padded) != len(samples):
        return
    if len(visits) > 1:
        least, most = ratio_interval(padded, samples, visits)
        least, most = min(least, ratio), max(most, ratio)
    else:  # of a bootstrap: within the ratios, about that of the medians
        least = min(max(low, min(padded) / max(samples)), ratio)
        most = max(min(high, max(padded) / min(samples)), ratio)
    yield "metrics.packed.speedup_ci_low", low, least, 0
    yield "metrics.packed.speedup_ci_high", high, most, 0


def _listed(word: str) -> int:
    groups = [_GROUP.match(group) for group in word.split("_")]
    return sum(int(g[1] or 1) * int(g[2]) * (1024 if g[3] else 1) for g in groups if g)


def _positions(axes: dict[str, Any]) -> int:
    """Those that one pass, token or call of a workload answers, of all sequences."""
    if word := axes.get("workload"):
        return _listed(word)
    return axes["batch"] * (1 if axes.get("mode") == "decode" else axes["length"])


def interval(samples: list[float], visits: list[int]) -> tuple[float, float]:
    """The 95 % interval of several visits in seconds: Student's t over the logarithms of their medians, as harness/measure/statistics.cc."""
    centre, error, degrees = log_mean(samples, visits)
    reach = student(0.05, degrees) * error
    return math.exp(centre - reach), math.exp(centre + reach)


def ratio_interval(above: list[float], below: list[float], visits: list[int]) -> tuple[float, float]:
    """The same of the ratios of the visits' medians, whose samples were taken in turn."""
    ratios, begin = [], 0
    for size in visits:
        ratios.append(median(above[begin : begin + size]) / median(below[begin : begin + size]))
        begin += size
    return interval(ratios, [1] * len(ratios))


def log_mean(samples: list[float], visits: list[int]) -> tuple[float, float, int]:
    """Of the logarithms of the medians of visits: the mean, its standard error, the degrees of freedom. Needs two visits."""
    logs, begin = [], 0
    for size in visits:
        logs.append(math.log(median(samples[begin : begin + size])))
        begin += size
    centre = fmean(logs)
    squares = sum((x - centre) ** 2 for x in logs)
    return centre, math.sqrt(squares / (len(logs) - 1) / len(logs)), len(logs) - 1


def student(level: float, degrees: float) -> float:
    """How many standard errors an interval reaches to either side that misses with a probability of `level`: Student's t, or of endless degrees
    of freedom the normal law."""
    from scipy.special import ndtri, stdtrit  # slow to import, and needed only here

    return float(ndtri(1 - level / 2) if math.isinf(degrees) else stdtrit(degrees, 1 - level / 2))


def _peak(calibration: dict[str, Any], threads: int) -> float:
    one, together = float(calibration["fma_flops_per_s_one"]), float(calibration["fma_flops_per_s_all"])
    return together if threads >= calibration["threads"] else min(threads * one, together)


def _memory(cell: Line, _run: Line) -> Iterator[Claim]:
    metrics = cell["metrics"]
    peak = metrics["peak_bytes"]
    parts = [metrics[f"{part}_bytes"] for part in ("weights", "activations", "workspace")]  # each at its own highest
    yield "metrics.peak_bytes", peak, min(max(peak, *parts), sum(parts)), 0


def _accuracy(cell: Line, _run: Line) -> Iterator[Claim]:
    metrics, curve, training = cell["metrics"], cell["samples"], cell["training"]
    is_cost = is_error(metrics["metric"])
    steps, best = metrics["steps"], metrics.get("best_step")
    if curve:
        at = {point["step"]: point.get("validation") for point in curve}
        yield "the last step of the curve", max(at), steps, 0
        if best in at and at[best] is not None:
            yield "metrics.validation", metrics["validation"], at[best], 0
    yield "metrics.examples", metrics["examples"], steps * training["batch"], 0
    if metrics["train_s"] > 0 and metrics.get("examples_per_s") is not None:
        yield "metrics.examples_per_s", metrics["examples_per_s"], metrics["examples"] / metrics["train_s"], 0
    if metrics.get("lift") is not None:
        levels = list(metrics["shortcuts"].values()) or [metrics["chance"]]
        lift = min(levels) - metrics["test"] if is_cost else metrics["test"] - max(levels)
        yield "metrics.lift", metrics["lift"], lift, CLOSE
    count = (metrics.get("by_example") or training).get("count", training.get("test_examples"))
    if not is_cost and count and count > 1 and metrics.get("test_stderr") is not None:
        yield "metrics.test_stderr", metrics["test_stderr"], min(metrics["test_stderr"], MOST_STDERR / math.sqrt(count - 1)), 0
    if packed := metrics.get("by_example"):
        each = scores_of(packed)
        labels = sum(bin["labels"] for bin in metrics.get("by_distance") or ())
        is_exact = packed["levels"] == 2 and labels in (0, packed["count"])
        yield "metrics.test", metrics["test"], fmean(each), CLOSE if is_exact else LEVEL
    reached = metrics.get("ended_by") != "target" or (metrics["validation"] <= training["target"] if is_cost else metrics["validation"] >= training["target"])
    yield "whether metrics.ended_by is 'target'", 1, int(reached), 0


def scores_of(packed: dict[str, Any]) -> list[float]:
    """The score of each test example in [0, 1], as harness/train/example_scores.cc packs them."""
    digits = [int(digit, 16) for digit in packed["scores"]]
    if packed["levels"] != 2:
        return [digit / 15 for digit in digits][: packed["count"]]
    return [float(digit >> bit & 1) for digit in digits for bit in (3, 2, 1, 0)][: packed["count"]]


def _fidelity(cell: Line, _run: Line) -> Iterator[Claim]:
    metrics = cell["metrics"]
    yield "metrics.relative_error", metrics["relative_error"], abs(metrics["relative_error"]), 0
    if (cosine := metrics.get("cosine")) is not None:
        yield "metrics.cosine", cosine, max(-1.0, min(1.0, cosine)), 1e-6
