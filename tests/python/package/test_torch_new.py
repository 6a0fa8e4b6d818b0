"""`attnbench new variant NAME --python`: the class passes its checks as it is made, and they see it when it is broken."""

from __future__ import annotations

import importlib.util
import tempfile
import unittest
from pathlib import Path

import attnbench
from attnbench._program import output_of

try:
    import torch
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


if __name__ == "__main__":
    unittest.main()
