"""scripts/peers: attnbench against PyTorch, JAX, onnxruntime and ggml.

Exit 0 all compared or skipped, 1 a comparison failed, 2 wrong usage, 4 nothing to compare with,
130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from .._place import require_clone

if __name__ == "__main__":
    require_clone("peers")  # before libraries load that a wheel does not bring along

from .command import FAILED, INTERRUPTED, NOTHING, USAGE, parsed, say, stop
from .plan import TITLES, Block, Wanted, blocks, without_peer
from .record import COVERAGE, LEAST, RESAMPLES, Record, RowsError, now, read_rows
from .session import PAUSE_S, Session
from .sides import MEMORY, InstallError, SideError, built_program, peers_python, start_ours
from .table import Chosen, comparisons, markdown, table

SEED = 0


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


def ours_of(session: Session, threads: int) -> tuple[dict[str, Any], list[str]]:
    """The environment, and the names of the catalogue's variants."""
    try:
        said = session.side("attnbench", threads).ask("hello")
    except SideError as error:
        stop(USAGE, str(error))
    environment = said.get("environment")
    if not isinstance(environment, dict):
        stop(USAGE, f"{session.program} is no attnbench: it tells no environment")
    # There the cores of one process; here each comparison has its number of threads in its axes.
    kept = {name: value for name, value in environment.items() if name != "threads"}
    return kept, said.get("variants", [])


def peaks(program: Path, threads: tuple[int, ...]) -> dict[str, float]:
    """FLOPs of multiply-adds a second by number of threads; what cannot be told is left out."""
    found = {}
    for count in threads:
        try:
            with closing(start_ours(program, count)) as ours:
                found[str(count)] = ours.ask("peak", threads=count)["fma_flops_per_s"]
        except SideError as error:
            say(f"peers: without the FMA peak of {count} threads: {error}")
    return found


def run_line(
    given: argparse.Namespace, wanted: Wanted, environment: dict[str, Any], found: dict[str, Any],
    peak: dict[str, float], no_peer: dict[str, str],
) -> dict[str, Any]:  # fmt: skip
    return {
        "argv": ["scripts/peers", *given.argv],
        "config": {
            "subjects": wanted.subjects, "lengths": wanted.lengths, "threads": wanted.threads,
            "step_lengths": wanted.step_lengths, "decode_lengths": wanted.decode_lengths, "dtype": "float32", "seed": SEED,
        },
        "environment": environment,
        "peak": peak,
        "no_peer": no_peer,
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
            "head_dim]; onnxruntime q and output [batch, len, heads*head_dim], k and v as PyTorch; "
            "ggml's output [batch, len, heads, head_dim]. Variants that mix all columns of a row "
            "have one head of the full width",
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


def print_table(given: argparse.Namespace, chosen: Chosen) -> int:
    try:
        rows = [row for path in given.table for row in read_rows(path)]
    except RowsError as error:
        stop(USAGE, str(error))
    if not comparisons(rows, chosen):
        stop(USAGE, f"{', '.join(map(str, given.table))}: no comparison is of what is chosen")
    print(markdown(rows, chosen) if given.markdown else table(rows, chosen), flush=True)
    return 0


def main(arguments: list[str]) -> int:
    given, wanted = parsed(arguments)
    if isinstance(wanted, Chosen):
        return print_table(given, wanted)
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
        environment, catalogue = ours_of(session, wanted.threads[0])
        found = libraries(session, wanted, given.peers is not None)
        todo = blocks(wanted.among(tuple(found)))
        if not todo:
            stop(NOTHING, "nothing to compare: no library for what is asked for")
        no_peer = without_peer(catalogue)
        for name, why in no_peer.items():
            say(f"peers: {name}: {why}")
        peak = peaks(program, wanted.threads)
        record.add("run", **run_line(given, wanted, environment, found, peak, no_peer))
        finished = measure(session, todo)
    rows = record.comparisons()
    if rows:
        print(table(record.rows), flush=True)
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
