"""attention() on tensors in children that fork() makes: gradients, and the workers of a DataLoader."""

from __future__ import annotations

import unittest

import attnbench

from .forked import SECONDS, in_child
from .test_attention import arrays

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None


class Attended(Dataset):
    """Example i: attention of the i-th inputs, on three threads."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> torch.Tensor:
        inputs = [torch.from_numpy(x) for x in arrays(1, 2, 300, 16, seed=i)]
        return attnbench.attention("full", *inputs, threads=3)


class Forked(unittest.TestCase):
    def test_gradients_have_the_same_bits(self) -> None:
        def gradients() -> list:
            inputs = [torch.from_numpy(x).requires_grad_() for x in arrays(1, 4, 300, 16)]
            attnbench.attention("full", *inputs, causal=True, threads=3).square().sum().backward()
            return [x.grad.numpy() for x in inputs]

        here = gradients()
        for one, other in zip(in_child(self, gradients), here):
            self.assertEqual(one.tolist(), other.tolist())

    def test_workers_of_a_dataloader_compute(self) -> None:
        data = Attended()
        here = [data[i] for i in range(len(data))]
        loader = DataLoader(data, batch_size=None, num_workers=2, timeout=SECONDS,
                            multiprocessing_context="fork")  # fmt: skip
        for one, other in zip(loader, here, strict=True):
            self.assertTrue(torch.equal(one, other))


if __name__ == "__main__":
    unittest.main()
