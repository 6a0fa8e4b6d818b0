"""Slurm's own commands: submit, cancel, and what is in the queue."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .outcome import one_line, refuse


@dataclass(frozen=True)
class Task:
    """Of a job array, as squeue tells it."""

    state: str  # PENDING, RUNNING, …
    node: str
    why: str  # it waits


def require_slurm() -> None:
    if not shutil.which("sbatch"):
        refuse("no sbatch found: submit runs where Slurm's commands are (--dry-run writes the scripts alone)")


def _said(command: list[str]) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        refuse(f"cannot start {command[0]}: {error.strerror}")


def submit(script: Path, *options: str) -> int:
    """The number of the job; Refused with sbatch's reason."""
    done = _said(["sbatch", "--parsable", *options, str(script)])
    number = re.match(r"\d+", done.stdout)
    if done.returncode or not number:
        refuse(f"sbatch refused {script.name}: {one_line(done.stderr) or done.stdout.strip()}")
    return int(number[0])


def cancel(job: int) -> None:
    _said(["scancel", str(job)])


def tasks(job: int) -> dict[int, Task]:
    """Of the array, those that wait or run; none where there is no Slurm, or where it has forgotten the job."""
    if not shutil.which("squeue"):
        return {}
    done = _said(["squeue", "--noheader", "--array", f"--jobs={job}", "--format=%K|%T|%N|%r"])
    if done.returncode and "Invalid job id" not in done.stderr:
        refuse(f"squeue: {one_line(done.stderr)}")
    found = {}
    for line in done.stdout.splitlines():
        number, state, node, why = line.strip().split("|", 3)
        if number.isdigit():
            found[int(number)] = Task(state, node, "" if why == "None" else why)
    return found


def is_queued(job: int) -> bool:
    if not shutil.which("squeue"):
        return False
    done = _said(["squeue", "--noheader", f"--jobs={job}", "--format=%i"])
    return done.returncode == 0 and bool(done.stdout.strip())
