"""The rows files of shards: which one counts, how much of a shard it holds, and how they become one
rows file, tables and pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .queue import Task
from .sweep import FAILED, PROGRAM, Sweep, one_line, refuse, say

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


ROWS, TABLES = "rows.jsonl", "tables.txt"


def program_of(folder: Path) -> Path:
    """The copy that measured, else that of the build."""
    copy = folder / "attnbench"
    return copy if copy.exists() else PROGRAM


def _run(program: Path, *words: str | Path) -> subprocess.CompletedProcess:
    try:
        return subprocess.run([program, *words], capture_output=True, text=True)
    except OSError as error:
        refuse(f"cannot start {program}: {error.strerror}")


def merge(program: Path, files: list[Path], to: Path) -> None:
    done = _run(program, "merge", *files, "--force", "-o", to)
    if done.returncode:
        refuse(one_line(done.stderr).removeprefix("attnbench: "), done.returncode)


def _missing(shard: Shard) -> str:
    return f"shard {shard.number} lacks {shard.total - shard.done} of {shard.total} cells"


def collect(folder: Path) -> int:
    """0 where every cell is there and none failed, else 1."""
    sweep = Sweep.of(folder)
    shards = shards_in(folder, sweep)
    files = [shard.file for shard in shards if shard.file and shard.done]
    if not files:
        refuse(f"{folder} holds no rows yet", FAILED)
    program, rows = program_of(folder), folder / ROWS
    merge(program, files, rows)
    tables = _run(program, "table", rows)
    if tables.returncode:
        refuse(one_line(tables.stderr).removeprefix("attnbench: "), tables.returncode)
    (folder / TABLES).write_text(tables.stdout)
    sys.stdout.write(tables.stdout)
    sys.stdout.flush()
    drawn = subprocess.run(
        [sys.executable, "-m", "attnbench.plots", "plot", rows], stdout=subprocess.DEVNULL
    )
    for shard in shards:
        for file in shard.left_out:
            say(f"slurm: {file.name} is of another machine or build and is left out")
    lacking = [_missing(shard) for shard in shards if not shard.is_whole]
    if lacking:
        say(f"slurm: {'; '.join(lacking)}; submit again with -o {folder} to measure them")
    failures = sum(shard.failures for shard in shards)
    if failures:
        say(f"slurm: {failures} cell{'s' if failures > 1 else ''} failed; the rows say why")
    say(f"rows:   {rows}\ntables: {folder / TABLES}")
    if drawn.returncode == 0:
        say(f"plots:  {rows.with_name(rows.stem + '-plots')}")
    return FAILED if lacking or failures or drawn.returncode else 0
