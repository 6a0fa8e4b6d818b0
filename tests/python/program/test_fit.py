"""attnbench fit on rows of the real program: exponents of memory are those that are known, and wrong use is one line."""

from __future__ import annotations

import csv
import io
import json
import unittest

from ..faults import BUILT, SHAPE, FaultCase

VARIANTS = ["-v", "full[kernel=materialized]", "-v", "linear"]
SWEEP = ["run", *VARIANTS, "--measure", "memory", "--length", "256:4096:*2", *SHAPE, "-q"]


@BUILT
class Fit(FaultCase):
    def fit(self, *words: str):
        return self.run_program("fit", *words)

    def test_memory_of_scores_is_quadratic(self) -> None:
        self.assertEqual(self.run_program(*SWEEP, "-o", "rows.jsonl").returncode, 0)
        done = self.fit("rows.jsonl", "--format", "json", "--at", "65536")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        full, linear = json.loads(done.stdout)
        self.assertAlmostEqual(full["exponent"], 2, delta=0.1)
        self.assertAlmostEqual(full["declared_exponent"], 2, delta=0.1)
        self.assertLess(linear["exponent"], 1.2)
        self.assertEqual(full["extrapolated"]["length"], 65536)
        table = self.fit("rows.jsonl")
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        self.assertIn("held back", table.stdout)
        lines = list(csv.DictReader(io.StringIO(self.fit("rows.jsonl", "--format", "csv").stdout)))
        self.assertEqual([line["variant"] for line in lines], [full["variant"], "linear"])
        self.assertIn(r"\toprule", self.fit("rows.jsonl", "--format", "latex").stdout)
        few = self.fit("rows.jsonl", "--from", "2048")
        self.assertIn("2 lengths; a fit needs 3", few.stdout)
        none = self.fit("rows.jsonl", "--measure", "speed")
        self.assertEqual((none.returncode, none.stdout, none.stderr.count("\n")), (4, "", 1))

    def test_wrong_use_is_one_line(self) -> None:
        for words, code in (
            ([], 2),
            (["missing.jsonl"], 6),
            (["x", "--from", "9", "--to", "8"], 2),
            (["x", "--at", "0"], 2),
            (["x", "--format", "pdf"], 2),
        ):
            done = self.fit(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), words)


if __name__ == "__main__":
    unittest.main()
