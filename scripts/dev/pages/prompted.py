"""Markdown: what the weights of exact attention score behind a prompt, at whose end the cache forgets, by the positions that it keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from attnbench.plots.kinds.eviction import by_method
from attnbench.plots.rows.kept import EVICT, NONE, PROMPT, WHEN
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Cell, Rows, read_rows
from attnbench.plots.rows.scores import task_groups

from .evicted import heading, scores

VOTES = "snapkv"  # the method that has no `when`: it forgets at the end of a prompt alone


def table(path: Path) -> str:
    """Of each task and prompt a line a method and a column a budget, as `evicted.table()` has them."""
    rows = published(read_rows([path]), without_control=False)
    parts = []
    for prompt in sorted({e["params"][PROMPT] for c in rows.of("accuracy") for e in _entries(c)}):
        for group in task_groups(by_method(_behind(rows, prompt)).of("accuracy")):
            parts.append((group.cells[0].task, group.cells[0].length, f"{heading(group)} The prompt is the first {prompt} positions.\n\n{scores(group)}"))
    if not parts:
        raise ValueError(f"{path.name} has no scores behind a prompt; give rows with --test-with evict=…,when=prompt,prompt=N")
    order = list(dict.fromkeys(c.task for c in rows.of("accuracy")))
    parts.sort(key=lambda part: (order.index(part[0]), part[1]))
    return "\n\n".join(text for *_, text in parts)


def _entries(cell: Cell) -> list[dict[str, Any]]:
    """The scores of the cell's weights under caches that forget at the end of a prompt alone."""
    given = cell.metrics.get("by_params") or [] if cell.ok else []
    return [e for e in given if PROMPT in e["params"] and _forgets_once(e["params"])]


def _forgets_once(params: dict[str, Any]) -> bool:
    return params.get(EVICT, NONE) == VOTES or (params.get(EVICT, NONE) != NONE and params.get(WHEN) == PROMPT)


def _behind(rows: Rows, prompt: int) -> Rows:
    """The rows with the scores behind this prompt alone, as if every position were a step: the table's text tells of the prompt."""

    def stripped(entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, "params": {name: value for name, value in entry["params"].items() if name not in (PROMPT, WHEN)}}

    def only(cell: Cell) -> Cell:
        return replace(cell, metrics={**cell.metrics, "by_params": [stripped(e) for e in _entries(cell) if e["params"][PROMPT] == prompt]})

    return replace(rows, cells=[only(c) for c in rows.cells])
