"""The axis kv_heads by the real program: rows of shared keys, states of decoding, what is skipped, wrong use; and how pictures tell it."""

from __future__ import annotations

import unittest

from attnbench.plots.rows.joined import context_of
from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import shape_name, shape_of, shape_text

from ..faults import BUILT, FaultCase, read_rows

SMALL = ["--length", "64", "--heads", "4", "--head-dim", "8", "-q"]


@BUILT
class KvHeads(FaultCase):
    def test_rows_hold_the_axis_where_keys_are_shared(self) -> None:
        words = ["run", "-v", "full", "-v", "mean", "--measure", "memory", "--mode", "forward,decode"]
        done = self.run_program(*words, "--kv-heads", "0,1,3,4", *SMALL, "-o", self.rows_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("kv_heads 1", done.stdout)
        rows = {}
        for row in read_rows(self.rows_file)[1:]:
            rows[row["variant"]["name"], row["axes"]["mode"], row["axes"].get("kv_heads")] = row
        self.assertEqual(len(rows), 2 * 2 * 3)  # of four values, two are as many as heads
        state = 2 * 64 * 8 * 4
        for mode in ("forward", "decode"):
            own, shared = rows["full", mode, None]["metrics"], rows["full", mode, 1]["metrics"]
            self.assertEqual((own["state_bytes"], shared["state_bytes"]), (4 * state, state))
            reason = rows["full", mode, 3]["reason"]
            self.assertEqual(reason, "heads 4 are not a multiple of kv_heads 3")
            self.assertEqual(rows["mean", mode, 1]["status"], "skipped")
        for name in ("extra_bytes", "declared_extra_bytes"):  # keys and values, repeated
            own, shared = (rows["full", "forward", n]["metrics"][name] for n in (None, 1))
            self.assertEqual(shared - own, 4 * state, name)

    def test_a_token_reads_less(self) -> None:
        words = ["run", "-v", "full", "--mode", "decode", "--repetitions", "1", "--kv-heads", "2,4"]
        done = self.run_program(*words, *SMALL, "-o", self.rows_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        shared, own = (row["metrics"] for row in read_rows(self.rows_file)[1:])
        self.assertEqual(2 * shared["state_bytes"], own["state_bytes"])
        self.assertLess(shared["bytes"], own["bytes"])

    def test_wrong_use_is_one_line(self) -> None:
        for words, said in (
            (["--kv-heads", "-1"], "kv_heads=-1"),
            (["--kv-heads", "two"], "kv_heads=two"),
            (["--kv-heads", "2", "--measure", "fidelity"], "does not apply to measure fidelity"),
            (["--kv-heads", "2", "-t", "mqar"], "--train kv_heads=2"),
        ):
            done = self.run_program("run", "-v", "full", *words, "-o", self.rows_file)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), words)
            self.assertIn(said, done.stderr)
            self.assertFalse(self.rows_file.exists())


class Pictures(unittest.TestCase):
    def test_a_shape_with_shared_keys_is_another_one(self) -> None:
        def cell(**more) -> Cell:
            axes = {"length": 64, "batch": 1, "heads": 4, "head_dim": 8, "threads": 1, **more}
            return Cell("0", "ok", None, "speed", "full", (), None, (), axes, {}, None)

        own, shared = cell(), cell(kv_heads=1)
        self.assertNotEqual(shape_of(own), shape_of(shared))
        self.assertEqual(shape_name(own), "-b1-h4-d8-t1")
        self.assertEqual(shape_name(shared), "-b1-h4-d8-t1-kv1")
        self.assertNotEqual(context_of(own), context_of(shared))
        self.assertGreater(context_of(own), context_of(shared))  # the ordinary one is preferred
        self.assertIn("kv_heads 1", shape_text(shared))
        self.assertNotIn("kv_heads", shape_text(own))


if __name__ == "__main__":
    unittest.main()
