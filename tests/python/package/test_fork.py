"""A call in a child that fork() makes, ended where it hangs.

What uses threads, in children that fork() makes after their parent used threads: multiprocessing's and DataLoader's way on Linux.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import traceback
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import attnbench

from .test_attention import arrays
from .test_check import softmax

SECONDS = 60


def in_child(test: unittest.TestCase, call: Callable[[], Any]) -> Any:
    """What `call` gives in a child; the test fails where the child throws, or does not answer."""
    forks = multiprocessing.get_context("fork")
    ours, theirs = forks.Pipe()

    def work() -> None:
        try:
            theirs.send((call(), ""))
        except BaseException:
            theirs.send((None, traceback.format_exc()))

    child = forks.Process(target=work)
    child.start()
    theirs.close()
    try:
        test.assertTrue(ours.poll(SECONDS), "the child hangs")
        answer, fault = ours.recv()
    finally:
        child.kill()
        child.join()
    test.assertEqual(fault, "")
    return answer


class Forked(unittest.TestCase):
    def setUp(self) -> None:
        self.inputs = arrays(1, 4, 300, 32)
        self.here = self.attention()

    def attention(self) -> np.ndarray:
        return attnbench.attention("full", *self.inputs, threads=3)

    def test_attention_has_the_same_bits(self) -> None:
        np.testing.assert_array_equal(in_child(self, self.attention), self.here)
        np.testing.assert_array_equal(self.attention(), self.here)  # and in the parent once more

    def test_a_child_of_a_child_computes(self) -> None:
        def grandchild() -> np.ndarray:
            self.attention()
            return in_child(self, self.attention)

        np.testing.assert_array_equal(in_child(self, grandchild), self.here)

    def test_a_fork_while_another_thread_computes(self) -> None:
        """Of the library's locks, none is held in the child."""
        ended = threading.Event()
        small = arrays(1, 1, 8, 4)

        def work() -> None:
            while not ended.is_set():
                attnbench.attention("full", *small, threads=1)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            for _ in range(20):
                np.testing.assert_array_equal(in_child(self, self.attention), self.here)
        finally:
            ended.set()
            worker.join()

    def test_every_check_passes(self) -> None:
        report = in_child(self, lambda: attnbench.check(softmax, exact=True, causal=True))
        self.assertTrue(report.passed, str(report))

    def test_tasks_give_the_same_examples(self) -> None:
        for spec in ("mqar[preset=small]", "image"):
            task = attnbench.task(spec)
            here = task.batch("train", 0, 64)

            def again(task=task) -> list[np.ndarray]:
                made = attnbench.task(task.spec)
                return [of.batch("train", 0, 64).labels.copy() for of in (task, made)]

            for found in in_child(self, again):
                np.testing.assert_array_equal(found, here.labels)

    def test_a_sweep_runs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:

            def sweep() -> list[str]:
                rows = attnbench.run(variant=["full"], measure="fidelity", length=64, heads=2, head_dim=8,
                                     threads=2, output=Path(folder) / "rows.jsonl", progress=False)  # fmt: skip
                return [row["status"] for row in rows]

            self.assertEqual(in_child(self, sweep), ["ok"])
