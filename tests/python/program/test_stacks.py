"""Stacks of several variants by the real program: rows of scope model and of training, what is skipped, wrong use, resuming; and how pictures tell them."""

from __future__ import annotations

import unittest

from attnbench.plots.rows.joined import context_of
from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import shape_name, shape_of, shape_text

from ..faults import BUILT, FaultCase, read_rows

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


class Pictures(unittest.TestCase):
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


if __name__ == "__main__":
    unittest.main()
