"""Axes by the real program: dtype, kv_heads and stacks of several variants: rows, what is skipped, wrong use;
and how pictures tell them."""

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
            (["--dtype", "bfloat16", "-t", "mqar"], "of training it is a setting: --train dtype=bfloat16"),
        ):
            done = self.run_program("run", "-v", "full", *words, "-o", self.rows_file)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(said, done.stderr)
            self.assertFalse(self.rows_file.exists())


class DtypePictures(unittest.TestCase):
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


SMALL_HEADS = ["--length", "64", "--heads", "4", "--head-dim", "8", "-q"]


@BUILT
class KvHeads(FaultCase):
    def test_rows_hold_the_axis_where_keys_are_shared(self) -> None:
        words = ["run", "-v", "full", "-v", "mean", "--measure", "memory", "--mode", "forward,decode"]
        done = self.run_program(*words, "--kv-heads", "0,1,3,4", *SMALL_HEADS, "-o", self.rows_file)
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
        done = self.run_program(*words, *SMALL_HEADS, "-o", self.rows_file)
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


class KvHeadsPictures(unittest.TestCase):
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


MODEL = ["--scope", "model", "--causal", "true", "--length", "32", "--heads", "2", "--head-dim", "8", "-q"]
TINY = "layers=3,width=16,feed_forward=16,steps=2,batch=2,eval_every=2,validation_examples=4,test_examples=4"


@BUILT
class Stacks(FaultCase):
    def test_a_model_holds_what_its_layers_hold(self) -> None:
        words = ["run", "-v", "full", "-v", "linear", "-v", "full+linear+linear", "--measure", "memory", "--layers", "2,3"]
        done = self.run_program(*words, *MODEL, "-o", self.rows_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("full+2·linear", done.stdout)
        run, *lines = read_rows(self.rows_file)
        listed = [(variant["name"], variant["family"]) for variant in run["variants"]]
        self.assertIn(("full+2·linear", "hybrid"), listed)
        rows = {(row["variant"]["name"], row["axes"].get("layers", 2)): row for row in lines}
        full, linear = (rows[name, 3]["metrics"]["state_bytes"] // 3 for name in ("full", "linear"))
        self.assertEqual(rows["full+2·linear", 3]["metrics"]["state_bytes"], full + 2 * linear)
        self.assertEqual(rows["full+2·linear", 2]["reason"], "full+2·linear repeats every 3 layers, and layers=2 is no multiple of 3")

    def test_training_is_resumed_by_its_name(self) -> None:
        words = ["run", "-v", "full+2*linear", "-t", "mqar", "--train", TINY, "-q", "-o", self.rows_file]
        self.assertEqual(self.run_program(*words).returncode, 0)
        before = self.rows_file.read_bytes()
        again = self.run_program(*[str(w).replace("2*", "2·") for w in words])
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.rows_file.read_bytes(), before)
        row = read_rows(self.rows_file)[1]
        self.assertEqual((row["status"], row["variant"]), ("ok", {"name": "full+2·linear", "params": {}}))
        self.assertGreater(row["metrics"]["parameters"], 0)

    def test_wrong_use_is_one_line(self) -> None:
        for words, said in (
            (["run", "-v", "full+"], "'full+' has a layer without a variant"),
            (["run", "-v", "full+liner"], "unknown variant 'liner'"),
            (["run", "-v", "full", "--layers", "3"], "applies to scope model alone"),
            (["run", "-v", "full", "--layers", "3", "-t", "mqar"], "--train layers=3"),
            (["check", "full+linear"], "is a stack of layers"),
            (["run", "-v", "full+linear", "--length", "16"], "a stack of layers is measured at scope model alone; say --scope model"),
            (["run", "-v", "full", "-v", "full+linear", "--scope", "attention,layer"], "no cell of full+linear can run: "),
            (["run", "-v", "full+linear", "--measure", "fidelity"], "say --measure speed --scope model, or -t TASK"),
            (["run", "-v", "full", "--mode", "train", "--dtype", "bfloat16"], "no cell of full can run: bfloat16 has no backward pass"),
            (["run", "-v", "full", "--mode", "decode", "--scope", "layer"], "decoding is measured at scope attention alone"),
            (["info", "full+linear"], "is a stack of layers"),
        ):
            done = self.run_program(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), words)
            self.assertIn(said, done.stderr)
        self.assertFalse((self.folder / "results").exists())

    def test_where_some_cells_can_run_the_others_are_rows(self) -> None:
        words = ["run", "-v", "full+linear", "--scope", "attention,model", "--causal", "true", "--length", "32", "--measure", "memory", "-q"]
        done = self.run_program(*words, "-o", self.rows_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {row["axes"]["scope"]: (row["status"], row["reason"]) for row in read_rows(self.rows_file)[1:]}
        told = "a stack of layers is measured at scope model alone"
        self.assertEqual(found, {"attention": ("skipped", told), "model": ("ok", None)})
        done = self.run_program("run", "-v", "full+linear", "--shard", "0/2", "-n")
        self.assertEqual(done.returncode, 0, "the other part may hold cells that can")


class StackPictures(unittest.TestCase):
    def test_a_deeper_model_is_another_shape(self) -> None:
        def cell(**more) -> Cell:
            axes = {"length": 64, "batch": 1, "heads": 4, "head_dim": 8, "threads": 1, "scope": "model", **more}
            return Cell("0", "ok", None, "speed", "full", (), None, (), axes, {}, None)

        plain, deep = cell(), cell(layers=6)
        self.assertNotEqual(shape_of(plain), shape_of(deep))
        self.assertEqual(shape_name(deep), shape_name(plain) + "-n6")
        self.assertNotEqual(context_of(plain), context_of(deep))
        self.assertGreater(context_of(plain), context_of(deep))  # the ordinary one is preferred
        self.assertIn("6 layers", shape_text(deep))
        self.assertNotIn("layers", shape_text(plain))
