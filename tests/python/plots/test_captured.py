"""Fidelity on what a model reads: rows and their repetition by the real program, and the pictures of such rows."""

from __future__ import annotations

import unittest
from pathlib import Path

from attnbench.plots.kinds.fidelity import fidelity
from attnbench.plots.rows.read import read_rows as cells_of
from attnbench.plots.rows.style import Styles

from ..faults import BUILT, FaultCase, read_rows

WORDS = ["--measure", "fidelity", "--input", "initial,trained", "-t", "mqar[length=32,pairs=2,vocab=32]", "--batch", "2"]
TRAINING = ["--train", "steps=20,warmup=2,batch=8,width=32,validation_examples=16,test_examples=16"]


@BUILT
class Captured(FaultCase):
    def test_rows_tell_each_layer_and_can_be_repeated(self) -> None:
        done = self.run_program("run", "-v", "full", "-v", "truncated[window=4]", *WORDS, *TRAINING, "-o", self.rows_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = read_rows(self.rows_file)[1:]
        self.assertEqual(len(rows), 4)
        for row in rows:
            metrics = row["metrics"]
            self.assertEqual(len(metrics["layers"]), 2)
            self.assertEqual("model_test" in metrics, row["axes"]["input"] == "trained")
            exact = row["variant"]["name"] == "full"
            self.assertEqual(metrics["relative_error"] < 1e-5, exact)
            self.assertAlmostEqual(metrics["mass_kept"], 1 if exact else metrics["mass_kept"], 6)
            self.assertLess(metrics["layers"][0]["effective_rank"], 32)
        windows = [r["metrics"]["mass_kept"] for r in rows if r["variant"]["name"] == "truncated"]
        self.assertLess(max(windows), 0.9)
        again = self.run_program("repro", self.rows_file, rows[-1]["cell"])
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertIn("agrees", again.stdout)
        table = self.run_program("table", self.rows_file)
        self.assertIn("trained mqar", table.stdout)
        drawn = cells_of([Path(self.rows_file)])
        pictures = fidelity(drawn, Styles(drawn))
        self.assertEqual([p.name for p in pictures], ["fidelity-causal-mqar"])
        self.assertEqual(set(pictures[0].data["input"]), {"initial", "trained"})


if __name__ == "__main__":
    unittest.main()
