"""The axis dtype by the real program: rows of bfloat16, what is skipped, wrong use; and how pictures tell it."""

from __future__ import annotations

import unittest

from attnbench.plots.rows.joined import context_of
from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import dtype_of, shape_name, shape_of, shape_text

from ..faults import BUILT, FaultCase, read_rows

SMALL = ["--length", "64", "--heads", "2", "--head-dim", "16", "-q"]
BOTH = ["--dtype", "float32,bfloat16"]


@BUILT
class Dtype(FaultCase):
    def rows_of(self, *words: str, gate: bool = False) -> list[dict]:
        done = self.run_program("run", *words, *SMALL, "-o", self.rows_file, at_once=not gate)
        self.assertEqual(done.returncode, 0, done.stderr)
        return read_rows(self.rows_file)[1:]

    def test_rows_say_the_dtype_and_the_path(self) -> None:
        words = ["-v", "full", "-v", "relu", "--measure", "memory", "--mode", "forward,decode"]
        found = {}
        for row in self.rows_of(*words, *BOTH):
            found[row["variant"]["name"], row["axes"]["mode"], row["axes"].get("dtype")] = row
        self.assertEqual(len(found), 2 * 2 * 2)
        for (name, mode, dtype), row in found.items():
            path = "native" if name == "full" else "converted"
            wanted = {"name": "bfloat16", "path": path} if dtype else None
            self.assertEqual(row.get("dtype"), wanted, (name, mode))
            precision = "bfloat16" if dtype and path == "native" else "float32"
            self.assertEqual(row["ledger"]["precision"], precision)
        array = 2 * 64 * 16  # numbers
        for name, dtype in (("full", None), ("relu", None), ("full", "bfloat16")):
            metrics = found[name, "forward", dtype]["metrics"]
            held = metrics["peak_bytes"] - metrics["extra_bytes"]
            self.assertEqual(held, 3 * array * (2 if dtype else 4), name)
            self.assertEqual(metrics["extra_bytes"], metrics["declared_extra_bytes"], name)
        own, widened = (found["relu", "forward", d]["metrics"] for d in (None, "bfloat16"))
        self.assertEqual(widened["extra_bytes"] - own["extra_bytes"], 3 * array * 4)
        state = [found["full", "decode", d]["metrics"]["state_bytes"] for d in (None, "bfloat16")]
        self.assertEqual(state, [2 * array * 4, 2 * array * 2])

    def test_speed_has_no_share_of_a_peak_that_is_not_its_own(self) -> None:
        rows = self.rows_of("-v", "full", "-v", "relu", *BOTH, "--repetitions", "1")
        for row in rows:
            is_native = row.get("dtype", {}).get("path") == "native"
            self.assertEqual(row["metrics"]["peak_fraction"] is None, is_native, row["axes"])
        moved = {r["axes"].get("dtype"): r["metrics"]["bytes"] for r in rows if r["variant"]["name"] == "full"}
        self.assertEqual(2 * moved["bfloat16"], moved[None])

    def test_fidelity_tells_storage_from_method_behind_the_real_gate(self) -> None:
        rows = self.rows_of("-v", "full", "--measure", "fidelity", *BOTH, gate=True)
        found = {row["axes"].get("dtype"): row["metrics"] for row in rows}
        own, rounded = found[None], found["bfloat16"]
        self.assertNotIn("rounded_inputs_error", own)
        self.assertLess(own["relative_error"], 1e-5)
        self.assertLess(1e-4, rounded["rounded_inputs_error"])
        self.assertLess(rounded["rounded_inputs_error"], rounded["relative_error"])
        self.assertLess(rounded["relative_error"], 3 / 256)
        self.assertIsNone(rounded["weights_kl"])

    def test_what_cannot_run_is_skipped_with_the_reason(self) -> None:
        words = ["-v", "full", "--mode", "forward,train", "--dtype", "bfloat16", "--measure", "memory"]
        reasons = {row["axes"]["mode"]: row["reason"] for row in self.rows_of(*words)}
        told = "bfloat16 has no backward pass; its modes are forward and decode"
        self.assertEqual(reasons, {"forward": None, "train": told})

    def test_wrong_use_is_one_line(self) -> None:
        for words, said in (
            (["--dtype", "float64"], "dtype=float64 is not valid; expected string in float32|bfloat16"),
            (["--dtype", "bf16"], "dtype=bf16"),
            (["--dtype", "bfloat16", "-t", "mqar"], "models are trained in float32"),
        ):
            done = self.run_program("run", "-v", "full", *words, "-o", self.rows_file)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(said, done.stderr)
            self.assertFalse(self.rows_file.exists())


class Pictures(unittest.TestCase):
    def test_a_shape_in_bfloat16_is_another_one(self) -> None:
        def cell(**more) -> Cell:
            axes = {"length": 64, "batch": 1, "heads": 4, "head_dim": 8, "threads": 1, **more}
            return Cell("0", "ok", None, "speed", "full", (), None, (), axes, {}, None)

        own, small = cell(), cell(dtype="bfloat16")
        self.assertEqual((dtype_of(own), dtype_of(small)), ("float32", "bfloat16"))
        self.assertNotEqual(shape_of(own), shape_of(small))
        self.assertEqual(shape_name(own), "-b1-h4-d8-t1")
        self.assertEqual(shape_name(small), "-b1-h4-d8-t1-bfloat16")
        self.assertGreater(context_of(own), context_of(small))  # float32 is preferred
        self.assertIn("bfloat16", shape_text(small))
        self.assertNotIn("bfloat16", shape_text(own))


if __name__ == "__main__":
    unittest.main()
