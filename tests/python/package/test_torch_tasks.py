"""Task.dataset() and Task.stream(): examples as datasets of torch."""

from __future__ import annotations

import unittest

import attnbench

try:
    import torch
    from torch.utils.data import DataLoader
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None


class Datasets(unittest.TestCase):
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

    def test_edges_are_refused(self) -> None:
        with self.assertRaisesRegex(attnbench.Error, "has edges"):
            attnbench.task("graph").dataset("train", 3)


if __name__ == "__main__":
    unittest.main()
