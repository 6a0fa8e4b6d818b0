"""How surely, how soon and at which learning rates a variant learns a task: over the seeds of the choice that validation made,
and over every training that its search made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import betaincinv  # scipy.stats takes over a second to load

from .learned import bar_of, best_of_nothing, has_reached, setting_key
from .read import FAILURES, RUN, Cell
from .settings import BITS, is_error, without_settings

LIFT_SHARE = 0.9  # of the way from the best shortcut to a perfect score
RATE = "learning_rate"
NOTE = (
    f"A seed has learned where its test score is at least half of the way from the best shortcut to a perfect score (of bits: at the best "
    f"shortcut); the interval is Clopper and Pearson's, 95 %. Steps until the validation score has come {LIFT_SHARE * 100:.0f} % of the way: the median "
    "of the seeds, and their range; >: not until then. Learning rates: those of all that were tried at which a training, short ones of a search "
    "too, came so far."
)


@dataclass(frozen=True)
class Learning:
    """Of one variant on one task. `steps` are sorted; a training that did not come so far has `math.inf`, and `last` is the
    fewest steps of such a training."""

    seeds: int
    learned: int
    interval: tuple[float, float]  # of the probability that a seed learns
    steps: tuple[float, ...]
    last: int | None
    rates: tuple[float, ...]  # at which a training came so far
    tried: tuple[float, ...]

    @property
    def share_text(self) -> str:
        return f"{self.learned} of {self.seeds} ({self.interval[0]:.2f} to {self.interval[1]:.2f})"

    @property
    def steps_text(self) -> str:
        """Returns `700 (600 to > 4,000)`; nothing where no step can be told."""
        if not self.steps:
            return ""
        told = [f"{s:,.0f}" if math.isfinite(s) else f"> {self.last:,}" for s in self.steps]
        middle = told[(len(told) - 1) // 2]
        return middle if told[0] == told[-1] else f"{middle} ({told[0]} to {told[-1]})"

    @property
    def rates_text(self) -> str:
        """Returns `0.0016 to 0.005 (2 of 4)`: not always all between."""
        if not self.tried:
            return ""
        counted = f"{len(self.rates)} of {len(self.tried)}"
        if not self.rates:
            return f"none of {len(self.tried)}"
        ends = f"{self.rates[0]:g}" if len(self.rates) == 1 else f"{self.rates[0]:g} to {self.rates[-1]:g}"
        return f"{ends} ({counted})"


def learning_of(cells: Sequence[Cell], every: Iterable[Cell]) -> Learning | None:
    """`cells`: a variant's trainings on one task, of which every seed counts, failed ones too. `every`: the trainings among
    which those of its search are. None where no cell has a score."""
    known = [c for c in cells if c.ok and c.metric("test") is not None]
    seeds = [c for c in cells if c in known or c.status in FAILURES]
    if not known:
        return None
    learned = sum(has_reached(c) for c in known)
    judged = [c for c in seeds if c.scored_by != BITS]
    steps = sorted(_steps(c) for c in judged)
    cut = [_length(c) for c in judged if not math.isfinite(_steps(c))]
    searched = [c for c in every if _same(c, cells[0])]
    tuned = any(RATE in c.tuned and c.scored_by != BITS for c in searched)
    tried = sorted({float(c.training[RATE]) for c in searched if RATE in c.training}) if tuned else []
    came = {float(c.training[RATE]) for c in searched if RATE in c.training and math.isfinite(_steps(c))}
    interval = clopper_pearson(learned, len(seeds))
    return Learning(len(seeds), learned, interval, tuple(steps), min(cut, default=None), tuple(r for r in tried if r in came), tuple(tried))


def clopper_pearson(hits: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Returns the interval of a probability of which `hits` of `trials` came true."""
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - tail))
    return low, high


def curve_of(cell: Cell) -> dict[int, float]:
    """Returns the validation score by step."""
    held = cell.samples if isinstance(cell.samples, list) else []
    return {int(p["step"]): float(p["validation"]) for p in held if p.get("validation") is not None}


def _steps(cell: Cell) -> float:
    """The first step at which validation has come so far; infinity where it never has."""
    if not cell.ok:
        return math.inf
    best, error = best_of_nothing(cell), is_error(cell.scored_by)
    bar = best + LIFT_SHARE * ((0.0 if error else 1.0) - best)
    return next((float(s) for s, v in sorted(curve_of(cell).items()) if (v <= bar if error else v >= bar)), math.inf)


def _length(cell: Cell) -> int:
    return int(cell.metric("steps") or cell.training.get("steps") or 0)


def _same(one: Cell, other: Cell) -> bool:
    """The same variant, task and settings, but for those that a search tries and shortens."""
    return _key(one) == _key(other)


def _key(cell: Cell) -> tuple[Any, ...]:
    params = tuple(p for p in without_settings(cell.params) if p[0] != RUN)
    return cell.variant, params, setting_key(cell, ("steps", "stretch"))
