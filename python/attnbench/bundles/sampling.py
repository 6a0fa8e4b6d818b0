"""Which cells of a bundle are measured anew: drawn after the bundle is fixed, by a seed of its bytes and of a number that the verifier draws, so that
nobody can know beforehand which. Cells that cannot be compared are told, not drawn."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from .archive import Bundle, Line
from .brought import Brought, parts_of
from .measuring import NotMeasured

MOST_PRICED = 20  # cells priced for each that is asked for
MEASURES = ("speed", "memory", "accuracy", "fidelity")


@dataclass
class Sample:
    """The cells to measure, and why others are not: a reason and a count."""

    cells: list[Line] = field(default_factory=list)
    eligible: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def seed_of(bundle: Bundle, nonce: str) -> int:
    """The seed of the draw. Whoever knows the bundle and the nonce can draw again."""
    return int.from_bytes(hashlib.sha256(f"{bundle.digest} {nonce}".encode()).digest()[:8], "big")


def exact_beside(bundle: Bundle, cell: Line) -> Line | None:
    """The time of exact attention of the same run, shape and mode; the tiled kernel where there are several."""
    same = [c for c in bundle.exact_times if c["run"] == cell["run"] and c["axes"] == cell["axes"]]
    return min(same, key=lambda c: c["variant"]["params"].get("kernel") != "tiled", default=None)


def drawn(bundle: Bundle, brought: Brought, seed: int, count: int, bound_s: float, *, times: str, price: Callable[[Line], float]) -> Sample:
    """Draws up to `count` cells: first one of each variant that the bundle brings, then any. `times` says why times are not compared, "" where
    they are; `price` forecasts seconds of a cell and raises NotMeasured; a cell above `bound_s` seconds is not drawn."""
    sample = Sample()
    eligible = []
    for cell in bundle.cells:
        reason = _unfit(bundle, cell, times)
        if reason:
            sample.left_out[reason] += 1
        else:
            eligible.append(cell)
    sample.eligible = len(eligible)
    stream = random.Random(seed)
    stream.shuffle(eligible)
    first: list[Line] = []
    for name in brought.names:
        first += [cell for cell in eligible if name in parts_of(cell["variant"]["name"]) and cell not in first][:1]
    for cell in [*first, *(cell for cell in eligible if cell not in first)][: MOST_PRICED * count]:
        if len(sample.cells) == count:
            break
        try:
            seconds = price(cell)
        except NotMeasured as error:
            sample.left_out[str(error)] += 1
            continue
        if seconds > bound_s:
            sample.left_out[f"forecast above {bound_s:.0f} s (--longest)"] += 1
        else:
            sample.cells.append(cell)
    return sample


def _unfit(bundle: Bundle, cell: Line, times: str) -> str:
    """Why a cell cannot be compared; "" where it can."""
    if cell["status"] != "ok":
        return "not ok in the rows"
    if cell.get("trial"):
        return "short trainings of a search"
    if cell["measure"] not in MEASURES:
        return f"{cell['measure']}: nothing is compared"
    if "data" in cell.get("source", {}) or any("/" in v for v in (cell.get("task") or {"params": {}})["params"].values() if isinstance(v, str)):
        return "tasks of files"
    if cell["measure"] != "speed":
        return ""
    if times:
        return f"times of another processor or instruction set ({times}); --ratios compares"
    exact = exact_beside(bundle, cell)
    if exact is None:
        return "times without exact attention of the same shape"
    return "times of exact attention, to which others are compared" if exact["variant"] == cell["variant"] else ""
