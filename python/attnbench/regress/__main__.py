"""scripts/regress: builds two commits, measures them in turn, compares what was measured."""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import time
from pathlib import Path

from .._place import require_clone

if __name__ == "__main__":
    require_clone("regress")  # before libraries load that a wheel does not bring along

from .programs import ROOT, Program, RegressError, alone, program_of, put_in_place, undecided_cells, without

SWEEP = [
    *("-v", "full", "-v", "truncated", "-v", "linformer", "-v", "performer", "-v", "linear"),
    *("--measure", "speed,memory", "--length", "256,1024", "--mode", "forward,train", "--repetitions", "3"),
]
TAKEN = ("-o", "--output", "--shard", "--format", "--force", "-f", "--dry-run", "-n", "--resume", "--retry", "--quiet", "-q")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="scripts/regress",
        usage="%(prog)s BASE HEAD [OPTION...] [-- RUN OPTION...]",
        description="Measures two commits in turn and compares. The options after -- are those of attnbench run and choose the sweep; without any: "
        f"{' '.join(SWEEP)}",
        allow_abbrev=False,
    )
    made.add_argument("base", metavar="BASE", help="a commit")
    made.add_argument("head", metavar="HEAD", help="a commit, or . for the files as they are")
    made.add_argument("--rounds", type=_rounds, default=6, metavar="N", help="sweeps of each program, in random order; default 6, at least 2")
    made.add_argument(
        "--max-time",
        type=_seconds,
        default="5m",
        metavar="TIME",
        help="after the rounds, goes on with the times that are undecided, for about that long; default 5m; 0s: not",
    )
    made.add_argument("--strict", action="store_true", help="exit 7 where something stays undecided and nothing got worse")
    made.add_argument("--threshold", metavar="SHARE", help="changes up to it are of no interest; default 2%%")
    made.add_argument("--format", metavar="KIND", help="of the report: table (default), md, csv, json, latex, junit")
    made.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="keeps the rows there; default build/regress/rows")
    return made


def _rounds(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not valid; expected a number from 2 to 1000")
    return int(text)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is not valid; expected a time such as 90s, 10m, 1h, or 0s")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def say(words: str) -> None:
    print(f"regress: {words}", file=sys.stderr, flush=True)


def measure(program: Program, sweep: list[str], rows: Path) -> None:
    """Runs what the file lacks of the sweep. A cell that fails is a row like any other: `compare` names it."""
    command = [program.path, "run", *sweep, "-o", rows, "--quiet", "--yes"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.stderr.write(done.stderr)
        raise RegressError(f"the sweep of {program.name} ended with exit code {done.returncode} (see above)", done.returncode)


class Side:
    """One program, the rows of its rounds, and their join."""

    def __init__(self, program: Program, reader: Program, folder: Path, name: str) -> None:
        self.program, self.reader, self.folder, self.name = program, reader, folder, name
        self.rows = folder / f"{name}.jsonl"
        self.parts: list[Path] = []

    def take_round(self, sweep: list[str], cells: set[str] | None = None) -> None:
        """The whole sweep, or these cells of it alone."""
        part = self.folder / f"{self.name}.{len(self.parts) + 1}.jsonl"
        part.unlink(missing_ok=True)
        if cells is not None:
            without(cells, self.parts[0], part)
        measure(self.program, sweep, part)
        if cells is not None:
            alone(cells, part, part)
        self.parts.append(part)

    def join(self) -> None:
        self._join(self.parts, self.rows)

    def join_cells(self, cells: set[str]) -> None:
        """Of these cells, all rounds; the other rows stay."""
        parts = []
        for part in self.parts:
            parts.append(part.with_suffix(".open.jsonl"))
            alone(cells, part, parts[-1])
        more = self.folder / f"{self.name}.open.jsonl"
        self._join(parts, more)
        put_in_place(more, self.rows)
        for part in (*parts, more):
            part.unlink()

    def _join(self, parts: list[Path], rows: Path) -> None:
        # The newer program reads the rows of both: it knows the rows of older ones.
        command = [self.reader.path, "merge", *parts, "-o", rows, "--keep", "all", "--force"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.stderr.write(done.stderr)
            raise RegressError(f"the rounds of {self.program.name} make no one run (see above)", done.returncode)


def decide(sides: dict[str, Side], sweep: list[str], order: random.Random, max_time: float, options: list[str]) -> None:
    """Goes on with the rounds of undecided times. Looks are few, each after twice the rounds of the one before: many would find what is not there."""
    until = time.monotonic() + max_time
    while True:
        cells = dict(zip(sides, undecided_cells(sides["head"].reader, sides["base"].rows, sides["head"].rows, options), strict=True))
        if not cells["base"] or time.monotonic() >= until:
            return
        done = len(sides["base"].parts)
        say(f"{len(cells['base'])} times are undecided: up to {done} rounds more of them")
        for number in range(done + 1, 2 * done + 1):
            if time.monotonic() >= until:
                break
            for side in order.sample(sorted(sides), 2):
                say(f"round {number}: {sides[side].program.name}")
                sides[side].take_round(sweep, cells[side])
        for side, ids in cells.items():
            sides[side].join_cells(ids)


def main(words: list[str]) -> int:
    split = words.index("--") if "--" in words else len(words)
    asked = parser().parse_args(words[:split])
    sweep = words[split + 1 :] or SWEEP
    for word in sweep:
        if word.partition("=")[0] in TAKEN:
            raise RegressError(f"{word} after --: scripts/regress itself names the files of its sweeps and starts them anew")
    folder = asked.output or ROOT / "build" / "regress" / "rows"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegressError(f"cannot make the folder '{folder}': {error.strerror}", 6) from None
    programs: dict[str, Program] = {}
    for side, name in (("base", asked.base), ("head", asked.head)):
        say(f"building {name}")
        programs[side] = program_of(name)
    if programs["base"].commit == programs["head"].commit:
        say("both are the same program: what differs is the machine's noise")
    order = random.Random(1)
    sides = {name: Side(program, programs["head"], folder, name) for name, program in programs.items()}
    for number in range(1, asked.rounds + 1):
        for side in order.sample(("base", "head"), 2):
            say(f"round {number}/{asked.rounds}: {programs[side].name}")
            sides[side].take_round(sweep)
    for side in sides.values():
        side.join()
    options = ["--threshold", asked.threshold] if asked.threshold else []
    if asked.max_time > 0:
        decide(sides, sweep, order, asked.max_time, options)
    command = [programs["head"].path, "compare", sides["base"].rows, sides["head"].rows, *options]
    command += ["--strict"] if asked.strict else []
    command += ["--format", asked.format] if asked.format else []
    return subprocess.run(command).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RegressError as fault:
        say(str(fault))
        sys.exit(fault.code)
    except KeyboardInterrupt:
        sys.exit(130)
