"""Slurm's own commands (submit, cancel, what is in the queue), and the two batch scripts of a
sweep: the array that measures, and the job that collects."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from .._place import IMPORTED
from .sweep import TOOL, Sweep, gives, one_line, refuse


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


SHARDS, COLLECT = "shards.sbatch", "collect.sbatch"
PLACE = ("partition", "account", "qos", "reservation", "time")  # of both jobs
RESOURCES = ("constraint", "cpus-per-task", "mem", "mem-per-cpu", "exclude", "nodelist", "nice")
OPTIONS = (*PLACE, *RESOURCES)
LEAD_S = 60  # Slurm sends the signal up to a minute sooner than told

BODY = """
running= caught= late=
# Preempted or cancelled: Slurm sends SIGTERM to every process of the job, so to the program too.
trap 'caught=1' TERM
# Soon before the time limit: to this script alone.
trap 'caught=1 late=1; [[ ! $running ]] || kill -TERM "$running"' USR1
# Where the daemon of a node dies and its job does not, the task that is queued again waits here.
exec 9>"$folder/shard-$part.lock"
flock 9 && [[ ! $caught ]] || exit 143

lines() { cat "$folder/shard-$part".*.jsonl 2>/dev/null | wc -l; }
held=$(lines)
"$folder/attnbench" run "${words[@]}" "${options[@]}" --yes &
running=$!
code=0
wait "$running" || code=$?
while [[ $caught ]]; do # the signal ended the wait; the program writes what is measured
  caught= again=0
  wait "$running" || again=$?
  ((again == 127)) || code=$again # 127: it had ended already
done
# A cell that is longer than the time limit would be begun for ever: only where rows were added.
if [[ $late ]] && ((code == 143 && $(lines) > held)); then
  echo "the time limit is near: queued again"
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$part"
fi
exit "$code"
"""


@dataclass
class Asked:
    """What submit was told of the jobs."""

    given: dict[str, str] = field(default_factory=dict)  # of OPTIONS
    more: list[str] = field(default_factory=list)  # further words of sbatch
    at_once: int = 0  # tasks; 0: as many as there is room for


def _script(lines: list[str], body: str) -> str:
    return "\n".join(["#!/usr/bin/env bash", *(f"#SBATCH {line}" for line in lines), body])


def _path(path: Path) -> str:
    return str(path).replace("%", "%%")  # sbatch replaces %a and the like


def shards_script(sweep: Sweep, folder: Path, name: str, asked: Asked) -> str:
    lines = [
        f"--job-name={quote('attnbench-' + name)}",
        f"--array=0-{sweep.shards - 1}" + (f"%{asked.at_once}" if asked.at_once else ""),
        "--nodes=1",
        "--ntasks=1",
        "--requeue",
        "--open-mode=append",
        f"--signal=B:USR1@{LEAD_S}",
        f"--output={quote(_path(folder / 'logs') + '/shard-%a.log')}",
        *(f"--{option}={quote(value)}" for option, value in asked.given.items()),
        *asked.more,
    ]
    if sweep.is_exclusive:
        lines.append("--exclusive")
        if not {"mem", "mem-per-cpu"} & set(asked.given):
            lines.append("--mem=0")
    before = [
        f"# Written by {TOOL} submit. A task measures one shard of a sweep, and goes on with it when it is",
        "# queued again. `sbatch` of this file from the same folder submits every shard; those that are whole end at once.",
        "set -u",
        f"folder={quote(str(folder))}",
        f"cd -- {quote(str(Path.cwd()))} || exit 2",
        "part=${SLURM_ARRAY_TASK_ID:?this script is for sbatch}",
        f"if ((SLURM_ARRAY_TASK_COUNT != {sweep.shards})); then",
        f'  echo "this sweep has {sweep.shards} shards, not $SLURM_ARRAY_TASK_COUNT: the array must be 0-{sweep.shards - 1}" >&2',
        "  exit 2",
        "fi",
        f"words=({' '.join(quote(word) for word in sweep.words)})",
        'options=(--shard "$part/$SLURM_ARRAY_TASK_COUNT" --output "$folder/shard-$part.{machine}.jsonl")',
        "jobs=${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}}",
    ]
    if not gives(sweep.words, "--jobs", "-j"):
        before.append('options+=(--jobs "$jobs")')
    if not sweep.is_exclusive and not gives(sweep.words, "--max-memory"):
        before += [
            "# The memory of the job in MiB, less a tenth for the program, for each cell that runs at a time.",
            "memory=${SLURM_MEM_PER_NODE:-$((${SLURM_MEM_PER_CPU:-0} * ${SLURM_CPUS_ON_NODE:-1}))}",
            '((memory == 0)) || options+=(--max-memory "$((memory * 9 / 10 / jobs))M")',
        ]
    return _script(lines, "\n".join(before) + "\n" + BODY)


def collect_script(folder: Path, name: str, asked: Asked) -> str:
    lines = [
        f"--job-name={quote('attnbench-' + name + '-collect')}",
        "--ntasks=1",
        "--requeue",
        "--open-mode=append",
        f"--output={quote(_path(folder / 'logs' / 'collect.log'))}",
        *(f"--{option}={quote(asked.given[option])}" for option in PLACE if option in asked.given),
    ]
    body = [
        f"# Written by {TOOL} submit: merges, tables and draws the shards when their tasks have ended.",
        f"export PYTHONPATH={quote(str(IMPORTED))}",
        f"exec {quote(sys.executable)} -m attnbench.slurm collect {quote(str(folder))}",
        "",
    ]
    return _script(lines, "\n".join(body))
