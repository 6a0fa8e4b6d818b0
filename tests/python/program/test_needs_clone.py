"""The package outside a clone: tools of the repository say that they need one; Slurm's jobs start what is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ..faults import BUILT, PROGRAM, ROOT, FaultCase


class Outside(FaultCase):
    def setUp(self) -> None:
        super().setUp()
        self.place = self.folder / "site-packages"
        shutil.copytree(ROOT / "python" / "attnbench", self.place / "attnbench", ignore=shutil.ignore_patterns("__pycache__"))

    def module(self, name: str, *words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.place), "ATTNBENCH_PROGRAM": str(PROGRAM)}
        command = [sys.executable, *options, "-m", f"attnbench.{name}", *words]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)

    def test_what_needs_a_clone_says_so_before_any_library_loads(self) -> None:
        for tool, words in (("peers", ("--help",)), ("peers", ("-o", "x.jsonl")), ("regress", ("a", "b")), ("reproduce", ("list",))):
            done = self.module(tool, *words, options=("-S",))  # without site-packages
            told = f"{tool}: needs a clone of the repository, where scripts/{tool} runs this\n"
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", told))

    def test_a_program_that_is_missing_is_no_matter_of_a_clone(self) -> None:
        done = self.module("plots.rows.crossing", options=("-c", "from attnbench.plots.rows.crossing import ABSENT; print(ABSENT)"))
        self.assertEqual(done.stdout, "the program attnbench is missing; ATTNBENCH_PROGRAM names one, and the wheel brings one along\n")

    @BUILT
    def test_jobs_of_slurm_start_what_is_installed(self) -> None:
        sweep = ("-v", "mean", "--measure", "fidelity", "--length", "8,16")
        done = self.module("slurm", "submit", "--array", "2", "-n", "--", *sweep)
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = Path(done.stdout.strip())
        self.assertEqual(folder.parent, self.folder.resolve() / "results")
        self.assertEqual((folder / "attnbench").readlink(), PROGRAM.absolute())
        collect = (folder / "collect.sbatch").read_text()
        self.assertIn(f"export PYTHONPATH={self.place}\nexec {sys.executable} -m attnbench.slurm collect {folder}\n", collect)
        for text in (collect, (folder / "shards.sbatch").read_text(), self.module("slurm", "--help").stdout):
            self.assertIn("python -m attnbench.slurm", text)
            self.assertNotIn("scripts/", text)
        task = {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "2"}
        ran = subprocess.run(["bash", folder / "shards.sbatch"], env={**os.environ, **task}, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(self.module("slurm", "status", str(folder)).stdout, r"0  +1/1 +0  done\n")
