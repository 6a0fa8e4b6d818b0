"""scripts/peers: whole sessions, attnbench against itself; rows, table and picture.

What needs PyTorch runs where scripts/peers has made .venv-peers, and is skipped elsewhere.

scripts/peers --table: rows as text and as Markdown, and what is said of rows that are none.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from jsonschema import ValidationError

from attnbench._place import ROOT
from attnbench.peers import loading, plan
from attnbench.peers.__main__ import main
from attnbench.peers.picture import draw
from attnbench.peers.plan import Block, Wanted, blocks
from attnbench.peers.record import VALIDATOR, Ratio, Record, comparison
from attnbench.peers.session import Session
from attnbench.peers.sides import SideError, start_ours
from attnbench.peers.table import table

from ..faults import BUILT, PROGRAM
from .test_peers_side import STEP, small_blocks

PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
built = BUILT


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


PEAK = 1e9


def add(record, subject, length, peer="torch", mode="forward", threads=1, times=2.0, **fields):
    """A comparison in which we take 1 s and the peer `times` as long."""
    block = Block(subject, length, threads, (mode,), (peer,), 1.0, params=fields.pop("params", {}))
    if not fields.get("reason"):
        fields = {
            "agreement": {"forward": 1e-7, "grad_q": 3e-7}, "ours": [1.0], "theirs": [times],
            "ratio": Ratio(times, times - 0.1, times + 0.1, 0.95), "flops": PEAK / 2, **fields,
        }  # fmt: skip
    record.add("comparison", **comparison(block, peer, mode, **fields))


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, "rows.jsonl")

    def run_line(self, record, **more):
        record.add(
            "run", argv=["scripts/peers"], method={}, started_at="2026-01-01T00:00:00Z",
            config={"subjects": [], "lengths": [8], "step_lengths": [8], "threads": [1],
                    "dtype": "float32", "seed": 0},
            environment={"cpu_model": "a CPU", "cores": 2}, libraries={"torch": {"version": "0"}},
            **more,
        )  # fmt: skip

    def written(self):
        record = Record(self.path)
        self.run_line(record, peak={"1": PEAK}, no_peer={"sigmoid": "no peer: nobody wrote it"})
        add(record, "full", 2048, times=3.0)
        add(record, "full", 512)
        add(record, "full", 512, "jax", times=8.0)
        add(record, "graph", 512, threads=2, params={"degree": 8}, flops=None)
        add(record, "full", 512, "onnxruntime", "train", status="skipped", reason="no way back")
        add(record, "full", 2048, "onnxruntime", "train", status="skipped", reason="no way back")
        record.close()
        return str(self.path)

    def printed(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(main(["--table", self.written(), *arguments]), 0)
        self.path.unlink()
        return out.getvalue()

    def wrong(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            with self.assertRaises(SystemExit) as end:
                main(["--table", str(self.path), *arguments])
        self.assertEqual((end.exception.code, told.getvalue().count("\n")), (2, 1))
        return told.getvalue()

    def test_text_has_a_line_for_each_comparison(self):
        lines = self.printed().splitlines()
        self.assertEqual(len(lines), 1 + 6 + 1)
        self.assertRegex(
            lines[1],
            r"^full +2048 +1 +forward +PyTorch +1 s +3 s +0.50 / 0.17 +3e-07 +3.00 \[2.90, 3.10\]$",
        )
        self.assertRegex(lines[4], r"^graph degree=8 +512 +2 .* 1 s +2 s +3e-07 ")
        self.assertRegex(lines[5], "skipped: no way back$")
        self.assertEqual(lines[-1], "sigmoid: no peer: nobody wrote it")

    def test_markdown_has_a_line_for_each_variant_peer_and_pass(self):
        self.assertEqual(
            self.printed("--markdown", "--threads", "1"),
            "| variant | against | pass | n | times as long as ours | answers differ by "
            "| of FMA peak: ours | theirs |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
            "| `full` | PyTorch | forward | 512 / 2048 | 2.00 [1.90, 2.10] / 3.00 [2.90, 3.10] "
            "| 3e-07 | 0.50 / 0.50 | 0.25 / 0.17 |\n"
            "| `full` | JAX | forward | 512 | 8.00 [7.90, 8.10] | 3e-07 | 0.50 | 0.06 |\n\n"
            "Skipped: no way back (`full` fwd+bwd 512/2048).\n\n"
            "`sigmoid`: no peer: nobody wrote it.\n",
        )
        self.assertNotIn("sigmoid", self.printed("--markdown", "--variants", "full"))
        both = self.printed("--markdown")
        self.assertIn("\n2 threads:\n\n| variant |", both)
        self.assertIn("| `graph degree=8` | PyTorch | forward | 512 | 2.00 [1.90, 2.10] | 3e-07 "
                      "| – | – |", both)  # fmt: skip

    def test_rows_are_chosen(self):
        for arguments, count in (
            (["--variants", "graph"], 1), (["--lengths", "2048"], 2), (["--threads", "2"], 1),
            (["--peers", "jax,torch"], 4), (["--variants", "full", "--peers", "jax"], 1),
        ):  # fmt: skip
            missing = 0 if "--variants" in arguments else 1
            self.assertEqual(len(self.printed(*arguments).splitlines()), 1 + count + missing, arguments)
        self.written()
        self.assertIn("no comparison is of what is chosen", self.wrong("--variants", "mean"))

    def test_the_last_of_two_comparisons_of_one_thing_counts(self):
        record = Record(self.path)
        self.run_line(record)
        for times in (2.0, 5.0):
            add(record, "full", 512, times=times)
        record.close()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(["--table", str(self.path), "--markdown"])
        self.assertIn("| 5.00 [4.90, 5.10] | 3e-07 | – | – |", out.getvalue())
        self.assertNotIn("2.00", out.getvalue())

    def test_what_is_no_rows_file_is_told_with_its_line(self):
        self.assertIn("cannot be read: No such file", self.wrong())
        self.path.write_bytes(b"\xff\xfe")
        self.assertIn("it is no text", self.wrong())
        self.path.write_text("{")
        self.assertIn("line 1: no JSON", self.wrong())
        self.path.write_text('{"schema": "other"}\n')
        self.assertIn("line 1: no row of attnbench-peers/1", self.wrong())
        lines = Path(self.written_elsewhere()).read_text().splitlines()
        self.path.write_text("\n".join([lines[1], *lines]))
        self.assertIn("line 1: a comparison before its run line", self.wrong())
        row = json.loads(lines[1])
        row["metrics"]["ratio"]["median"] = -1
        self.path.write_text("\n".join([lines[0], json.dumps(row)]))
        self.assertIn("line 2: no row of attnbench-peers/1: ", self.wrong())

    def written_elsewhere(self):
        """The path of rows as they should be; this test's own file is free again."""
        self.path.unlink()
        self.written()
        return self.path.rename(self.path.with_name("right.jsonl"))

    def test_options_that_measure_do_not_go_with_it(self):
        self.written()
        for option in (["--quick"], ["-o", "x.jsonl"], ["--program", "x"], ["--python", "x"]):
            self.assertIn("drop one of them", self.wrong(*option))
