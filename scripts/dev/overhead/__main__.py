"""What calls from Python cost: attention() beside torch's own call, and batches of a task beside the generator.

    PYTHONPATH=build/native/package:scripts .venv-python/bin/python -m dev.overhead attention [--length 64] [--head-dim 64] [--heads 1,2,4,8] [-o FILE]
    PYTHONPATH=build/native/package:scripts .venv/bin/python -m dev.overhead tasks [TASK...] [-o FILE]

One thread. The sides are timed in turn, round by round, so that a change of the machine's speed meets all of them. Times are those of
the fastest round, since other programs only add; the ratio is of these, with the quartiles over the rounds in brackets, which are near
it on an idle machine. Each takes a few seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attnbench
from attnbench import _core
from attnbench._program import output_of

from .table import Row, table

ROUNDS = 41
LEAST_SAMPLE = 1e-3  # seconds: shorter calls are timed several at a time
Call = Callable[[], object]


def seconds(call: Call, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def in_turn(calls: dict[str, Call]) -> dict[str, list[float]]:
    """Seconds of each call, a list of rounds for each."""
    counts = {}
    for name, call in calls.items():
        count = 1
        while seconds(call, count) * count < LEAST_SAMPLE:
            count *= 2
        counts[name] = count
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(seconds(call, counts[name]))
    return times


def of_attention(length: int, head_dim: int, heads: list[int]) -> list[Row]:
    """Calls of exact attention on tensors. The call on one number costs what any call does: it is the overhead."""
    import torch

    torch.set_num_threads(1)
    what = f"`attention(\"full\", q, k, v)`, {length} tokens, heads of {head_dim}, beside `scaled_dot_product_attention` of torch {torch.__version__}"
    rows: list[Row] = [run("attention", what)]
    theirs = torch.nn.functional.scaled_dot_product_attention
    for count in heads:
        q, k, v = (torch.randn(1, count, length, head_dim) for _ in range(3))
        arrays = [t.numpy() for t in (q, k, v)]
        one = torch.randn(1, 1, 1, 1)
        times = in_turn({
            "tensors": lambda: attnbench.attention("full", q, k, v, threads=1),
            "arrays": lambda: attnbench.attention("full", *arrays, threads=1),
            "one number": lambda: attnbench.attention("full", one, one, one, threads=1),
            "torch": lambda: theirs(q, k, v),
        })  # fmt: skip
        rows.append({"kind": "attention", "length": length, "head_dim": head_dim, "heads": count, "times_s": times})
    return rows


def of_tasks(specs: list[str], size: int = 64, count: int = 1024) -> list[Row]:
    """Batches from Python beside one call of the generator for the same examples."""
    rows: list[Row] = [run("tasks", f"`task(…).batches(\"train\", {size}, {count})` beside one call of the generator for {count} examples")]
    for spec in specs:
        task, direct = attnbench.task(spec), _core.Task(spec)

        def batches() -> None:
            for batch in task.batches("train", size, count):
                assert batch.labels is not None and batch.mask is not None  # as a training loop reads them

        times = in_turn({"batches": batches, "generator": lambda: direct.batch("train", 0, count, 0)})
        rows.append({"kind": "tasks", "task": spec, "times_s": times})
    return rows


def run(kind: str, what: str) -> Row:
    processor = json.loads(output_of("list", "machine", "--json"))["machine"]["processor"]
    commit = re.search(r"^commit +(\w+)", output_of("--version"), re.M)
    return {"kind": "run", "of": kind, "where": f"{what}; one thread, {processor}, commit `{commit[1][:12] if commit else 'unknown'}`"}


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    attention = kinds.add_parser("attention")
    attention.add_argument("--length", type=int, default=64)
    attention.add_argument("--head-dim", type=int, default=64)
    attention.add_argument("--heads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4, 8])
    tasks = kinds.add_parser("tasks")
    tasks.add_argument("task", nargs="*", default=["mqar[preset=small]", "listops[preset=small]", "image", "adding"])
    for kind in (attention, tasks):
        kind.add_argument("-o", "--output", type=Path, help="add the times, a line of JSON for each row, to this file")
    chosen = parser.parse_args(words)
    rows = of_tasks(chosen.task) if chosen.kind == "tasks" else of_attention(chosen.length, chosen.head_dim, chosen.heads)
    print(f"{rows[0]['where']}\n\n{table(rows, chosen.kind)}")
    if chosen.output:
        with chosen.output.open("a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main(sys.argv[1:])
