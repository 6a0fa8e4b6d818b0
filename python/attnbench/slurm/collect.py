"""Shards to one rows file, tables and pictures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .outcome import FAILED, one_line, refuse, say
from .shards import Shard, shards_in
from .sweep import PROGRAM, Sweep

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
