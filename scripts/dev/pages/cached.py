"""Markdown: what the weights of exact attention score by decoding from caches of fewer bits, and the bytes that these caches take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnbench.plots.rows.kept import DEFAULTS, EVICT, PROMPT, TYPED, is_whole
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.scores import TaskGroup, over_seeds, task_groups
from attnbench.plots.rows.settings import marks_of, winners
from attnbench.plots.rows.units import bytes_text, markdown

from .evicted import told

FLOAT32, ACCURACY = "float32", "accuracy"
LEAST = 1e-4  # of a difference that is told
RECENT = 32  # positions that stand in float32 beside integers, kRecentPositions of variants/api/cache_type.h
NONE = "—"
Entry = dict[str, Any]  # of `by_params`; of exact attention its own metrics


def table(path: Path) -> str:
    """A line a type of cache, for each task two columns: the score and the bytes of the state. Scores are means over seeds ± half of a 95 %
    interval, in brackets the paired difference from exact attention."""
    rows = published(read_rows([path]), without_control=False)
    groups = task_groups([c for c in winners(rows.of("accuracy")) if is_whole(c) and (not c.ok or entries_of(c))])
    order = [g.cells[0].task for g in groups]
    groups.sort(key=lambda g: (order.index(g.cells[0].task), g.cells[0].length or 0))
    if not groups:
        raise ValueError(f"{path.name} has no scores from caches of a type; give rows with --test-with kv_dtype=…")
    types = dict.fromkeys(name for g in groups for c in g.cells if c.ok for name in entries_of(c))
    lines = [[f"`{name}`", *(word for g in groups for word in _columns(g, name))] for name in (FLOAT32, *(t for t in types if t != FLOAT32))]
    heads = [head for g in groups for head in _heads(g)]
    return f"{markdown(['cache', *heads], lines)}\n\n{_sentence(groups)}"


def entries_of(cell: Cell) -> dict[str, Entry]:
    """The scores of the cell's weights by the type of cache that they were decoded from, where nothing is forgotten and every position is a step."""
    entries = [e for e in cell.metrics.get("by_params") or [] if e.get("test") is not None and e["params"].get(EVICT, DEFAULTS[EVICT]) == DEFAULTS[EVICT]]
    return {str(e["params"][TYPED]): e for e in entries if TYPED in e["params"] and PROMPT not in e["params"]}


def _heads(group: TaskGroup) -> list[str]:
    cell = group.cells[0]
    metric = "" if group.metric == ACCURACY else f", {group.label}"
    return [f"`{cell.task}`, {cell.length} positions{metric}", "bytes"]


def _columns(group: TaskGroup, name: str) -> list[str]:
    cells = [c for c in group.cells if c.ok]
    pairs = [(c.metrics, c.metrics if name == FLOAT32 else entries_of(c).get(name)) for c in cells]
    both = [(exact, own) for exact, own in pairs if own]
    if not both:
        return [NONE, NONE]
    marks, seeds = marks_of(group.cells), f" ({len(both)} of {len(cells)} seeds)" if len(both) < len(cells) else ""
    score = _score([(float(exact["test"]), float(own["test"])) for exact, own in both], group.metric, name, marks)
    exact, own = (both[0][i].get("state_bytes") for i in (0, 1))
    size = f"{bytes_text(own)}{'' if name == FLOAT32 else f' ({own / exact:.2f})'}" if exact and own else NONE
    return [score + seeds, size]


def _score(pairs: list[tuple[float, float]], metric: str, name: str, marks: str) -> str:
    """`0.984 ± 0.012 (−0.006 ± 0.002)` of scores of exact attention and of the cache, a pair a seed."""
    score = told(over_seeds([own for _, own in pairs], None), metric) + marks
    apart = [own - exact for exact, own in pairs]
    if name == FLOAT32:
        return score
    if not any(apart):
        return f"{score} (the same)"
    change = over_seeds(apart, None)
    if max(map(abs, apart)) < LEAST / 2:
        return f"{score} (below {LEAST:g})"
    half = "" if change.half is None else f" ± {change.half:.4f}"
    mean = f"{change.mean:+.4f}" if abs(change.mean) >= LEAST / 2 else "0"
    return f"{score} ({mean}{half})".replace("-", "−")


def _sentence(groups: list[TaskGroup]) -> str:
    trained = [c for g in groups for c in g.cells if c.ok]
    seeds = sorted({sum(c.ok for c in g.cells) for g in groups})
    older = ", ".join(f"`{g.cells[0].task}` of {g.cells[0].length}: {share:.0%}" for g in groups if (share := _older(g)) is not None)
    widths = sorted({int(c.training["width"]) // int(c.training["heads"]) for c in trained})
    heads = sorted({int(c.training["heads"]) for c in trained})
    return (
        f"{_few(heads)} heads of width {_few(widths)}, {_few(seeds)} seeds; `{FLOAT32}` is the forward pass. In brackets what changes from exact attention with the same weights, seed by seed, "
        f"and the state's share of that in float32. Labels whose evidence is surely older than the newest {RECENT} positions (of bits: that have so many "
        f"before them): {older}."
    )


def _older(group: TaskGroup) -> float | None:
    """The least that the parts by distance say, of all seeds."""
    parts = [b for c in group.cells if c.ok for b in c.metrics.get("by_distance") or []]
    return sum(b["labels"] for b in parts if b["from"] >= RECENT) / sum(b["labels"] for b in parts) if parts else None


def _few(numbers: list[int]) -> str:
    return " to ".join(map(str, dict.fromkeys((numbers[0], numbers[-1]))))
