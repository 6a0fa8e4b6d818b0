"""scripts/peers: whole sessions, attnbench against itself; rows, table and picture.

What needs PyTorch runs where scripts/peers has made .venv-peers, and is skipped elsewhere.
"""

from __future__ import annotations

import json
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from attnbench.peers import loading, plan
from attnbench.peers.picture import draw
from attnbench.peers.plan import Wanted, blocks
from attnbench.peers.record import VALIDATOR, Record
from attnbench.peers.session import Session
from attnbench._place import ROOT
from attnbench.peers.sides import SideError, start_ours
from attnbench.peers.table import table
from jsonschema import ValidationError

from .test_peers_side import STEP, small_blocks

PROGRAM = ROOT / "build" / "native" / "attnbench"
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
built = unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")


def run_line(record):
    record.add(
        "run", argv=["scripts/peers"], method={}, started_at="2026-01-01T00:00:00Z",
        config={
            "subjects": ["full"], "lengths": [11], "step_lengths": [5], "threads": [1],
            "dtype": "float32", "seed": 0,
        },
        environment={"cpu_model": "a CPU", "cores": 2}, libraries={"torch": {"version": "0"}},
    )  # fmt: skip


class Rows(unittest.TestCase):
    def test_what_the_schema_does_not_allow_is_not_written(self):
        with tempfile.TemporaryDirectory() as folder:
            record = Record(Path(folder, "rows.jsonl"))
            for wrong in ({"kind": "run"}, {"kind": "comparison", "status": "ok"}, {"kind": "x"}):
                with self.assertRaises(ValidationError):
                    record.add(**wrong)
            run_line(record)
            record.close()
            self.assertEqual(len(record.path.read_text().splitlines()), 1)


class Twins(Session):
    """attnbench against itself in the places of PyTorch and JAX."""

    def side(self, name, threads):
        if name in ("torch", "jax") and name not in self.sides:
            self.threads = threads
            self.sides[name] = start_ours(PROGRAM, threads)
            self.sides[name].name = name
        return super().side(name, threads)


@built
class Sessions(unittest.TestCase):
    def run_twins(self, todo, folder):
        record = Record(Path(folder, "rows.jsonl"))
        run_line(record)
        with Twins(PROGRAM, Path(sys.executable), record, lambda _: None, 0) as session:
            for block in todo:
                session.run(block, "")
        record.close()
        return record

    def test_rows_table_and_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            record = self.run_twins([next(small_blocks()), STEP], folder)
            read = [json.loads(line) for line in record.path.read_text().splitlines()]
            self.assertEqual(read, record.rows)
            self.assertEqual([e.message for row in read for e in VALIDATOR.iter_errors(row)], [])
            self.assertLessEqual({"forward", "out", "grad_q"}, read[1]["agreement"].keys())
            self.assertEqual(set(read[3]["agreement"]), {"loss_1", "loss_2", "loss_3", "weights"})
            for row in read[1:]:
                self.assertEqual((row["status"], row["peer"]), ("ok", "torch"), row)
                self.assertEqual(set(row["agreement"].values()), {0.0})
                ratio = row["metrics"]["ratio"]
                self.assertTrue(0 < ratio["low"] <= ratio["median"] <= ratio["high"])
                self.assertEqual(ratio["coverage"], 0.95)
                ours, peer = row["samples"]["ours"], row["samples"]["peer"]
                self.assertEqual(len(ours), len(peer))
                self.assertAlmostEqual(ratio["median"], np.median(peer) / np.median(ours))
            self.assertEqual([r["axes"]["mode"] for r in read[1:]], ["forward", "train", "step"])
            self.assertEqual(len(table(record.rows).splitlines()), 4)
            self.assertEqual({p.suffix for p in draw(record)}, {".png", ".svg", ".csv"})

    def run_changed(self, block, change):
        """Comparisons of a twin whose every request to PyTorch's place goes through `change`."""
        right = loading.Side.ask

        def ask(side, do, **fields):
            if side.name == "torch":
                fields = change(do, fields)
            return right(side, do, **fields)

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(loading.Side, "ask", ask):
            return self.run_twins([block], folder).comparisons()

    def test_what_disagrees_is_not_timed(self):
        right = loading.written
        for name in ("forward", "out", "grad_k"):

            def written(side, folder, name=name):
                found = right(side, folder)
                if side.name == "torch":
                    found[name] = found[name] * 1.001
                return found

            with tempfile.TemporaryDirectory() as folder:
                with mock.patch.object(loading, "written", written):
                    rows = self.run_twins([next(small_blocks())], folder).comparisons()
            self.assertEqual([row["status"] for row in rows], ["failed", "failed"])
            for row in rows:
                self.assertIn(f"{name} differs by 1.0e-03", row["reason"])
                self.assertIsNone(row["samples"])

    def test_a_training_step_without_clipping_or_decay_does_not_agree(self):
        for without in ({"clip": 1e9}, {"weight_decay": 0.0}, {"epsilon": 1e-9}):
            [row] = self.run_changed(
                STEP, lambda do, f, w=without: {**f, **w} if do == "model" else f
            )
            self.assertEqual(row["status"], "failed", without)
            self.assertRegex(row["reason"], "^(change|loss)_[^ ]+ differs", without)

    def test_a_peer_that_crashes_leaves_the_other_compared(self):
        def change(do, fields):
            if do == "forward":
                raise SideError("torch ended (-9): no message")
            return fields

        block = replace(next(small_blocks()), peers=("torch", "jax"))
        rows = self.run_changed(block, change)
        found = [(row["axes"]["mode"], row["peer"], row["status"]) for row in rows]
        self.assertEqual(found, [
            ("forward", "torch", "failed"), ("forward", "jax", "ok"),
            ("train", "torch", "failed"), ("train", "jax", "ok"),
        ])  # fmt: skip
        self.assertEqual({row["reason"] for row in rows}, {None, "torch ended (-9): no message"})

    def test_a_block_that_every_peer_refuses_is_not_computed(self):
        block = replace(next(small_blocks()), longest=1)
        with mock.patch.object(loading.Side, "ask", side_effect=AssertionError("asked")):
            with tempfile.TemporaryDirectory() as folder:
                rows = self.run_twins([block], folder).comparisons()
        self.assertEqual([row["status"] for row in rows], ["skipped", "skipped"])
        self.assertIn("takes PyTorch minutes", rows[0]["reason"])

    def test_inputs_that_cannot_be_made_fail_their_block_alone(self):
        blocks = [next(small_blocks())] * 2
        with mock.patch("attnbench.peers.session.write_inputs", side_effect=MemoryError("too large")):
            with tempfile.TemporaryDirectory() as folder:
                rows = self.run_twins(blocks, folder).comparisons()
        self.assertEqual([(row["status"], row["reason"]) for row in rows], [("failed", "too large")] * 4)

    def test_nothing_is_no_agreement(self):
        one = np.ones(3)
        ours = {"forward": one, "out": one, "grad_q": one}
        self.assertEqual(set(loading.agreement(ours, dict(ours))), set(ours))
        self.assertEqual(
            loading.agreement(ours, {"forward": one}, forward_only=True), {"forward": 0}
        )
        for theirs in ({}, {"forward": one}, {**ours, "grad_k": one}):
            with self.assertRaisesRegex(loading.Disagreement, "only one side"):
                loading.agreement(ours, theirs)
        with self.assertRaisesRegex(loading.Disagreement, "only one side"):
            loading.agreement(ours, {}, forward_only=True)


@built
@unittest.skipUnless(PEERS_PYTHON.exists(), "no .venv-peers: scripts/peers makes it")
class WithTheLibraries(unittest.TestCase):
    def test_all_agree_at_a_length_that_fits_no_block(self):
        subjects = ("full", "step")  # the others' answers are in test_peers_variants.py
        wanted = Wanted(subjects, plan.PEERS, (300,), (70,), (1,), quick=True)
        with tempfile.TemporaryDirectory() as folder:
            record = Record(Path(folder, "rows.jsonl"))
            with Session(PROGRAM, PEERS_PYTHON, record, lambda _: None, 0) as session:
                for block in blocks(wanted):
                    session.run(replace(block, budget_s=0), "")
            record.close()
        rows = record.comparisons()
        self.assertEqual([row["reason"] for row in rows if row["status"] == "failed"], [])
        self.assertEqual({row["subject"] for row in rows}, set(subjects))


if __name__ == "__main__":
    unittest.main()
