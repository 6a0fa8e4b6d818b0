"""task(): arrays that are the program's own examples."""

from __future__ import annotations

import json
import unittest

import numpy as np

import attnbench
from attnbench._program import output_of

KINDS = ("mqar", "listops[preset=small]", "retrieval[preset=small]", "image", "adding", "reverse",
         "frames", "graph")  # fmt: skip


class Examples(unittest.TestCase):
    def test_batches_are_what_sample_writes(self) -> None:
        for spec in KINDS:
            with self.subTest(spec):
                lines = output_of("sample", spec, "--split", "test", "--count", "3", "--seed", "5")
                batch = attnbench.task(spec).batch("test", 0, 3, seed=5)
                for row, line in enumerate(map(json.loads, lines.splitlines())):
                    self.same(batch, row, line)

    def same(self, batch: attnbench.Batch, row: int, line: dict) -> None:
        if batch.tokens is not None:
            documents = [line["tokens"], line["second"]] if "second" in line else [line["tokens"]]
            tokens, lengths = np.atleast_2d(batch.tokens[row]), np.atleast_1d(batch.lengths[row])
            mask = np.atleast_2d(batch.mask[row])
            for place, document in enumerate(documents):
                self.assertEqual(tokens[place][mask[place]].tolist(), document)
                self.assertEqual(lengths[place], len(document))
                self.assertFalse(tokens[place][len(document):].any())
        else:
            given = batch.values[row][batch.mask[row]].ravel().tolist()
            np.testing.assert_allclose(given, line["values"], rtol=1e-6)
        if batch.wanted is not None:
            self.assertAlmostEqual(float(batch.labels[row]), line["target"], places=5)
        else:
            target = np.atleast_1d(batch.labels[row])
            wanted = np.atleast_1d(line["target"])
            self.assertEqual(target[: len(wanted)].tolist(), wanted.tolist())
            self.assertTrue((target[len(wanted):] == -1).all())
        if "edges" in line:
            first, keys = batch.edges
            base = row * batch.length
            found = [[i, int(j)] for i in range(batch.length)
                     for j in keys[first[base + i]:first[base + i + 1]]]  # fmt: skip
            self.assertEqual(found, line["edges"])

    def test_a_batch_does_not_depend_on_the_cut(self) -> None:
        task = attnbench.task("mqar[preset=small]")
        whole = task.batch("validation", 0, 7).tokens
        parts = [b.tokens for b in task.batches("validation", 3, 7)]
        self.assertEqual([len(p) for p in parts], [3, 3, 1])
        np.testing.assert_array_equal(np.concatenate(parts), whole)

    def test_arrays_hold_the_library_s_memory(self) -> None:
        batch = attnbench.task("mqar").batch("train", 0, 2)
        self.assertFalse(batch.tokens.flags.owndata)
        tokens = batch.tokens
        copy = tokens.copy()
        del batch
        attnbench.task("mqar").batch("train", 2, 2)
        np.testing.assert_array_equal(tokens, copy)

    def test_what_the_task_is(self) -> None:
        task = attnbench.task("mqar[preset=small]")
        self.assertEqual((task.name, task.metric), ("mqar", "accuracy"))
        self.assertTrue(task.per_token)
        self.assertRaises(AttributeError, lambda: task.size)

    def test_each_fault_is_one_line(self) -> None:
        task = attnbench.task("mqar")
        for words, call in (
            ("nearest is 'mqar'", lambda: attnbench.task("mqr")),
            ("split 'dev' is not valid", lambda: task.batch("dev", 0, 1)),
            ("a batch of 0 examples", lambda: task.batch("test", 0, 0)),
            ("which has", lambda: task.batch("train", 10**12, 1)),
        ):
            with self.subTest(words), self.assertRaisesRegex(attnbench.Error, words):
                call()


if __name__ == "__main__":
    unittest.main()
