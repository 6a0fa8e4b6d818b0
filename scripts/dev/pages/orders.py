"""Markdown: orders of variants that papers report, and how many pairs of ours confirm them or contradict them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnbench.plots.rows.learned import published
from attnbench.plots.rows.ranks import surely_better
from attnbench.plots.rows.read import Params, read_rows
from attnbench.plots.rows.scores import Score, TaskGroup, one_line, score, task_groups
from attnbench.plots.rows.settings import CUT, LOST, marks_of, spec_among, winners
from attnbench.plots.rows.units import markdown

GATES = ("retention", "lightning", "mamba2", "gla", "hgrn2", "rwkv6")
DELTA = ("deltanet", "gated_deltanet", "kda", "rwkv7")


@dataclass(frozen=True)
class Order:
    """What a paper says of two sets of variants on a task."""

    claim: str
    source: str
    task: str
    above: tuple[str, ...]
    below: tuple[str, ...]
    paired: bool = False  # the first above with the first below, and so on


BLOCK = "block"
LAYER = f"[{BLOCK}=paper]"
MIXERS = ("mamba", "mamba2", "gla", "retention", "deltanet", "gated_deltanet", "rwkv6", "hyena")


def is_layer(params: Params) -> bool:
    """Whether the mixer stands in the layer of its paper."""
    return dict(params).get(BLOCK) == "paper"


def _behind(names: tuple[str, ...]) -> tuple[str, ...]:
    """The same mixers behind a layer with a short convolution."""
    return tuple(f"conv+{name}" for name in names)


def _in_layers(names: tuple[str, ...]) -> tuple[str, ...]:
    """The same mixers in the layers of their papers."""
    return tuple(name + LAYER for name in names)


ORDERS = (
    Order("delta rules above gates alone on recall", "arXiv:2406.06484, arXiv:2412.06464", "mqar", _behind(DELTA), _behind(GATES)),
    Order("delta rules above gates alone on recall, in the layers of their papers", "arXiv:2406.06484, arXiv:2412.06464", "mqar",
          _in_layers(DELTA), _in_layers(GATES)),
    Order("what stands around it in its paper makes a recurrence recall", "arXiv:2312.00752, arXiv:2405.21060, arXiv:2406.06484", "mqar",
          _in_layers(MIXERS), MIXERS, paired=True),
    Order("what reads its input to choose above what does not, on selective copying", "arXiv:2312.00752, table 1", "selective_copy",
          ("mamba", "mamba2", "gla"), ("s4d", "lru", "long_conv")),
    Order("exact attention above states of constant size on recall", "arXiv:2312.04927", "mqar", ("full",), (*GATES, *DELTA, "linear", "mamba")),
    Order("a short convolution before it makes a recurrence recall", "arXiv:2312.04927, arXiv:2312.00752", "mqar", _behind(GATES), GATES),
    Order("one exact layer makes a recurrence recall", "arXiv:2403.19887, arXiv:2402.18668", "mqar",
          ("linear+full", "gated_deltanet+full"), ("linear", "gated_deltanet")),
    Order("a recurrence that is not linear above linear ones with positive decays on parity", "arXiv:2411.12537", "parity",
          ("recurrent",), ("mamba", "mamba2", "gla", "hgrn2", "retention", "s4d")),
)  # fmt: skip


@dataclass(frozen=True)
class Side:
    """A variant of a pair. What was cut off, or lacks a seed, decides no pair."""

    score: Score
    marks: str

    @property
    def decides(self) -> bool:
        return not {CUT, LOST} & set(self.marks)

    def surely_above(self, other: Side, shortcut: float | None) -> bool:
        """Whether it is surely better over the seeds that both have, see attnbench.plots.rows.ranks. One seed shows nothing."""
        seeds = min(len(self.score.seeds), len(other.score.seeds))
        if not self.decides or not other.decides or seeds < 2:
            return False
        return bool(surely_better(np.array([side.score.seeds[:seeds] for side in (self, other)]), shortcut)[0, 1])


def orders(path: Path) -> str:
    """Each order that a paper reports: means of both sides, and how many pairs confirm it or contradict it."""
    groups = task_groups(winners(published(read_rows([path]), without_control=False).of("accuracy")))
    heads = ["what papers report", "source", "task", "above", "below", "confirmed", "reversed", "undecided", "cut off or lost"]
    return markdown(heads, [line for order in ORDERS for group in groups if (line := _line(order, group))])


def _line(order: Order, group: TaskGroup) -> list[str]:
    """Nothing where the task is another one or a side has no variant."""
    if group.cells[0].task != order.task:
        return []
    by = {name: _sides(group, name) for name in (*order.above, *order.below)}
    above, below = ({k: v for name in side for k, v in by[name].items()} for side in (order.above, order.below))
    if not above or not below:
        return []
    best = group.best_shortcut()
    shortcut = best[1] if best else None
    every = zip(order.above, order.below, strict=True) if order.paired else itertools.product(order.above, order.below)
    pairs = [(a, b) for one, other in every for a in by[one].values() for b in by[other].values()]
    cut = sum(not (a.decides and b.decides) for a, b in pairs)
    right = sum(a.surely_above(b, shortcut) for a, b in pairs)
    wrong = sum(b.surely_above(a, shortcut) for a, b in pairs)
    counts = [f"{right} of {len(pairs)}", str(wrong), str(len(pairs) - right - wrong - cut), str(cut)]
    return [order.claim, order.source, f"`{one_line(group)}`", _told(above), _told(below), *counts]


def _sides(group: TaskGroup, name: str) -> dict[str, Side]:
    """The variants of this name, each with its parameters, in words that tell them apart."""
    keys = [key for key in dict.fromkeys((c.variant, c.params) for c in group.cells) if named(*key) == name]
    sides = {}
    for key in keys:
        cells = [c for c in group.cells if (c.variant, c.params) == key]
        if found := score(cells):
            sides[name if len(keys) == 1 else spec_among(*key, list(group.cells))] = Side(found, marks_of(cells))
    return sides


def named(variant: str, params: Params) -> str:
    """Without parameters but that of the paper's layer: conv+gla of conv[kernel=4]+gla, gla[block=paper]."""
    plain = "+".join(part.partition("[")[0] for part in variant.split("+"))
    return plain + (LAYER if is_layer(params) else "")


def _told(sides: dict[str, Side]) -> str:
    return ", ".join(f"`{name}` {own.score.mean:.2f}{own.marks}" for name, own in sorted(sides.items(), key=lambda item: -item[1].score.mean))
