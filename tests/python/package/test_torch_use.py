"""The package with torch: the class that `attnbench new variant NAME --python` makes passes its checks, and they
see it when it is broken; measure() of functions of torch gives rows beside native ones; Task.dataset() and
Task.stream() give datasets; attention() on tensors works in children that fork() makes, workers of a DataLoader too.
"""

from __future__ import annotations

import importlib.util
import tempfile
import unittest
from pathlib import Path

import attnbench
from attnbench._program import output_of

from .test_attention import arrays
from .test_fork import SECONDS, in_child
from .test_run import InFolder

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None


class New(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.path = Path(held.name) / "own_window.py"
        output_of("new", "variant", "own_window", "--python", "--out", held.name)

    def loaded(self):
        spec = importlib.util.spec_from_file_location("own_window", self.path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_passes_as_it_is_made(self) -> None:
        module = self.loaded()
        report = attnbench.check(module.OwnWindow, quick=True, **module.OwnWindow.promises)
        self.assertTrue(report.passed, str(report))
        passed = {r.check for r in report if r.outcome == "passed"}
        self.assertLessEqual({"causality", "padding", "convexity", "gradients (double)", "weights"}, passed)

    def test_its_window_is_what_it_says(self) -> None:
        made = self.loaded().OwnWindow(heads=1, head_dim=4, max_len=6, causal=True, window=1)
        q, k, v = (torch.randn(1, 1, 6, 4) for _ in range(3))
        torch.testing.assert_close(made(q, k, v, None), v)  # each query sees its own key alone
        with self.assertRaisesRegex(ValueError, "window is 0; expected at least 1"):
            self.loaded().OwnWindow(heads=1, head_dim=4, max_len=6, causal=True, window=0)

    def test_a_broken_one_is_red(self) -> None:
        text = self.path.read_text()
        for old, new, check in (
            ("seen = seen & mask", "pass", "padding"),
            ("self.scale * q", "self.scale.detach() * q", "gradients"),
            ("torch.where(answers, weights, 0), v)", "0.9 * weights, v)", "convexity"),
        ):
            with self.subTest(check):
                self.assertEqual(text.count(old), 1)
                self.path.write_text(text.replace(old, new))
                module = self.loaded()
                report = attnbench.check(module.OwnWindow, only=check, quick=True, **module.OwnWindow.promises)
                self.assertFalse(report.passed, str(report))


def softmax(q, k, v):
    return (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) @ v


class Measure(InFolder):
    def test_rows_stand_beside_native_ones_and_say_who_provided_them(self) -> None:
        rows = attnbench.measure(softmax, length=[64, 128], heads=2, head_dim=8, progress=False,
                                 output=self.folder / "a.jsonl")  # fmt: skip
        ours = [r for r in rows if r.get("provided_by") == "python"]
        self.assertEqual(len(ours), 6)
        self.assertEqual({r["status"] for r in ours}, {"ok"}, ours)
        self.assertEqual({r["variant"]["name"] for r in ours}, {"python_softmax"})
        self.assertEqual(len(rows) - len(ours), 6)  # of `full`
        by = {(r["measure"], r["axes"]["length"]): r["metrics"] for r in ours}
        self.assertLess(by["fidelity", 64]["relative_error"], 1e-5)
        self.assertAlmostEqual(by["fidelity", 64]["cosine"], 1, places=5)
        self.assertEqual(by["speed", 128]["flops"], 2 * 2 * 2 * 128 * 128 * 8)
        self.assertGreater(by["memory", 128]["peak_bytes"], 3 * 2 * 128 * 8 * 4)
        self.assertTrue(attnbench.plot(rows, "speed"))  # which validates them by the schema

    def test_memory_sees_the_matrix_of_weights(self) -> None:
        rows = attnbench.measure(softmax, length=[2048], heads=1, head_dim=8, progress=False,
                                 measure=["memory"], output=self.folder / "a.jsonl")  # fmt: skip
        (ours,) = [r for r in rows if r.get("provided_by") == "python"]
        matrix = 2048 * 2048 * 4
        self.assertGreater(ours["metrics"]["peak_bytes"], matrix)
        self.assertLess(ours["metrics"]["peak_bytes"], 4 * matrix)

    def test_train_takes_longer_than_forward(self) -> None:
        rows = attnbench.measure(softmax, length=[256], heads=2, head_dim=16, progress=False,
                                 measure=["speed"], mode=["forward", "train"],
                                 output=self.folder / "a.jsonl")  # fmt: skip
        flops = {r["axes"]["mode"]: r["metrics"]["flops"] for r in rows if "provided_by" in r}
        self.assertEqual(flops["train"], 3 * flops["forward"])


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
