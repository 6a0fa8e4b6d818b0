"""measure() of functions of torch: rows beside native ones, in time, memory and fidelity."""

from __future__ import annotations

import unittest

import attnbench

from .test_run import InFolder

try:
    import torch  # noqa: F401: check() finds out that functions are of torch once it is imported
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None


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


if __name__ == "__main__":
    unittest.main()
