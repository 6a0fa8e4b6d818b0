"""What a variant costs in score on the tasks of a question: against the control of each setting, which is exact attention or the
variant that the task names as its solver. A score counts if its training ended by itself, its checks are not red and its
control has learned the setting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from attnbench.plots.rows.learned import best_of_nothing, setting_key, setting_of
from attnbench.plots.rows.read import FAILURES, Cell
from attnbench.plots.rows.settings import CUT, is_error, mark_of, winners

from .deciding import Estimate, combined
from .evidence import Evidence, Key, key_of

KEEP = 0.95  # of what the control scores above the best shortcut: a variant that has less of it has lost something
LEAST_SEEDS = 3  # two trainings that agree by luck would make any interval small


@dataclass(frozen=True)
class Score:
    """A variant's score in one setting, over seeds, and what the same setting gives to its control and to a shortcut."""

    task: str
    setting: str
    metric: str
    mean: float
    error: float | None  # of the mean over seeds; None of a single seed
    seeds: int
    control: str
    reference: float
    nothing: float
    surplus: Estimate | None  # score minus what keeping KEEP would be, in the direction that is better; None: undecided
    fault: str  # why it does not count, or ""
    cells: tuple[Cell, ...]

    @property
    def half(self) -> float | None:
        """Returns half of the 95 % interval of the mean."""
        if self.error is None:
            return None
        low, high = Estimate(0.0, self.error, self.seeds - 1.0).interval()
        return (high - low) / 2

    @property
    def kept(self) -> float:
        """Returns the share kept of what the control scores above the best shortcut."""
        return (self.mean - self.nothing) / (self.reference - self.nothing)


@dataclass(frozen=True)
class Scored:
    """The scores of the tasks that were asked for, by variant; and what is known of settings that give none."""

    by_variant: dict[Key, tuple[Score, ...]]
    tasks: tuple[str, ...]  # that have a setting whose control learned
    faults: tuple[str, ...]  # settings that do not count, in words


def scores(evidence: Evidence, tasks: Iterable[str], causal: bool) -> Scored:
    """Returns the scores on these tasks of models under the mask that is asked for."""
    wanted = set(tasks)
    cells = [c for c in evidence.rows.of("accuracy") if c.task in wanted and bool(c.axes.get("causal")) == causal]
    plain = [replace(c, params=key_of(c)[1]) for c in cells if c.status != "skipped"]
    settings: dict[str, list[Cell]] = {}
    for cell in winners(plain):
        settings.setdefault(setting_key(cell), []).append(cell)
    by_variant: dict[Key, tuple[Score, ...]] = {}
    learned: list[str] = []
    faults: list[str] = []
    for name, members in settings.items():
        found, fault = _of_setting(name, members)
        faults += [fault] if fault else []
        learned += [str(members[0].task)] if found else []
        for key, score in found.items():
            by_variant[key] = (*by_variant.get(key, ()), score)
    faults += [words for words in evidence.rows.left_out if words.partition(":")[0] in wanted]
    return Scored(by_variant, tuple(dict.fromkeys(learned)), tuple(dict.fromkeys(faults)))


def _of_setting(name: str, cells: Sequence[Cell]) -> tuple[dict[Key, Score], str]:
    """Returns the scores of a setting, or none and why."""
    task = str(cells[0].task)
    if any(c.metrics.get("control") for c in cells if c.ok):
        return {}, f"{task}: a shortcut solves it, so that its scores tell nothing of attention"
    judged = setting_of(cells)
    if judged.learned is not True:
        return {}, judged.words
    by_key: dict[Key, list[Cell]] = {}
    for cell in cells:
        by_key.setdefault(key_of(cell), []).append(cell)
    sign = -1.0 if is_error(next(c.scored_by for c in cells if c.ok)) else 1.0
    controls = {k: m for k, own in by_key.items() if k[0] == judged.control and (m := _over_seeds(own)) and not _fault(own)}
    if not controls:
        return {}, f"{task}: the training of {judged.control}, its control, was cut off or failed"
    control = max(controls, key=lambda k: sign * controls[k][0])
    reference, nothing = controls[control], float(np.mean([best_of_nothing(c) for c in by_key[control] if c.ok]))
    if not sign * (reference[0] - nothing) > 0:
        return {}, f"{task}: {judged.control} is no better than a shortcut"
    found: dict[Key, Score] = {}
    for key, own in by_key.items():
        mine = _over_seeds(own)
        if mine is None:
            continue
        mean, error, seeds = mine
        fault = _fault(own) or _few(seeds) or ("" if key == control else _few(reference[2], f"of {judged.control} "))
        surplus = None if fault else _surplus(mine, reference, nothing, sign, is_same=key == control)
        metric = next(c.scored_by for c in own if c.ok)
        found[key] = Score(task, name, metric, mean, error, seeds, judged.control, reference[0], nothing, surplus, fault, tuple(own))
    return found, ""


def _few(seeds: int, whose: str = "") -> str:
    return "" if seeds >= LEAST_SEEDS else f"{seeds} seed{'' if seeds == 1 else 's'} {whose}alone"


def _fault(cells: Iterable[Cell]) -> str:
    cells = list(cells)
    if any(c.is_gated for c in cells):
        return "a contract check is red"
    if any(c.status in FAILURES for c in cells):
        return "a training failed"
    return "training cut off by its steps" if any(CUT in mark_of(c) for c in cells) else ""


def _over_seeds(cells: Iterable[Cell]) -> tuple[float, float | None, int] | None:
    """Returns mean, standard error and number of seeds. A seed that several machines trained is one. The error is at least
    that of the test examples: seeds that agree by luck are no proof."""
    values: dict[object, list[float]] = {}
    floors = []
    for cell in cells:
        test = cell.metric("test")
        if cell.ok and test is not None:
            values.setdefault(cell.axes.get("seed"), []).append(test)
            floors.append(_sampling_error(cell, test))
    means = [float(np.mean(own)) for own in values.values()]
    if not means:
        return None
    if len(means) == 1:
        return means[0], None, 1
    floor = float(np.sqrt(np.mean(np.square(floors)) / len(means)))
    return float(np.mean(means)), max(float(np.std(means, ddof=1)) / math.sqrt(len(means)), floor), len(means)


def _sampling_error(cell: Cell, test: float) -> float:
    """Returns the standard error over test examples; of a score of 0 or 1 that of one example in all, since none is sure."""
    told = cell.metric("test_stderr")
    if told:
        return told
    examples = cell.training.get("test_examples")
    return 1.0 / examples if isinstance(examples, int) and examples > 0 and not is_error(cell.scored_by) else 0.0


def _surplus(own: tuple[float, float | None, int], reference: tuple[float, float | None, int], nothing: float, sign: float, *, is_same: bool) -> Estimate:
    """Returns score - nothing - KEEP · (reference - nothing), positive where the variant keeps that share."""
    (mean, error, seeds), (best, of_best, of_seeds) = own, reference
    apart = [(error or 0.0, seeds - 1.0), (KEEP * (of_best or 0.0), of_seeds - 1.0)]
    same = [((1 - KEEP) * (error or 0.0), seeds - 1.0)]  # the control against its own mean
    spread, freedom = combined(same if is_same else apart)
    return Estimate(sign * (mean - nothing - KEEP * (best - nothing)), spread, freedom)
