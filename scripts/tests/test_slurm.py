"""scripts/slurm on a real Slurm of two nodes: a node that is lost, tasks that are preempted, the time limit, and what the folder holds then."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from .faults import AT_ONCE, BUILT, PROGRAM, ROOT, _library, read_rows
from .slurm_cluster import Cluster, missing, until

LENGTHS = "8:96:+8"
SWEEP = ["-v", "mean", "-v", "full", "--measure", "memory,fidelity", "--length", LENGTHS,
         "--heads", "1", "--head-dim", "8"]  # fmt: skip
CELLS = 2 * 2 * 12
SHARDS = 4
TIMES = ("run", "started_at", "duration_s", "checksum", "merged")
# The system's figure for a process, which differs from run to run.
OF_THE_SYSTEM = "rss_peak_bytes"


def environment(slow_ms: int = 0) -> dict[str, str]:
    """Contract checks and the calibration answer at once; a cell takes so long."""
    faults = [*AT_ONCE, *([('"do":"measure"', f"sleep:{slow_ms}")] if slow_ms else ())]
    return {
        "LD_PRELOAD": _library(),
        "ATTN_TEST_FAULTS": "\n".join("\t".join(pair) for pair in faults),
        "PYTHONPATH": str(ROOT / "scripts"),
        "OMP_WAIT_POLICY": "passive",
    }


def slurm(*words: str | Path, more: dict[str, str]) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "attnslurm", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more}, timeout=120)


def cells_of(file: Path) -> dict[str, dict]:
    """What is no time of each cell, by its id; AssertionError where a cell is there twice."""
    found: dict[str, dict] = {}
    for row in read_rows(file):
        if row["kind"] != "cell":
            continue
        assert row["cell"] not in found, f"{row['cell']} is there twice"
        metrics = {k: v for k, v in (row["metrics"] or {}).items() if k != OF_THE_SYSTEM}
        found[row["cell"]] = {k: v for k, v in row.items() if k not in TIMES} | {"metrics": metrics}
    return found


def lines_in(folder: Path, shard: int) -> list[str]:
    return [line for f in sorted(folder.glob(f"shard-{shard}.*.jsonl")) for line in f.read_text().splitlines(True)]


@BUILT
class OnSlurm(unittest.TestCase):
    cluster: Cluster

    @classmethod
    def setUpClass(cls) -> None:
        if why := missing():
            raise unittest.SkipTest(why)
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        cls.addClassCleanup(cls.show_logs)

    @classmethod
    def show_logs(cls) -> None:
        if os.environ.get("ATTN_SLURM_LOGS"):
            print((cls.cluster.folder / "slurmctld.log").read_text(), file=sys.stderr)

    def setUp(self) -> None:
        held = Path(tempfile.mkdtemp(prefix="attn-slurm-rows-"))
        self.addCleanup(shutil.rmtree, held, ignore_errors=True)
        self.addCleanup(self.end_jobs)
        self.folder = held / "a sweep"  # a space is not special

    def end_jobs(self) -> None:
        self.cluster.run("scancel", "--signal=KILL", "--full", "--user", str(os.getuid()))
        self.cluster.run("scancel", "--user", str(os.getuid()))

    def slurm(self, *words: str | Path, slow_ms: int = 0) -> subprocess.CompletedProcess:
        return slurm(*words, more=self.cluster.environment | environment(slow_ms))

    def submit(self, *more: str, shards: int = SHARDS, slow_ms: int) -> dict:
        words = ["--array", str(shards), "--constraint=kind", "--mem=900", "-o", self.folder, *more]
        done = self.slurm("submit", *words, "--", *SWEEP, slow_ms=slow_ms)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(self.folder)), done.stderr)
        return json.loads((self.folder / "sweep.json").read_text())

    def task_of(self, job: int, shard: int) -> str:
        return self.cluster.said("squeue", "-h", "-r", "-j", str(job), "-o", "%K %T %N").strip()

    def node_of(self, job: int, shard: int) -> str:
        """Where the shard's task runs; "" where it does not."""
        text = self.cluster.said("squeue", "-h", "-r", "-j", str(job), "-t", "RUNNING", "-o", "%K %N")
        return dict(line.split() for line in text.splitlines()).get(str(shard), "")

    def is_over(self, sweep: dict) -> bool:
        return not any(self.cluster.said("squeue", "-h", "-j", str(j)).strip() for j in sweep["jobs"])

    def said_in_logs(self) -> str:
        logs = sorted((self.folder / "logs").glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in logs)

    def assert_whole(self, sweep: dict) -> None:
        """Every cell once, as in a run without Slurm in all that is no time; the last job merged, tabled and drew."""
        until(lambda: self.is_over(sweep), 45, f"the end of the jobs; {self.task_of(sweep['jobs'][0], 0)}")
        logs = self.said_in_logs()
        plain = self.folder / "plain.jsonl"
        done = subprocess.run([PROGRAM, "run", *SWEEP, "-q", "-o", plain], env={**os.environ, **environment()}, capture_output=True)
        self.assertEqual(done.returncode, 0)
        wanted = cells_of(plain)
        self.assertEqual(len(wanted), CELLS)
        parts = [cells_of(file) for file in self.folder.glob("shard-*.jsonl")]
        self.assertEqual(sum(map(len, parts)), CELLS, logs)
        self.assertEqual({k: v for part in parts for k, v in part.items()}, wanted)
        self.assertEqual(cells_of(self.folder / "rows.jsonl"), wanted, logs)
        self.assertIn("linear" if "linear" in SWEEP else "mean", (self.folder / "tables.txt").read_text())
        self.assertTrue(list((self.folder / "rows-plots").glob("*.png")), logs)
        told = self.slurm("status", self.folder)
        self.assertEqual(told.stdout.count(" done\n"), 1 + SHARDS if len(parts) == SHARDS else 1 + len(parts), told.stdout)
        self.assertIn(f"{CELLS}/{CELLS}", told.stdout.splitlines()[-1])

    def test_a_node_is_lost_in_the_middle(self) -> None:
        sweep = self.submit(slow_ms=250)
        job = sweep["jobs"][0]
        until(lambda: self.node_of(job, 0) and len(lines_in(self.folder, 0)) >= 4, 30, "rows of shard 0")
        node = self.node_of(job, 0)
        self.cluster.kill_node(node)
        killed_at = time.monotonic()
        before = lines_in(self.folder, 0)
        self.assertTrue(4 <= len(before) < 1 + len(sweep["cells"][0]), len(before))
        self.cluster.start_node(node)
        until(lambda: not self.node_of(job, 0), 30, "the requeue")
        queued = time.monotonic() - killed_at
        until(lambda: len(lines_in(self.folder, 0)) > len(before), 30, "rows of the second try")
        went_on = time.monotonic() - killed_at
        self.assert_whole(sweep)
        after = lines_in(self.folder, 0)
        self.assertEqual(after[: len(before)], before, "what was there stays")
        if os.environ.get("ATTN_SLURM_LOGS"):
            print(f"{node} killed with {len(before)} lines of shard 0; queued after {queued:.1f} s, rows after {went_on:.1f} s, "
                  f"{len(after)} lines at the end, whole after {time.monotonic() - killed_at:.1f} s", file=sys.stderr)  # fmt: skip

    def test_preempted_and_near_the_time_limit(self) -> None:
        """Slurm sends SIGTERM to every process of a task, cells too, or SIGUSR1 to the script before the time limit."""
        sweep = self.submit("--time=10", shards=2, slow_ms=250)
        job = sweep["jobs"][0]
        for shard in (0, 1):
            until(lambda: len(lines_in(self.folder, shard)) >= 4, 30, f"rows of shard {shard}")
        before = [lines_in(self.folder, shard) for shard in (0, 1)]
        self.assertEqual(self.cluster.run("scontrol", "requeue", f"{job}_0").returncode, 0)
        self.assertEqual(self.cluster.run("scancel", "--batch", "--signal=USR1", f"{job}_1").returncode, 0)
        until(lambda: not self.node_of(job, 0) and not self.node_of(job, 1), 20, "both are queued again")
        for shard in (0, 1):
            held = lines_in(self.folder, shard)
            self.assertEqual(held[: len(before[shard])], before[shard])
            self.assertLess(len(held), 1 + len(sweep["cells"][shard]))
        told = self.slurm("status", self.folder).stdout
        self.assertRegex(told, r"(?m)^ +0 +\d+/24 +0  (pending|running|completing)")
        again = self.slurm("submit", "--array", "2", "-o", self.folder, "--", *SWEEP)
        self.assertEqual(again.returncode, 2)
        self.assertRegex(again.stderr, "has jobs in the queue")
        self.assert_whole(sweep)
        self.assertIn("queued again", (self.folder / "logs" / "shard-1.log").read_text())

    def test_an_unknown_partition(self) -> None:
        done = self.slurm("submit", "--array", "2", "--partition=nope", "-o", self.folder, "--", *SWEEP)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"(?m)^slurm: sbatch refused shards.sbatch: [^\n]*invalid partition[^\n]*$")
        self.assertFalse(self.folder.exists())


if __name__ == "__main__":
    unittest.main()
