"""A sweep in a folder: its `run` arguments, its shards as the program divides it, and the jobs that
measure it. A command ends with one line on stderr and an exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NoReturn

from .._place import IS_CLONE
from .._place import program as program_here

FAILED, USAGE, IO = 1, 2, 6


class Refused(Exception):
    """What is wrong, in one line, and the exit code."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def refuse(message: str, code: int = USAGE) -> NoReturn:
    raise Refused(message, code)


def one_line(text: str) -> str:
    """What a program said on stderr, without its name before each line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(line.split(": error: ", 1)[-1] for line in lines)


PROGRAM = program_here()
TOOL = "scripts/slurm" if IS_CLONE else "python -m attnbench.slurm"  # what a reader types
SWEEP = "sweep.json"
ALONE = ("speed", "memory")  # measured on a node that nothing else uses
OURS = ("--output", "--shard", "--dry-run", "--force", "--yes", "--resume")  # given by the jobs
OURS_SHORT = ("-o", "-n", "-f")


@dataclass
class Sweep:
    words: list[str]  # arguments of `attnbench run`
    cells: list[list[str]]  # ids, of each shard
    forecast_s: list[float]  # of each shard, by formula
    is_exclusive: bool
    jobs: list[int] = field(default_factory=list)  # the array and the job that collects

    @property
    def shards(self) -> int:
        return len(self.cells)

    def keep(self, folder: Path) -> None:
        draft = folder / f"{SWEEP}.new"
        draft.write_text(json.dumps(asdict(self), indent=1) + "\n")
        draft.replace(folder / SWEEP)

    @classmethod
    def of(cls, folder: Path) -> Sweep:
        file = folder / SWEEP
        if not folder.is_dir():
            refuse(f"{folder} is no folder of {TOOL} submit")
        if not file.exists():
            refuse(f"{folder} has no {SWEEP}, which {TOOL} submit writes")
        try:
            return cls(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError) as error:
            refuse(f"{file} cannot be read: {error}")


def check_words(words: Iterable[str]) -> None:
    """Refuses what each job gives itself."""
    for word in words:
        name = word.partition("=")[0]
        short = next((s for s in OURS_SHORT if word.startswith(s) and not word.startswith("--")), "")
        if name in OURS or short:
            refuse(f"{short or name} is given by each job itself; name the folder by -o before --")


def gives(words: Iterable[str], long: str, short: str = "") -> bool:
    return any(
        w.partition("=")[0] == long or (short and w.startswith(short) and w[1] != "-") for w in words
    )


def planned(words: list[str], shards: int, program: Path = PROGRAM) -> Sweep:
    """The shards that have cells; Refused with the program's own words and code where it refuses."""
    command = [program, "run", *words, "--dry-run", "--format", "json", "--shard", f"*/{shards}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        refuse(f"cannot start {program}: {error.strerror}")
    if done.returncode:
        refuse(one_line(done.stderr).removeprefix("attnbench: "), done.returncode)
    cells = json.loads(done.stdout)
    if any("trial" in cell for cell in cells):
        refuse("--tune-by halving does not go with jobs, which must know their cells beforehand; run a --shard in each")
    used = sorted({cell["shard"] for cell in cells})
    by_shard = [[cell for cell in cells if cell["shard"] == shard] for shard in used]
    return Sweep(
        words=words,
        cells=[[cell["cell"] for cell in part] for part in by_shard],
        forecast_s=[sum(cell["forecast_s"] or 0 for cell in part) for part in by_shard],
        is_exclusive=any(cell["measure"] in ALONE for cell in cells),
    )
