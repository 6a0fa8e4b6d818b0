"""python -m dev.soak: a soak, a line a minute, a summary; exit 1 where something broke."""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from .sweeps import Broken, Soak, Sweep, Watched

# A sweep holds its rows in memory for the tables at its end, in a few times their length. What else it holds stays as it is.
BYTES_A_BYTE = 10
SLACK = 4 << 20
SMALL = ["--heads", "1", "--head-dim", "8"]
MODEL = "width=16,layers=1,heads=1,batch=4,validation_examples=8,test_examples=8"


def in_background(folder: Path) -> tuple[Watched, Watched]:
    """A sweep of more cells and a training of more steps than there is time for."""
    lengths = "8:152:+8"  # 19 000 cells; 20 000 are the most of a sweep
    cells = [
        "run",
        "-v",
        "mean",
        "--measure",
        "memory",
        "--length",
        lengths,
        *SMALL,
        "--seed",
        "0:999:+1",
    ]
    recipe = f"{MODEL},steps=100000000,eval_every=10000000"
    task = "mqar[vocab=16,pairs=2,length=16,train_examples=64]"
    training = ["run", "-v", "mean", "-t", task, "--train", recipe, "--timeout", "24h"]
    long = Watched.start([*cells, "--yes"], folder / "long.jsonl")
    return long, Watched.start([*training, "--yes"], folder / "training.jsonl", of_child=True)


def text_of(counts: Counter) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def minute_line(start: float, soak: Soak, both: tuple[Watched, ...]) -> str:
    last = [w.samples[-1] for w in both if w.samples]
    sizes = "; ".join(
        f"{s.resident / 2**20:.1f} MiB, {s.files} files, {s.written} bytes of rows" for s in last
    )
    return (
        f"{(time.monotonic() - start) / 60:5.1f} min  {text_of(soak.counts)}  | background: {sizes}"
    )


def soak_for(minutes: float, seed: int, folder: Path) -> list[str]:
    soak = Soak(folder, random.Random(seed))
    both = in_background(folder)
    try:
        return faults_of(minutes, soak, *both)
    finally:
        soak.end()
        for watched in both:
            watched.running.kill()
            watched.running.wait()


def faults_of(minutes: float, soak: Soak, long: Watched, training: Watched) -> list[str]:
    both = long, training
    for watched in both:
        threading.Thread(target=watched.sample_every, args=(2,), daemon=True).start()
    start = last_line = time.monotonic()
    faults: list[str] = []
    try:
        while time.monotonic() - start < 60 * minutes:
            soak.step()
            if time.monotonic() - last_line >= 60:
                last_line = time.monotonic()
                print(minute_line(start, soak, both), flush=True)
    except Broken as broken:
        faults.append(str(broken))
    for name, watched, allowed in (("sweep", long, (0, 130)), ("training", training, (130,))):
        watched.running.send_signal(signal.SIGINT)
        try:
            code = watched.running.wait(timeout=120)
        except subprocess.TimeoutExpired:
            faults.append(f"the {name} in the background did not end in 120 s after Ctrl-C")
            continue
        if code not in allowed:
            said = watched.rows_file.with_suffix(".log").read_text()[-300:]
            faults.append(f"the {name} in the background: exit {code}: {said}")
    if any(len(watched.samples) < 20 for watched in both):
        return [*faults, "too few samples of the background: soak for longer"]
    faults += long.faults(BYTES_A_BYTE, SLACK)
    faults += training.faults(0, SLACK)
    try:
        rows = Sweep(long.rows_file, []).look()
    except Broken as broken:
        return [*faults, str(broken)]
    print(f"{text_of(soak.counts)}; most files open in a sweep: {soak.most_files}")
    print(
        f"a sweep of {rows - 1} cells: resident {long.memory_text()}; open files {long.files_text()}"
    )
    print(f"a training: resident {training.memory_text()}; open files {training.files_text()}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attn-soak-") as folder:
        faults = soak_for(given.minutes, given.seed, Path(folder))
    for fault in faults:
        print(f"soak: {fault}", file=sys.stderr)
    print(
        "soak: failed" if faults else f"soak: {given.minutes:g} minutes, seed {given.seed}: sound"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
