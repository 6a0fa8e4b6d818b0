"""The axis kv_dtype by the real program: rows, states, what is skipped, wrong use; and how pictures tell it."""

from __future__ import annotations

import unittest

from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import dtype_of, shape_name, shape_of, shape_text

from ..faults import BUILT, FaultCase, read_rows

SMALL = ["--length", "600", "--heads", "4", "--kv-heads", "2", "--head-dim", "64", "-q"]
TYPES = ["--kv-dtype", "float32,bfloat16,int8,int4,int4/float32"]


@BUILT
class KvDtype(FaultCase):
    def rows_of(self, *words: str, gate: bool = False) -> list[dict]:
        done = self.run_program("run", *words, "-o", self.rows_file, at_once=not gate)
        self.assertEqual(done.returncode, 0, done.stderr)
        return read_rows(self.rows_file)[1:]

    def test_a_state_is_as_small_as_its_numbers_and_verified_behind_the_real_gate(self) -> None:
        words = ["-v", "full", "--measure", "memory", "--mode", "decode", *SMALL, *TYPES]
        rows = {row["axes"].get("kv_dtype"): row for row in self.rows_of(*words, gate=True)}
        self.assertEqual(list(rows), [None, "bfloat16", "int8", "int4", "int4/float32"])
        state = {name: row["metrics"]["state_bytes"] for name, row in rows.items()}
        whole, recent, held = 2 * 2 * 600 * 64 * 4, 2 * 2 * 32 * 64 * 4, 608 / 600
        self.assertEqual(state[None], whole)
        self.assertEqual(state["bfloat16"], whole // 2)
        self.assertEqual(state["int8"], round(whole * 34 / 128 * held) + recent)
        self.assertEqual(state["int4"], round(whole * 18 / 128 * held) + recent)
        self.assertEqual(state["int4/float32"], round(whole / 2 * 18 / 128 * held) + whole // 2 + recent)
        for name, row in rows.items():
            if name:
                self.assertEqual(row["verified"]["by"], "reference", name)

    def test_speed_of_a_typed_cache_has_no_share_of_the_peak_of_float32(self) -> None:
        words = ["-v", "full", "--mode", "decode", *SMALL, "--kv-dtype", "float32,int8", "--repetitions", "1"]
        rows = {row["axes"].get("kv_dtype"): row for row in self.rows_of(*words)}
        self.assertIsNotNone(rows[None]["metrics"]["peak_fraction"])
        self.assertIsNone(rows["int8"]["metrics"]["peak_fraction"])
        self.assertLess(rows["int8"]["metrics"]["bytes"], 0.4 * rows[None]["metrics"]["bytes"])

    def test_what_cannot_run_is_skipped_with_the_reason(self) -> None:
        words = ["-v", "linear", "--measure", "memory", "--mode", "decode", "--kv-dtype", "int8", *SMALL]
        (row,) = self.rows_of(*words)
        self.assertEqual((row["status"], row["reason"]), ("skipped", "its decoder has no cache of int8"))

    def test_wrong_use_is_one_line(self) -> None:
        for words, said in (
            (["--kv-dtype", "int3", "--mode", "decode"], "kv_dtype=int3 is not valid"),
            (["--kv-dtype", "int8"], "applies to mode decode, a workload and fidelity, and the mode is forward"),
            (["--kv-dtype", "int8", "-t", "mqar"], "a training caches nothing"),
        ):
            done = self.run_program("run", "-v", "full", *words, "-o", self.rows_file)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(said, done.stderr)
            self.assertFalse(self.rows_file.exists())


@BUILT
class KvDtypeScores(FaultCase):
    """`--test-with kv_dtype=…`: learned weights scored by decoding."""

    WORDS = ["-v", "full", "-t", "mqar[preset=small]", "--measure", "accuracy"]
    SHORT = ["--train", "steps=20,batch=16,heads=4,eval_every=20,test_examples=64,validation_examples=32", "-q"]

    def test_a_row_has_a_score_and_the_bytes_of_each_cache_and_repro_asks_for_the_same(self) -> None:
        asked = "kv_dtype=[float32,int8/int4];kv_dtype=bfloat16"
        done = self.run_program("run", *self.WORDS, *self.SHORT, "--test-with", asked, "-o", self.rows_file, at_once=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = read_rows(self.rows_file)[1:]
        entries = {entry["params"]["kv_dtype"]: entry for entry in row["metrics"]["by_params"]}
        self.assertEqual(list(entries), ["float32", "int8/int4", "bfloat16"])
        self.assertEqual([entry["params"] for entry in entries.values()], row["test_with"])
        self.assertEqual(entries["float32"]["test"], row["metrics"]["test"])
        positions, width, heads = 64, 16, 2 * 4  # of both layers
        whole = 2 * heads * positions * width * 4
        self.assertEqual([row["metrics"]["state_bytes"], entries["float32"]["state_bytes"], entries["bfloat16"]["state_bytes"]], [whole, whole, whole // 2])
        recent = 2 * heads * 32 * width * 4
        self.assertEqual(entries["int8/int4"]["state_bytes"], heads * positions * (34 + 18) + recent, "a block of 32 channels holds 16")
        again = self.run_program("repro", self.rows_file, row["cell"], "--print")
        self.assertIn("kv_dtype=int8/int4", again.stdout)

    def test_wrong_use_is_one_line(self) -> None:
        for words, said in (
            (["--test-with", "kv_dtype=int5"], "kv_dtype=int5 is not valid; expected string in float32|bfloat16|int8|"),
            (["--test-with", "evict=h2o,budget=8,kv_dtype=int8"], "a decoder that forgets caches in float32, not in int8"),
            (["-v", "linear", "--test-with", "kv_dtype=int8"], "the decoder of linear has no cache of int8"),
            (["-t", "listops", "--test-with", "kv_dtype=int8"], "a cache of int8 is of decoding, which is causal, and listops is not"),
            (["--kv-dtype", "int8"], "score by decoding: --test-with 'kv_dtype=[int8]'"),
        ):
            done = self.run_program("run", *self.WORDS, *words, "-o", self.rows_file)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(said, done.stderr)
            self.assertFalse(self.rows_file.exists())


class KvDtypePictures(unittest.TestCase):
    def test_a_shape_with_a_cache_of_fewer_bits_is_another_one(self) -> None:
        def cell(**more) -> Cell:
            axes = {"length": 64, "batch": 1, "heads": 4, "head_dim": 8, "threads": 1, **more}
            return Cell("0", "ok", None, "speed", "full", (), None, (), axes, {}, None)

        own, small = cell(), cell(kv_dtype="int8/int4")
        self.assertEqual((dtype_of(own), dtype_of(small)), ("float32", "float32, cache int8/int4"))
        self.assertNotEqual(shape_of(own), shape_of(small))
        self.assertEqual(shape_name(own), "-b1-h4-d8-t1")
        self.assertEqual(shape_name(small), "-b1-h4-d8-t1-kv-int8-int4")
        self.assertIn("cache int8/int4", shape_text(small))
