"""What calls from Python cost: attention() beside torch's own call, and batches of a task beside the generator.

    PYTHONPATH=build/native/package:scripts .venv-python/bin/python -m attnoverhead attention [--length 64] [--head-dim 64] [--heads 1,2,4,8]
    PYTHONPATH=build/native/package:scripts .venv/bin/python -m attnoverhead tasks [TASK...]

One thread. The sides are timed in turn, round by round, so that a change of the machine's speed meets all of them. Times are those of
the fastest round, since other programs only add; the ratio is of these, with the quartiles over the rounds in brackets, which are near
it on an idle machine. Each takes a few seconds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import attnbench
from attnbench import _core

ROUNDS = 41
LEAST_SAMPLE = 1e-3  # seconds: shorter calls are timed several at a time
Call = Callable[[], object]


def seconds(call: Call, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def in_turn(calls: list[Call]) -> list[list[float]]:
    """Seconds of each call, a list of rounds for each."""
    counts = []
    for call in calls:
        count = 1
        while seconds(call, count) * count < LEAST_SAMPLE:
            count *= 2
        counts.append(count)
    rounds = [[seconds(call, count) for call, count in zip(calls, counts)] for _ in range(ROUNDS)]
    return [list(times) for times in zip(*rounds)]


def ratio(ours: list[float], theirs: list[float]) -> str:
    low, _, high = statistics.quantiles([a / b for a, b in zip(ours, theirs)])
    return f"{min(ours) / min(theirs):.2f} ({low:.2f} to {high:.2f})"


def of_attention(length: int, head_dim: int, heads: list[int]) -> None:
    """Calls of exact attention on tensors. The call on one number costs what any call does: it is the overhead."""
    import torch

    torch.set_num_threads(1)
    print(f"attention('full', q, k, v), {length} tokens, heads of {head_dim}, torch {torch.__version__}")
    print("heads  attnbench us  on NumPy us  one number us  torch us  attnbench / torch")
    theirs = torch.nn.functional.scaled_dot_product_attention
    for count in heads:
        q, k, v = (torch.randn(1, count, length, head_dim) for _ in range(3))
        arrays = [t.numpy() for t in (q, k, v)]
        one = torch.randn(1, 1, 1, 1)
        times = in_turn([
            lambda: attnbench.attention("full", q, k, v, threads=1),
            lambda: attnbench.attention("full", *arrays, threads=1),
            lambda: attnbench.attention("full", one, one, one, threads=1),
            lambda: theirs(q, k, v),
        ])  # fmt: skip
        least = [1e6 * min(t) for t in times]
        print(f"{count:5}  {least[0]:12.1f}  {least[1]:11.1f}  {least[2]:13.1f}  {least[3]:8.1f}  {ratio(times[0], times[3])}")


def of_tasks(specs: list[str], size: int = 64, count: int = 1024) -> None:
    """Batches from Python beside one call of the generator for the same examples."""
    print(f"task(SPEC).batches('train', {size}, {count}) beside one call of the generator for {count} examples")
    print("generator / batches = the share of its speed")
    for spec in specs:
        task, direct = attnbench.task(spec), _core.Task(spec)

        def batches() -> None:
            for batch in task.batches("train", size, count):
                assert batch.labels is not None and batch.mask is not None  # as a training loop reads them

        times = in_turn([batches, lambda: direct.batch("train", 0, count, 0)])
        print(f"{spec:24} {1e3 * min(times[0]):8.2f} ms  share {ratio(times[1], times[0])}")


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    attention = kinds.add_parser("attention")
    attention.add_argument("--length", type=int, default=64)
    attention.add_argument("--head-dim", type=int, default=64)
    attention.add_argument("--heads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4, 8])
    tasks = kinds.add_parser("tasks")
    tasks.add_argument("task", nargs="*", default=["mqar[preset=small]", "listops[preset=small]", "image", "adding"])
    chosen = parser.parse_args(words)
    if chosen.kind == "attention":
        of_attention(chosen.length, chosen.head_dim, chosen.heads)
    else:
        of_tasks(chosen.task)


if __name__ == "__main__":
    main(sys.argv[1:])
