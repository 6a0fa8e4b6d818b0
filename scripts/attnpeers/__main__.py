"""scripts/peers: attnbench against PyTorch, JAX and onnxruntime.

Exit 0 all compared or skipped, 1 a comparison failed, 2 wrong usage, 4 nothing to compare with,
130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

from .install import ROOT, InstallError, built_program, peers_python
from .plan import PEERS, SUBJECTS, TITLES, Block, Wanted, blocks
from .ratios import COVERAGE, LEAST, RESAMPLES
from .record import Record, now
from .session import Session
from .sides import MEMORY, SideError, cores
from .table import table
from .turns import PAUSE_S

SEED = 0
FAILED, USAGE, NOTHING, INTERRUPTED = 1, 2, 4, 130
LONGEST = 65536


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        stop(USAGE, message)


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def stop(code: int, message: str) -> NoReturn:
    say(f"peers: {message}")
    raise SystemExit(code)


def parsed(arguments: list[str]) -> tuple[argparse.Namespace, Wanted]:
    parser = Parser(
        prog="scripts/peers",
        description="Times attnbench and other libraries in turns on the same inputs and threads, "
        "after checking that their answers agree. Prints how many times longer the others take; "
        "writes rows and a picture.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer shapes, under 2 minutes")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.jsonl",
        help="rows; default results/peers/<time>.jsonl",
    )  # fmt: skip
    parser.add_argument(
        "--only", metavar="NAME,...", help=f"of {', '.join(SUBJECTS)} (the training step)"
    )
    parser.add_argument(
        "--peers", metavar="NAME,...", help=f"of {', '.join(TITLES)}; default all but the last"
    )
    parser.add_argument("--lengths", metavar="N,...", help="default 512,2048,8192; steps 512,1024")
    parser.add_argument("--threads", metavar="N,...", help="default 1 and all cores, 2 at most")
    parser.add_argument(
        "--python", type=Path, metavar="PATH",
        help="a Python that has torch (and jax, onnxruntime with onnx) instead of .venv-peers",
    )  # fmt: skip
    parser.add_argument(
        "--program", type=Path, metavar="PATH", help="an attnbench instead of build/native's"
    )
    given = parser.parse_args(arguments)
    here = len(cores(LONGEST))
    lengths = numbers("--lengths", given.lengths, 8, LONGEST)
    threads = numbers("--threads", given.threads, 1, here)
    wanted = Wanted(
        subjects=names("--only", given.only, SUBJECTS),
        peers=names("--peers", given.peers, tuple(TITLES)) if given.peers else PEERS,
        lengths=lengths or ((512, 2048) if given.quick else (512, 2048, 8192)),
        step_lengths=lengths or ((512,) if given.quick else (512, 1024)),
        threads=threads or ((min(2, here),) if given.quick else tuple(sorted({1, min(2, here)}))),
        quick=given.quick,
    )
    for option, path in (("--python", given.python), ("--program", given.program)):
        if path is not None and not path.is_file():
            stop(USAGE, f"{option} {path}: there is no such file")
        if path is not None and not os.access(path, os.X_OK):
            stop(USAGE, f"{option} {path} is not a program")
    if given.output is None:
        given.output = ROOT / "results/peers" / f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}.jsonl"
    if given.output.exists():
        stop(USAGE, f"{given.output} exists; -o names a new file")
    return given, wanted


def names(option: str, text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    chosen = known if text is None else tuple(dict.fromkeys(text.split(",")))
    for name in chosen:
        if name not in known:
            stop(USAGE, f"{option} '{name}' is unknown; expected one of {', '.join(known)}")
    return chosen


def numbers(option: str, text: str | None, least: int, most: int) -> tuple[int, ...]:
    if text is None:
        return ()
    for word in text.split(","):
        if not (word.isascii() and word.isdigit() and least <= int(word) <= most):
            stop(USAGE, f"{option} '{word}' is not valid; expected numbers from {least} to {most}")
    return tuple(sorted({int(word) for word in text.split(",")}))


def libraries(session: Session, wanted: Wanted, chosen: bool) -> dict[str, Any]:
    """What each wanted library says of itself; one that does not start is left out, or an error
    where it was asked for."""
    found = {}
    for peer in wanted.peers:
        try:
            found[peer] = session.side(peer, wanted.threads[0]).ask("hello")
        except SideError as error:
            if chosen:
                stop(USAGE, f"--peers {peer}: {error}")
            say(f"peers: without {TITLES[peer]}: {error}")
    return found


def environment_of(session: Session, threads: int) -> dict[str, Any]:
    try:
        environment = session.side("attnbench", threads).ask("hello").get("environment")
    except SideError as error:
        stop(USAGE, str(error))
    if not isinstance(environment, dict):
        stop(USAGE, f"{session.program} is no attnbench: it tells no environment")
    # There the cores of one process; here each comparison has its number of threads in its axes.
    return {name: value for name, value in environment.items() if name != "threads"}


def run_line(
    given: argparse.Namespace, wanted: Wanted, environment: dict[str, Any], found: dict[str, Any]
) -> dict[str, Any]:
    return {
        "argv": ["scripts/peers", *given.argv],
        "config": {
            "subjects": wanted.subjects, "lengths": wanted.lengths, "threads": wanted.threads,
            "step_lengths": wanted.step_lengths, "dtype": "float32", "seed": SEED,
        },
        "environment": environment,
        "libraries": found,
        "method": {
            "ratio": "median of the peer's turns over the median of ours",
            "interval": f"bootstrap over rounds, {RESAMPLES} resamples, coverage {COVERAGE}; of "
            f"fewer than {LEAST} rounds the range of their ratios, coverage null",
            "threads": "each side on the same cores, as many as threads",
            "waiting": f"each library's own policy; {PAUSE_S} s of rest before every turn",
            "memory": "attnbench: a pool that keeps freed blocks and asks for huge pages; the "
            f"others: {' '.join(f'{k}={v}' for k, v in MEMORY.items())}, else their own policy",
            "layout": "attnbench, PyTorch [batch, heads, len, head_dim]; JAX [batch, len, heads, "
            "head_dim]; onnxruntime q and output [batch, len, heads*head_dim], k and v as PyTorch",
        },
        "started_at": now(),
    }  # fmt: skip


def measure(session: Session, todo: list[Block]) -> bool:
    """False when interrupted; what is measured is on disk."""
    try:
        for place, block in enumerate(todo, 1):
            session.run(block, f"[{place}/{len(todo)}]")
    except KeyboardInterrupt:
        say("peers: interrupted")
        return False
    return True


def main(arguments: list[str]) -> int:
    given, wanted = parsed(arguments)
    given.argv = arguments
    try:
        program = given.program or built_program()
        python = given.python or peers_python(lambda text: say(f"peers: {text}"))
        record = Record(given.output)
    except InstallError as error:
        stop(USAGE, str(error))
    except OSError as error:
        stop(USAGE, f"{given.output} cannot be written: {error.strerror}")
    with closing(record), Session(program, python, record, say, SEED) as session:
        environment = environment_of(session, wanted.threads[0])
        found = libraries(session, wanted, given.peers is not None)
        todo = blocks(wanted.among(tuple(found)))
        if not todo:
            stop(NOTHING, "nothing to compare: no library for what is asked for")
        record.add("run", **run_line(given, wanted, environment, found))
        finished = measure(session, todo)
    rows = record.comparisons()
    if rows:
        print(table(rows), flush=True)
        from .picture import draw  # matplotlib takes a second to load

        say(f"\nrows:    {given.output}")
        for path in draw(record):
            say(f"picture: {path}")
    if not finished:
        return INTERRUPTED
    return FAILED if any(row["status"] == "failed" for row in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
