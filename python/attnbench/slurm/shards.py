"""The rows files of shards: which one counts, and how much of a shard it holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .queue import Task
from .sweep import Sweep

WELL = ("ok", "skipped")


@dataclass
class Shard:
    """One part of a sweep. A task that came to another kind of machine began another file: the fullest one counts."""

    number: int
    total: int  # cells
    file: Path | None = None
    statuses: Counter[str] = field(default_factory=Counter)
    left_out: list[Path] = field(default_factory=list)  # files of other machines

    @property
    def done(self) -> int:
        return sum(self.statuses.values())

    @property
    def failures(self) -> int:
        return sum(count for status, count in self.statuses.items() if status not in WELL)

    @property
    def is_whole(self) -> bool:
        return self.done == self.total


def statuses_in(file: Path, wanted: set[str]) -> Counter[str]:
    """Of the cells that are wanted; a line that is being written does not count."""
    found: dict[str, str] = {}
    text = file.read_bytes()
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # the program names it when it goes on with the file
            continue
        if row.get("kind") == "cell" and row.get("cell") in wanted:
            found[row["cell"]] = row.get("status", "")
    return Counter(found.values())


def shards_in(folder: Path, sweep: Sweep) -> list[Shard]:
    shards = []
    for number, cells in enumerate(sweep.cells):
        shard = Shard(number, len(cells))
        wanted = set(cells)
        files = [(statuses_in(f, wanted), f) for f in folder.glob(f"shard-{number}.*.jsonl")]
        files.sort(key=lambda each: (each[0].total(), each[1].stat().st_mtime))
        if files:
            shard.statuses, shard.file = files.pop()
            shard.left_out = [file for _, file in files]
        shards.append(shard)
    return shards


def last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""


def state_of(shard: Shard, task: Task | None, log: Path) -> str:
    if task:
        beside = task.node or task.why
        return task.state.lower() + (f" ({beside})" if beside else "")
    if shard.is_whole:
        return "done"
    said = last_line(log)
    return "stopped" + (f": {said}" if said else "") if shard.file or said else "not begun"


def status_lines(
    shards: list[Shard], tasks: dict[int, Task], log_of: Callable[[int], Path]
) -> list[str]:
    rows = [("shard", "cells", "failed", "state")]
    for shard in shards:
        state = state_of(shard, tasks.get(shard.number), log_of(shard.number))
        rows.append(
            (str(shard.number), f"{shard.done}/{shard.total}", str(shard.failures), state)
        )
    done, total = sum(s.done for s in shards), sum(s.total for s in shards)
    whole = sum(s.is_whole for s in shards)
    rows.append(
        ("all", f"{done}/{total}", str(sum(s.failures for s in shards)), f"{whole} of {len(shards)} done")
    )
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join([*(cell.rjust(w) for cell, w in zip(row, widths)), row[3]]) for row in rows]
