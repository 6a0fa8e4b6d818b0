"""What is not declared is called measured: in tables and ledger, from rows; and `check --derive`, which finds the formulas."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from .test_cli import PROGRAM, attnbench, rows_of

SWEEP = "run -v full -v linear --measure speed,memory --length 64,128 --heads 1 --head-dim 16".split()


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
class Undeclared(unittest.TestCase):
    def test_tables_call_measured_what_is_not_declared(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.jsonl"
            done = attnbench(*SWEEP, "-o", str(path), cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("measured", done.stdout)
            rows = rows_of(path)
            for row in rows[1:]:
                self.assertEqual(row["ledger"]["cost"], "declared")
                if row["variant"]["name"] == "linear":
                    self._undeclare(row)
            path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
            # Nothing is left to measure.
            again = attnbench(*SWEEP, "-o", str(path), "--ledger", cwd=folder)
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertIn("FLOPs of linear are measured: no cost is declared", again.stdout)
            ledger = again.stdout[again.stdout.index("parity ledger") :].splitlines()
            told = {name: [x for x in ledger if f" {name} " in x and "speed" in x] for name in ("full", "linear")}
            self.assertIn("FLOP measured", told["linear"][0])
            self.assertNotIn("measured", told["full"][0])

    @staticmethod
    def _undeclare(row):
        row["ledger"]["cost"] = "measured"
        if row["measure"] == "speed":
            row["metrics"]["bytes"] = row["metrics"]["roofline_s"] = None
        else:
            row["metrics"]["declared_extra_bytes"] = row["metrics"]["state_bytes"] = None

    def test_derive_prints_a_do_cost(self):
        done = attnbench("check", "linear", "--derive")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Cost do_cost(const AttentionShape& s) const override {", done.stdout)
        self.assertIn(".flops = ", done.stdout)
        self.assertIn("heads * d * d", done.stdout)

    def test_derive_refuses_what_it_cannot_do_in_one_line(self):
        for arguments, said in (
            ([], "needs the name of a variant"),
            (["listops"], "listops"),
            (["linear", "--quick"], "--quick"),
            (["linaer"], "linear"),
        ):
            done = attnbench("check", *arguments, "--derive")
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
