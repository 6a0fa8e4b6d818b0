"""What decoders keep: scores of the same weights under other caches (`run --test-with`), each as a cell of its own with the bytes of
its state; the share of the positions that a setting keeps; and the line that a cell lies on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from .learned import setting_key
from .read import FAILURES, Cell, Params, canonical
from .settings import without_run, without_settings
from .style import BASELINE

EVICT, BUDGET, NONE, QUEST = "evict", "budget", "none", "quest"
WHEN, PROMPT = "when", "prompt"  # when=prompt forgets at the end of a prompt; prompt=N of a score is so long
DEFAULTS = {EVICT: NONE, WHEN: "always"}  # what rows of exact attention leave out
TYPED = "kv_dtype"  # the axis of numbers of fewer bits
PAGE = 16  # positions that quest bounds together, variants/softmax/eviction.h
POSITION, SCORE, WEIGHT = 4, 8, 4  # bytes that are held beside a key and its value, variants/softmax/held_positions.h
RECORDS = {"h2o": SCORE + WEIGHT, "norm": SCORE, "random": SCORE, "tova": WEIGHT}
SCORED = ("metric", "chance", "shortcuts", "control", "lift", "ended_by", "stopped_by", "parameters")  # what all scores of a training share


def entries_of(cell: Cell) -> Iterator[tuple[Params, dict[str, Any]]]:
    """The scores of the cell's weights under caches that forget, each with all its parameters: those in which nothing but the method and its
    budget is another."""
    own = {**DEFAULTS, **dict(without_settings(cell.params))}
    for entry in cell.metrics.get("by_params") or [] if cell.ok else []:
        other = {**own, **dict(canonical(entry["params"]))}
        changed = {name for name in other if own.get(name) != other[name]}
        is_other = other[EVICT] != NONE and changed <= {EVICT, BUDGET}
        if is_other and entry.get("test") is not None and not _below_a_page(other, cell.length):
            yield canonical({**dict(cell.params), **entry["params"]}), entry


def _below_a_page(params: dict[str, str], length: int | None) -> bool:
    """Whether the budget is no whole page: quest reads one then, and its score is that of a page."""
    budget = float(params.get(BUDGET, PAGE))
    positions = budget if budget >= 1 or not length else slots(budget, length) - 1
    return params[EVICT] == QUEST and positions < PAGE


def scored(cells: Iterable[Cell]) -> list[Cell]:
    """The cells, and behind each the scores of its weights under caches that forget. Of a training that failed none is known: it stands
    behind every cache that another seed of it was scored under, so that their scores carry the mark of a seed that is lost."""
    cells = list(cells)
    caches: dict[Any, dict[Params, None]] = {}
    for cell in cells:
        caches.setdefault(_trained_alike(cell), {}).update(dict.fromkeys(params for params, _ in entries_of(cell)))
    out = []
    for cell in cells:
        out += [cell, *(_under(cell, params, entry) for params, entry in entries_of(cell))]
        if cell.status in FAILURES:
            out += [replace(cell, params=params) for params in caches[_trained_alike(cell)]]
    return out


def _trained_alike(cell: Cell) -> tuple[Any, ...]:
    return cell.variant, cell.params, setting_key(cell)


def _under(cell: Cell, params: Params, entry: dict[str, Any]) -> Cell:
    shared = {name: cell.metrics[name] for name in SCORED if name in cell.metrics}
    told = {"test": entry["test"], "test_stderr": entry["stderr"], "state_bytes": evicted_bytes(cell, params)}
    return replace(cell, params=params, metrics={**shared, **told})


def evicted_bytes(cell: Cell, params: Params) -> int | None:
    """What decoding keeps with these parameters of eviction, from what the same model keeps with all positions; None where that is not told."""
    whole, length = cell.metric("state_bytes"), cell.length
    method = dict(params).get(EVICT, NONE)
    if not whole or not length:
        return None
    if method == NONE:
        return int(whole)
    position = whole / length  # of all layers and heads
    if method == QUEST:
        return int(position * (length + -(-length // PAGE)))
    heads = int(cell.training.get("layers") or 1) * int(cell.training.get("kv_heads") or cell.training.get("heads") or 1)
    return int(slots(float(dict(params)[BUDGET]), length) * (position + heads * (POSITION + RECORDS.get(method, 0))))


def slots(budget: float, length: int) -> int:
    """Positions that are kept, and the step's own."""
    return min((int(budget) if budget >= 1 else max(1, int(budget * length + 1e-9))) + 1, length)


def evicts(cell: Cell) -> str:
    """The method that chooses what is kept or read; empty where all is."""
    method = dict(cell.params).get(EVICT, NONE)
    return "" if method == NONE else str(method)


def kv_heads(cell: Cell) -> tuple[int, int]:
    """Heads of keys and of queries."""
    told = {**cell.training, **cell.axes}
    heads = int(told.get("heads") or 1)
    return int(told.get("kv_heads") or heads), heads


def share_of(cell: Cell) -> float | None:
    """The share of the positions that a setting keeps or reads, by its parameters; None where none says so."""
    params, length = dict(without_run(cell.params)), cell.length
    if not length:
        return None
    if evicts(cell):
        budget = float(params[BUDGET])
        return min(budget if budget < 1 else budget / length, 1.0)
    if "window" in params and set(params) <= {"window", "sinks"}:
        return min((float(params["window"]) + float(params.get("sinks", 0))) / length, 1.0)
    if "keys" in params:
        return min(float(params["keys"]) / length, 1.0)
    return None


def is_growing(cell: Cell) -> bool:
    """Whether the budget is a share of the positions so far: while a sequence is short it keeps less than a number of positions does."""
    return bool(evicts(cell)) and float(dict(cell.params)[BUDGET]) < 1


def line_of(cell: Cell) -> str:
    """The name of the line that joins a cell with others of its kind: of exact attention the method of eviction, else the variant."""
    return evicts(cell) or cell.variant


def is_exact_cache(cell: Cell) -> bool:
    """Whether it is so, and no heads share keys."""
    own, heads = kv_heads(cell)
    return is_whole(cell) and own == heads


def is_whole(cell: Cell) -> bool:
    """Whether all keys and values are read as they are, whatever heads share them."""
    return cell.variant == BASELINE and not evicts(cell) and not cell.axes.get(TYPED)


def share_text(share: float) -> str:
    """`1/16`."""
    return f"1/{round(1 / share)}" if share < 1 else "all"


def kept_text(cell: Cell) -> str:
    """What a line of the table keeps, as a share where it is one: `full`, 8 over 2 heads; `sinks`, a window of 1/4."""
    params, share, (own, heads) = dict(cell.params), share_of(cell), kv_heads(cell)
    if method := evicts(cell):
        return f"`{BASELINE}[evict={method}]`, {share_text(share or 1)} of the positions{' so far' if is_growing(cell) else ''}"
    if cell.axes.get(TYPED):
        return f"`{BASELINE}`, {cell.axes[TYPED]}"
    if cell.variant == BASELINE:
        return f"`{BASELINE}`, {heads} query heads over {own}"
    if "window" in params and share is not None:
        return f"`{cell.variant}`, a window of {share_text(share)}"
    return f"`{cell.variant}`, {share_text(share)} of the keys" if "keys" in params and share is not None else f"`{cell.variant}`"
