"""A tuned sweep from end to end: table, resumption, refusals, and the pilots of a dry run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from .test_cli import PROGRAM, attnbench, rows_of

TASK = "mqar[vocab=32,pairs=2,length=16,train_examples=64]"
SMALL = "steps=2,width=16,heads=1,layers=1,feed_forward=16,validation_examples=8,test_examples=8"
SWEEP = ["run", "-v", "full", "-v", "linear", "-t", TASK, "--train", SMALL]
TUNE = ["--tune", "learning_rate=[1e-3,3e-3]", "--seed", "0,1", "-q", "-o", "rows.jsonl"]


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
class TunedRun(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name)
        self.rows = self.folder / "rows.jsonl"

    def run_sweep(self, *more: str) -> subprocess.CompletedProcess[str]:
        return attnbench(*SWEEP, *TUNE, *more, cwd=self.folder)

    def test_the_table_shows_what_validation_chose(self) -> None:
        self.assertEqual(self.run_sweep().returncode, 0)
        head, *cells = rows_of(self.rows)
        self.assertEqual(len(cells), 2 * 2 * 2)
        for row in cells:
            best = (row["variant"]["name"] == "full") == (row["training"]["learning_rate"] == 0.001)
            row["metrics"].update(validation=0.8 if best else 0.7, test=0.25 if best else 0.75)
        lines = [json.dumps(row, separators=(",", ":")) for row in (head, *cells)]
        self.rows.write_text("".join(line + "\n" for line in lines))
        shown = self.run_sweep()
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertRegex(shown.stdout, r"full, mqar\S*: learning_rate 0.001, best of 2")
        self.assertRegex(shown.stdout, r"linear, mqar\S*: learning_rate 0.003, best of 2")
        self.assertEqual(shown.stdout.count("0.250 ±0.000"), 2)
        self.assertNotIn("0.750", shown.stdout)
        markdown = self.run_sweep("--format", "md").stdout
        self.assertIn("0.250 ±0.000", markdown)
        self.assertNotIn("0.750", markdown)
        self.assertEqual(len(json.loads(self.run_sweep("--format", "json").stdout)), 8)
        self.assertEqual(len(self.run_sweep("--format", "csv").stdout.splitlines()), 1 + 8)

    def test_half_of_the_rows_are_measured_again(self) -> None:
        self.assertEqual(self.run_sweep().returncode, 0)
        lines = self.rows.read_text().splitlines(keepends=True)
        self.rows.write_text("".join(lines[:5]))
        self.assertEqual(self.run_sweep().returncode, 0)
        again = self.rows.read_text().splitlines(keepends=True)
        self.assertEqual((again[:5], len(again)), (lines[:5], len(lines)))
        alone = [word + ",learning_rate=1e-3" if word.startswith("steps=") else word for word in SWEEP]
        other = attnbench(*alone, *TUNE[2:], cwd=self.folder)  # a cell that is one of the choices
        self.assertEqual((other.returncode, len(other.stderr.splitlines())), (2, 1), other.stderr)
        self.assertIn("as a choice of --tune", other.stderr)

    def test_refusals(self) -> None:
        cases = [
            (["--tune", "learning_rate=1e-3"], "learning_rate=1e-3.*two"),
            (["--tune", "learning_rate=[1e-3,0.001]"], "1e-3,0.001.*two"),
            (["--tune", "learning_rat=[1e-3,2e-3]"], "'learning_rat'.*'learning_rate'"),
            (["--tune", "learning_rate=[1e-3,fast]"], "learning_rate=fast"),
            (["--tune", "learning_rate"], "'learning_rate' is not param=value"),
            (["--tune", "width=[16,32]"], "width.*--train and --tune"),
            (["--tune", "batch=[1,2]", "--measure", "memory"], "does not apply to measure memory"),
            (["-t", "mqar[preset=smal]"], "preset=smal .*small"),
        ]
        for arguments, expected in cases:
            with self.subTest(arguments=arguments):
                done = attnbench(*SWEEP, *arguments, "-o", "rows.jsonl", cwd=self.folder)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertRegex(done.stderr, expected)
                self.assertFalse(self.rows.exists())

    def test_a_dry_run_runs_and_writes_nothing(self) -> None:
        dry = self.run_sweep("--dry-run")
        self.assertEqual((dry.returncode, len(dry.stdout.splitlines())), (0, 8), dry.stderr)
        self.assertRegex(dry.stderr, r"\A8 cells, .*; nothing was run\n\Z")
        self.assertEqual(list(self.folder.iterdir()), [])
        piloted = self.run_sweep("--dry-run", "--pilots")
        self.assertEqual(piloted.returncode, 0, piloted.stderr)
        self.assertRegex(piloted.stderr, "; nothing but pilots was run\n$")
        self.assertTrue((self.folder / "attnbench" / "pilots.json").exists())
        again = self.run_sweep("--dry-run")
        self.assertEqual(again.stdout, piloted.stdout, "by the pilots that were kept")

    def test_an_interrupted_dry_run_ends_with_130_and_says_nothing_untrue(self) -> None:
        cache = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
        command = [str(PROGRAM), "run", "-t", "listops", "-n", "--pilots"]
        command += ["--train", "steps=9,batch=64,width=128"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=cache
        ) as child:
            assert child.stderr is not None and child.stdout is not None
            self.assertIn("pilot 1/", child.stderr.readline())
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
        self.assertEqual((child.returncode, out), (130, ""))
        self.assertIn("interrupted", err.splitlines()[-1])
        left = {path.name for path in self.folder.rglob("*") if path.is_file()}
        self.assertLessEqual(left, {"pilots.json"})
