"""run(), measure() and what reads rows, against the program's own output; task(): arrays that are the
program's own examples."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

import numpy as np

import attnbench
from attnbench._program import output_of

REFERENCE = Path(__file__).resolve().parents[3] / "results" / "reference" / "quick.jsonl"
SMALL = {"measure": "memory", "length": [64, 128], "heads": 1, "head_dim": 8, "progress": False}


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)


class Run(InFolder):
    def test_rows_are_those_of_the_file(self) -> None:
        rows = attnbench.run(variant=["full", "linear"], output=self.folder / "a.jsonl", **SMALL)
        self.assertEqual([r["status"] for r in rows], ["ok"] * 4)
        self.assertEqual({r["variant"]["name"] for r in rows}, {"full", "linear"})
        self.assertIn("cpu_model", rows.runs[0]["environment"])
        frame = rows.frame()
        self.assertEqual(sorted(set(frame["axes.length"])), [64, 128])
        self.assertEqual(frame.attrs["runs"], rows.runs)
        again = attnbench.run(variant=["full", "linear"], output=rows.files[0], **SMALL)
        self.assertEqual(list(again), list(rows))  # nothing was measured anew

    def test_a_sweep_file_runs(self) -> None:
        sweep = self.folder / "sweep.toml"
        sweep.write_text('[[sweep]]\nmeasure = "memory"\nvariants = ["full"]\n'
                         "axes = {length = [64], heads = 1, head_dim = 8}\n")  # fmt: skip
        rows = attnbench.run(sweep, output=self.folder / "a.jsonl", progress=False)
        self.assertEqual(len(rows), 1)

    def test_wrong_options_are_told_in_the_program_s_words(self) -> None:
        for words, options in (
            ("nearest is 'full'", {"variant": "fulll"}),
            ("lenght", {"variant": "full", "lenght": 3}),
        ):
            with self.subTest(words), self.assertRaisesRegex(attnbench.Error, words):
                attnbench.run(output=self.folder / "a.jsonl", **options)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_ctrl_c_keeps_what_is_there(self) -> None:
        path = self.folder / "a.jsonl"
        script = textwrap.dedent(f"""
            import attnbench
            rows = attnbench.run(variant="full", measure="speed", length=[64, 8192, 8193, 8194, 8195],
                                 heads=1, head_dim=8, output={str(path)!r}, progress=False)
            print(rows.interrupted, len(rows), len({{r["cell"] for r in rows}}))
        """)
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ,
                                 # A shell's background jobs ignore Ctrl-C, and what they start would too.
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))  # fmt: skip
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (path.exists() and path.stat().st_size):
            time.sleep(0.05)
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=120)
        self.assertEqual(said.split()[0], "True", said)
        self.assertLess(int(said.split()[1]), 5)


class Reading(InFolder):
    def test_load_reads_every_row(self) -> None:
        rows = attnbench.load(REFERENCE)
        self.assertGreater(len(rows), 100)
        self.assertEqual(len(rows.runs), 1)

    def test_what_is_no_rows_file_is_one_line(self) -> None:
        path = self.folder / "a.jsonl"
        path.write_text('{"schema": "attnbench/1", "kind": "run"}\n{}\n')
        with self.assertRaisesRegex(attnbench.Error, "a.jsonl:2: no line of attnbench/1"):
            attnbench.load(path)
        with self.assertRaisesRegex(attnbench.Error, "cannot be read"):
            attnbench.load(self.folder / "none.jsonl")

    def test_compare_and_table_are_the_program_s(self) -> None:
        found = attnbench.compare(REFERENCE, REFERENCE, measure="memory")
        self.assertEqual(found["exit_code"], 0)
        self.assertGreater(len(found), 1)
        printed = output_of("table", str(REFERENCE), "--color=never", allowed=(0, 1))
        self.assertEqual(attnbench.table(REFERENCE), printed)

    def test_plot_and_report_draw_what_the_command_line_draws(self) -> None:
        figures = attnbench.plot(REFERENCE, "fidelity", self.folder)
        self.assertEqual(list(figures), ["fidelity"])
        drawn = self.folder / "fidelity.csv"
        wanted = REFERENCE.parent / "plots" / "fidelity.csv"
        self.assertEqual(drawn.read_text(), wanted.read_text())
        with self.assertRaisesRegex(attnbench.Error, "no picture is named nothing"):
            attnbench.plot(REFERENCE, "nothing")
        page = attnbench.report(REFERENCE, self.folder / "report.html")
        self.assertIn("<html", page)
        self.assertEqual((self.folder / "report.html").read_text(encoding="utf-8"), page)


class Measure(InFolder):
    def mean(self, q, k, v):
        return np.broadcast_to(v.mean(2, keepdims=True), q.shape)

    def test_functions_of_numpy_are_measured(self) -> None:
        rows = attnbench.measure(self.mean, length=[64], heads=1, head_dim=8, progress=False,
                                 measure=["speed", "fidelity"], output=self.folder / "a.jsonl")  # fmt: skip
        ours = [r for r in rows if r.get("provided_by") == "python"]
        self.assertEqual({r["status"] for r in ours}, {"ok"}, ours)
        self.assertEqual({r["variant"]["name"] for r in ours}, {"python_mean"})
        table = attnbench.table(rows)
        self.assertIn("python_mean\u2021", table)
        self.assertEqual(table.count("python_mean"), table.count("python_mean\u2021"))
        self.assertIn("\u2021: written in Python", table)

    def test_a_red_function_has_no_figures(self) -> None:
        state = []

        def remembering(q, k, v):
            state.append(v.mean())
            return self.mean(q, k, v) + np.float32(sum(state))

        rows = attnbench.measure(remembering, length=[64], heads=1, head_dim=8, progress=False,
                                 measure=["speed"], framework="numpy", output=self.folder / "a.jsonl")  # fmt: skip
        (ours,) = [r for r in rows if r.get("provided_by") == "python"]
        self.assertEqual((ours["status"], ours["metrics"]), ("failed", None))
        self.assertIn("contract checks are red", ours["reason"])


class Catalogue(unittest.TestCase):
    def test_names_are_those_of_the_command_line(self) -> None:
        self.assertIn("full", [v["name"] for v in attnbench.variants()])
        self.assertIn("mqar", [t["name"] for t in attnbench.tasks()])
        self.assertEqual(attnbench.info("linformer")["name"], "linformer")
        with self.assertRaisesRegex(attnbench.Error, "nearest is 'full'"):
            attnbench.info("ful")
        self.assertIn(attnbench.__version__, output_of("--version"))


KINDS = ("mqar", "listops[preset=small]", "retrieval[preset=small]", "image", "adding", "reverse",
         "frames", "graph")  # fmt: skip


class Examples(unittest.TestCase):
    def test_batches_are_what_sample_writes(self) -> None:
        for spec in KINDS:
            with self.subTest(spec):
                lines = output_of("sample", spec, "--split", "test", "--count", "3", "--seed", "5")
                batch = attnbench.task(spec).batch("test", 0, 3, seed=5)
                for row, line in enumerate(map(json.loads, lines.splitlines())):
                    self.same(batch, row, line)

    def same(self, batch: attnbench.Batch, row: int, line: dict) -> None:
        if batch.tokens is not None:
            documents = [line["tokens"], line["second"]] if "second" in line else [line["tokens"]]
            tokens, lengths = np.atleast_2d(batch.tokens[row]), np.atleast_1d(batch.lengths[row])
            mask = np.atleast_2d(batch.mask[row])
            for place, document in enumerate(documents):
                self.assertEqual(tokens[place][mask[place]].tolist(), document)
                self.assertEqual(lengths[place], len(document))
                self.assertFalse(tokens[place][len(document):].any())
        else:
            given = batch.values[row][batch.mask[row]].ravel().tolist()
            np.testing.assert_allclose(given, line["values"], rtol=1e-6)
        if batch.wanted is not None:
            self.assertAlmostEqual(float(batch.labels[row]), line["target"], places=5)
        else:
            target = np.atleast_1d(batch.labels[row])
            wanted = np.atleast_1d(line["target"])
            self.assertEqual(target[: len(wanted)].tolist(), wanted.tolist())
            self.assertTrue((target[len(wanted):] == -1).all())
        if "edges" in line:
            first, keys = batch.edges
            base = row * batch.length
            found = [[i, int(j)] for i in range(batch.length)
                     for j in keys[first[base + i]:first[base + i + 1]]]  # fmt: skip
            self.assertEqual(found, line["edges"])

    def test_a_batch_does_not_depend_on_the_cut(self) -> None:
        task = attnbench.task("mqar[preset=small]")
        whole = task.batch("validation", 0, 7).tokens
        parts = [b.tokens for b in task.batches("validation", 3, 7)]
        self.assertEqual([len(p) for p in parts], [3, 3, 1])
        np.testing.assert_array_equal(np.concatenate(parts), whole)

    def test_arrays_hold_the_library_s_memory(self) -> None:
        batch = attnbench.task("mqar").batch("train", 0, 2)
        self.assertFalse(batch.tokens.flags.owndata)
        tokens = batch.tokens
        copy = tokens.copy()
        del batch
        attnbench.task("mqar").batch("train", 2, 2)
        np.testing.assert_array_equal(tokens, copy)

    def test_what_the_task_is(self) -> None:
        task = attnbench.task("mqar[preset=small]")
        self.assertEqual((task.name, task.metric), ("mqar", "accuracy"))
        self.assertTrue(task.per_token)
        self.assertRaises(AttributeError, lambda: task.size)

    def test_each_fault_is_one_line(self) -> None:
        task = attnbench.task("mqar")
        for words, call in (
            ("nearest is 'mqar'", lambda: attnbench.task("mqr")),
            ("split 'dev' is not valid", lambda: task.batch("dev", 0, 1)),
            ("a batch of 0 examples", lambda: task.batch("test", 0, 0)),
            ("which has", lambda: task.batch("train", 10**12, 1)),
        ):
            with self.subTest(words), self.assertRaisesRegex(attnbench.Error, words):
                call()
