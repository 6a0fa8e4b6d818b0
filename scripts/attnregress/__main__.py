"""scripts/regress: builds two commits, measures them in turn, compares what was measured."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from pathlib import Path

from .programs import ROOT, Program, RegressError, program_of

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
    made.add_argument("--threshold", metavar="SHARE", help="changes up to it are of no interest; default 2%%")
    made.add_argument("--format", metavar="KIND", help="of the report: table (default), md, csv, json, latex, junit")
    made.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="keeps the rows there; default build/regress/rows")
    return made


def _rounds(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not valid; expected a number from 2 to 1000")
    return int(text)


def say(words: str) -> None:
    print(f"regress: {words}", file=sys.stderr, flush=True)


def measure(program: Program, sweep: list[str], rows: Path) -> None:
    """Runs the sweep into a new file. A cell that fails is a row like any other: `compare` names it."""
    rows.unlink(missing_ok=True)
    command = [program.path, "run", *sweep, "-o", rows, "--quiet", "--yes"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.stderr.write(done.stderr)
        raise RegressError(f"the sweep of {program.name} ended with exit code {done.returncode} (see above)", done.returncode)


def joined(program: Program, parts: list[Path], rows: Path) -> None:
    command = [program.path, "merge", *parts, "-o", rows, "--keep", "all", "--force"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise RegressError(f"the rounds of {program.name} make no one run (see above)", done.returncode)


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
    parts: dict[str, list[Path]] = {"base": [], "head": []}
    for number in range(1, asked.rounds + 1):
        for side in order.sample(("base", "head"), 2):
            say(f"round {number}/{asked.rounds}: {programs[side].name}")
            part = folder / f"{side}.{number}.jsonl"
            measure(programs[side], sweep, part)
            parts[side].append(part)
    # The newer program reads the rows of both: it knows the rows of older ones.
    reader = programs["head"]
    for side in ("base", "head"):
        joined(reader, parts[side], folder / f"{side}.jsonl")
    command = [reader.path, "compare", folder / "base.jsonl", folder / "head.jsonl"]
    command += ["--threshold", asked.threshold] if asked.threshold else []
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
