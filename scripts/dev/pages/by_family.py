"""Markdown: test scores of many variants by family, of the settings chosen on validation, and orders of
variants that papers report."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Cell, Params, Rows, read_rows
from attnbench.plots.rows.scores import (
    Score,
    TaskGroup,
    one_line,
    score,
    short_titles,
    task_groups,
)
from attnbench.plots.rows.settings import (
    SETTING,
    is_error,
    marks_of,
    shown,
    spec_among,
    told_apart,
    unfinished,
    winners,
    without_settings,
)
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import markdown

Level = tuple[str, tuple]  # a task and its parameters


@dataclass(frozen=True)
class Scores:
    """Of one task: a line for each variant that ran on it, a column for each seed."""

    task: Level
    variants: list[str]
    test: np.ndarray  # [variants, seeds], greater is better: errors have their sign changed
    curves: list[list[dict[int, float]]]  # validation by step, of each variant and seed
    seconds: float  # of all cells of the task, those that lost the choice included
    best_shortcut: float | None
    is_error: bool  # less of the score is better
    marks: dict[str, str]  # of a variant's scores, see settings.MEANINGS


def scores_of(path: Path) -> list[Scores]:
    """Error where a variant lacks a seed that another has: the two cannot be ranked."""
    every = published(read_rows([path]), without_control=False).of("accuracy")
    won = [c for c in winners([c for c in every if c.status != "skipped"]) if c.ok]
    if not won:
        raise ValueError(f"{path.name} has no score; give rows with --measure accuracy")
    groups = task_groups(won)
    return [_of_task(group, own, every, path) for group in groups if (own := _ended(group))]


def _ended(group: TaskGroup) -> list[Cell]:
    """The cells of the variants whose trainings all ended by themselves."""
    cut = {c.variant for c in group.cells if unfinished([c])}
    return [c for c in group.cells if c.variant not in cut]


def _level(cell: Cell) -> Level:
    return cell.task or "", cell.task_params


def _of_task(group: TaskGroup, own: list[Cell], every: list[Cell], path: Path) -> Scores:
    level = _level(own[0])
    sign = -1.0 if is_error(own[0].scored_by) else 1.0
    variants = sorted({c.variant for c in own}, key=lambda v: (v != "full", v))
    seeds = sorted({c.axes["seed"] for c in own})
    by = {(c.variant, c.axes["seed"]): c for c in own}
    missing = [f"{v} with seed {s}" for v in variants for s in seeds if (v, s) not in by]
    if missing:
        raise ValueError(f"{path.name} has no score of {missing[0]} on {level[0]}; measure every variant with the same seeds")
    if len(by) < len(own):
        raise ValueError(f"{path.name} has several scores of one variant and seed on {level[0]}; rank one choice of parameters")
    test = np.array([[sign * float(by[v, s].metric("test") or 0) for s in seeds] for v in variants])
    curves = [
        [{p["step"]: sign * float(p["validation"] or 0) for p in by[v, s].samples or ()} for s in seeds] for v in variants
    ]
    best = group.best_shortcut()
    return Scores(
        level,
        variants,
        test,
        curves,
        sum(float(c.metric("train_s") or 0) for c in every if _level(c) == level and c.ok),
        best[1] if best else None,
        sign < 0,
        {v: marks_of(by[v, s] for s in seeds) for v in variants},
    )


GATES = ("retention", "lightning", "mamba2", "gla", "hgrn2", "rwkv6")
WIDEST = 0.5  # an interval of scores on both sides of a mean says nothing beyond this; the table then gives the seeds' range
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


def table(path: Path) -> str:
    """A line a variant and a column a task: the mean over seeds ± half of its 95 % interval, with the
    marks of the trainings."""
    rows = published(read_rows([path]), without_control=False)
    styles, groups = Styles(rows), task_groups(told_apart(rows.of("accuracy")))
    every = [c for group in groups for c in group.cells]
    keys = dict.fromkeys((s.variant, s.params) for s in styles.series(every))
    found: dict[str, list[tuple[str, ...]]] = {}
    for key in keys:
        own = tuple(entry([c for c in g.cells if (c.variant, c.params) == key]) for g in groups)
        found.setdefault(styles.kind(key[0]), []).append((_told_by(*key, every), *own))
    lines = [("" if i else family, *line) for family, own in found.items() for i, line in enumerate(own)]
    shortcuts = [f"{best[1]:.2f}" if (best := g.best_shortcut()) else "—" for g in groups]
    heads = ["family", "variant", *(f"`{title}`" for title in short_titles(groups))]
    return markdown(heads, [*lines, ("", "best shortcut", *shortcuts)]) + left_out(rows)


def left_out(rows: Rows) -> str:
    """The line below a table on the settings that it has no column of."""
    return f"\n\nLeft out, for the control has not learned them: {'; '.join(rows.left_out)}." if rows.left_out else ""


def orders(path: Path) -> str:
    """Each order that a paper reports: means of both sides, and how many pairs confirm it or contradict it."""
    groups = task_groups(winners(published(read_rows([path]), without_control=False).of("accuracy")))
    lines = []
    for order in ORDERS:
        for group in groups:
            if group.cells[0].task != order.task:
                continue
            by = {name: _scores(group, (name,)) for name in (*order.above, *order.below)}
            above, below = ({k: v for name in side for k, v in by[name].items()} for side in (order.above, order.below))
            if not above or not below:
                continue
            best = group.best_shortcut()
            shortcut = best[1] if best else -np.inf
            every = zip(order.above, order.below, strict=True) if order.paired else itertools.product(order.above, order.below)
            pairs = [(a, b) for one, other in every for a in by[one].values() for b in by[other].values()]
            right = sum(_surely_above(a, b, shortcut) for a, b in pairs)
            wrong = sum(_surely_above(b, a, shortcut) for a, b in pairs)
            counts = [f"{right} of {len(pairs)}", str(wrong), str(len(pairs) - right - wrong)]
            lines.append([order.claim, order.source, f"`{one_line(group)}`", _told(above), _told(below), *counts])
    heads = ["what papers report", "source", "task", "above", "below", "confirmed", "reversed", "undecided"]
    return markdown(heads, lines)


def _surely_above(one: Score, other: Score, shortcut: float) -> bool:
    """Whether the 95 % interval of `one` lies above that of the other and above what a shortcut scores."""
    if one.half is None or other.half is None:
        return False
    return one.mean - one.half > max(other.mean + other.half, shortcut)


def _told_by(variant: str, params: Params, every: list[Cell]) -> str:
    """Its spec, and the settings of training in which it differs: `full`, positions=alibi."""
    plain = [replace(cell, params=without_settings(cell.params)) for cell in every]
    settings = (f"{shown(k)}={v}" for k, v in params if k.startswith(SETTING))
    return ", ".join([f"`{spec_among(variant, without_settings(params), plain)}`", *settings])


def entry(cells: list[Cell]) -> str:
    found = score(tuple(cells))
    if found is None:
        return "—"
    mean = f"{found.mean:.2f}{marks_of(cells)}"
    if found.half is not None and found.half > WIDEST:
        return f"{mean} ({min(found.seeds):.2f} to {max(found.seeds):.2f})"
    return mean + ("" if found.half is None else f" ± {found.half:.2f}")


def _scores(group: TaskGroup, names: tuple[str, ...]) -> dict[str, Score]:
    """Of each variant with each of its parameters, in words that tell them apart."""
    keys = dict.fromkeys((c.variant, c.params) for c in group.cells)
    scores = {}
    for name in names:
        own = [key for key in keys if _name(*key) == name]
        for key in own:
            found = score(tuple(c for c in group.cells if (c.variant, c.params) == key))
            if found and not found.is_unfinished:
                scores[name if len(own) == 1 else spec_among(*key, list(group.cells))] = found
    return scores


def _name(variant: str, params: Params) -> str:
    """Without parameters but that of the paper's layer: conv+gla of conv[kernel=4]+gla, gla[block=paper]."""
    plain = "+".join(part.partition("[")[0] for part in variant.split("+"))
    return plain + (LAYER if is_layer(params) else "")


def _told(scores: dict[str, Score]) -> str:
    return ", ".join(f"`{name}` {own.mean:.2f}" for name, own in sorted(scores.items(), key=lambda item: -item[1].mean))
