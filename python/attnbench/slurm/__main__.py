"""python -m attnbench.slurm: submit, status, collect."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import NoReturn

from .._place import IS_CLONE, ROOT
from . import queue
from .queue import COLLECT, OPTIONS, SHARDS, Asked, collect_script, shards_script
from .shards import collect, shards_in, status_lines
from .sweep import PROGRAM, SWEEP, TOOL, Refused, Sweep, check_words, planned, refuse, say

MOST_SHARDS = 10_000  # more than most sites let an array have


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        refuse(message)


def parsed(words: list[str]) -> argparse.Namespace:
    parser = Parser(
        prog=TOOL,
        description="Measures a sweep as a Slurm job array, each task a shard; merges, tables and draws it at the end.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="submit|status|collect")
    submit = verbs.add_parser(
        "submit",
        help="submits a sweep; run options after --",
        usage=f"{TOOL} submit [SWEEP.toml] --array N[%%AT_ONCE] [-o FOLDER] [OPTION...] [-- RUN OPTION...]",
    )
    submit.add_argument("file", nargs="?", type=Path, metavar="SWEEP.toml")
    submit.add_argument(
        "--array", required=True, metavar="N", help="shards; 16%%4: four at a time at most"
    )
    submit.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", help="default results/<UTC time>-<name>"
    )
    for option in OPTIONS:
        submit.add_argument(f"--{option}", metavar="VALUE", help="as of sbatch")
    submit.add_argument(
        "--sbatch", action="append", default=[], metavar="WORD", help="a further option of sbatch"
    )
    submit.add_argument(
        "-n", "--dry-run", action="store_true", help="writes the scripts and submits nothing"
    )
    for verb, what in (
        ("status", "a line a shard"),
        ("collect", "merges, tables and draws what is there"),
    ):
        verbs.add_parser(verb, help=what).add_argument("folder", type=Path, metavar="FOLDER")
    return parser.parse_args(words)


def array_of(text: str) -> tuple[int, int]:
    """Shards, and how many of them run at a time (0: any number)."""
    found = re.fullmatch(r"(\d{1,6})(?:%(\d{1,6}))?", text)
    shards, at_once = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    if not 1 <= shards <= MOST_SHARDS or (found and found[2] and at_once == 0):
        refuse(
            f"--array {text} is not valid; expected the number of shards, 1 to {MOST_SHARDS}, or 16%4"
        )
    return shards, at_once


def name_of(file: Path | None, words: list[str]) -> str:
    if file:
        return file.stem
    for word, value in zip(words, [*words[1:], ""]):
        if word.startswith("--profile"):
            return word.partition("=")[2] or value
    return "sweep"


def folder_of(given: Path | None, name: str) -> Path:
    if given is None:
        time = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        return (ROOT if IS_CLONE else Path.cwd()) / "results" / f"{time}-{name}"
    return given.absolute()


def check_folder(folder: Path, sweep: Sweep) -> None:
    """A folder is of one sweep: the same cells go on, whatever their limits; others are refused."""
    if not folder.exists():
        return
    if not folder.is_dir():
        refuse(f"{folder} is a file; -o names a folder")
    if not (folder / SWEEP).exists():
        if any(folder.iterdir()):
            refuse(f"{folder} holds other files; name another folder by -o")
        return
    before = Sweep.of(folder)
    if before.cells != sweep.cells:
        refuse(f"{folder} holds another sweep, or other shards of it; name another folder by -o")
    for job in before.jobs:
        if queue.is_queued(job):
            refuse(f"{folder} has jobs in the queue: {TOOL} status {folder}")


def write_folder(folder: Path, sweep: Sweep, program: Path, files: dict[str, bytes]) -> None:
    """The program and the sweep file are copied: what changes while tasks wait does not change what they measure.
    An installed program finds its libraries beside its own place, so a link stands for the copy."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    own = folder / "attnbench"
    if not own.exists() and IS_CLONE:
        shutil.copy2(program, own)
    elif not own.exists():
        own.symlink_to(program.absolute())
    for name, content in files.items():
        (folder / name).write_bytes(content)
    sweep.keep(folder)


def submit(given: argparse.Namespace, words: list[str]) -> int:
    shards, at_once = array_of(given.array)
    toml = b""
    if given.file:
        if given.file.suffix != ".toml" or not given.file.is_file():
            refuse(f"no sweep file {given.file}; expected FILE.toml, and run options after --")
        toml = given.file.read_bytes()
    check_words(words)
    if not given.dry_run:
        queue.require_slurm()
    name = name_of(given.file, words)
    folder = folder_of(given.output, name)
    program = folder / "attnbench" if (folder / "attnbench").exists() else PROGRAM
    source = [str(given.file.absolute())] if given.file else []
    sweep = planned([*source, *words], shards, program)
    copy = folder / given.file.name if given.file else None
    if copy:
        sweep.words[0] = str(copy)
    check_folder(folder, sweep)
    if sweep.shards < shards:
        say(f"slurm: the sweep divides into {sweep.shards} parts at most, so into as many shards")
    options = {o: getattr(given, o.replace("-", "_")) for o in OPTIONS}
    asked = Asked({o: v for o, v in options.items() if v is not None}, given.sbatch, at_once)
    if sweep.is_exclusive and "constraint" not in asked.given:
        say("slurm: without --constraint, times of different shards may be of different kinds of node")
    is_new = not folder.exists()
    files = {
        SHARDS: shards_script(sweep, folder, name, asked).encode(),
        COLLECT: collect_script(folder, name, asked).encode(),
    }
    write_folder(folder, sweep, program, files | ({copy.name: toml} if copy else {}))
    low, high = min(sweep.forecast_s), max(sweep.forecast_s)
    cells = sum(map(len, sweep.cells))
    say(f"slurm: {cells} cells in {sweep.shards} shards, by forecast {low:.0f} to {high:.0f} s each, one cell at a time")
    if given.dry_run:
        say("slurm: nothing was submitted")
        print(folder)
        return 0
    try:
        sweep.jobs = [queue.submit(folder / SHARDS)]
        try:
            sweep.jobs.append(
                queue.submit(folder / COLLECT, f"--dependency=afterany:{sweep.jobs[0]}")
            )
        except Refused:
            queue.cancel(sweep.jobs[0])
            raise
    except Refused:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    sweep.keep(folder)
    say(f"slurm: job {sweep.jobs[0]} measures, job {sweep.jobs[1]} collects; {TOOL} status {folder}")
    print(folder)
    return 0


def status(folder: Path) -> int:
    sweep = Sweep.of(folder)
    tasks = queue.tasks(sweep.jobs[0]) if sweep.jobs else {}
    shards = shards_in(folder, sweep)
    for line in status_lines(shards, tasks, lambda n: folder / "logs" / f"shard-{n}.log"):
        print(line)
    return 0


def main() -> int:
    words = sys.argv[1:]
    ours, run = (words, [])
    if "--" in words:
        place = words.index("--")
        ours, run = words[:place], words[place + 1 :]
    given = parsed(ours)
    if given.verb == "submit":
        return submit(given, run)
    if run:
        refuse(f"{given.verb} takes no run options")
    return status(given.folder) if given.verb == "status" else collect(given.folder)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as wrong:
        say(f"slurm: {wrong}")
        sys.exit(wrong.code)
    except OSError as error:
        say(f"slurm: {error}")
        sys.exit(6)
    except KeyboardInterrupt:
        sys.exit(130)
