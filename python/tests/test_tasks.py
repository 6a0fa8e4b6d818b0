"""task(): arrays that are the program's own examples, datasets of torch, speed."""

from __future__ import annotations

import json
import time
import unittest

import numpy as np
import torch
from torch.utils.data import DataLoader

import attnbench
from attnbench import _core
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
            ("has edges", lambda: attnbench.task("graph").dataset("train", 3)),
        ):
            with self.subTest(words), self.assertRaisesRegex(attnbench.Error, words):
                call()


class Torch(unittest.TestCase):
    def test_a_dataset_has_the_examples_of_the_batch(self) -> None:
        task = attnbench.task("mqar[preset=small]")
        loader = DataLoader(task.dataset("train", 10), batch_size=4)
        batches = list(loader)
        self.assertEqual([len(b["tokens"]) for b in batches], [4, 4, 2])
        wanted = task.batch("train", 0, 10)
        tokens = torch.cat([b["tokens"] for b in batches])
        self.assertEqual(tokens.tolist(), wanted.tokens.tolist())
        self.assertEqual(batches[0]["labels"].dtype, torch.int64)
        self.assertEqual(torch.cat([b["mask"] for b in batches]).tolist(), wanted.mask.tolist())

    def test_workers_share_a_stream(self) -> None:
        task = attnbench.task("mqar[preset=small]")
        alone, shared = [], []
        for workers, found in ((0, alone), (2, shared)):
            loader = DataLoader(task.stream("train", 8), batch_size=None, num_workers=workers)
            for batch, _ in zip(loader, range(4)):
                found.append(batch["tokens"].tolist())
        self.assertEqual(sorted(shared), sorted(alone))

    def test_a_stream_repeats_the_training_examples(self) -> None:
        task = attnbench.task("mqar[preset=small,train_examples=4]")
        batches = [b["tokens"].tolist() for b, _ in zip(task.stream("train", 2), range(3))]
        self.assertEqual(batches[0], batches[2])
        self.assertNotEqual(batches[0], batches[1])


class Speed(unittest.TestCase):
    def test_batches_cost_little_beside_the_generator(self) -> None:
        """Batches of 64 take at most 1.25 times the processor time of one call for all: at least 0.8 of the
        generator's speed."""
        task, count = attnbench.task("mqar[preset=small]"), 2048
        direct = _core.Task("mqar[preset=small]")

        def whole() -> None:
            direct.batch("train", 0, count, 0)

        def parts() -> None:
            for batch in task.batches("train", 64, count):
                batch.labels

        def fastest(call) -> float:
            times = []
            for _ in range(7):
                start = time.process_time()
                call()
                times.append(time.process_time() - start)
            return min(times)

        self.assertLess(fastest(parts), 1.25 * fastest(whole))


if __name__ == "__main__":
    unittest.main()
