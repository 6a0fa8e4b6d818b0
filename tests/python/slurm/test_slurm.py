"""scripts/slurm on a real Slurm of two nodes: a node that is lost, tasks that are preempted, the time limit, and what the folder holds then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from ..faults import AT_ONCE, BUILT, PROGRAM, ROOT, _library, read_rows
from .slurm_cluster import Cluster, missing, until

LENGTHS = "8:96:+8"
SWEEP = ["-v", "mean", "-v", "full", "--measure", "memory,fidelity", "--length", LENGTHS,
         "--heads", "1", "--head-dim", "8"]  # fmt: skip
CELLS = 2 * 2 * 12
SHARDS = 4
FIGURES = os.environ.get("ATTN_FIGURES")  # print how long the requeue took
TIMES = ("run", "started_at", "duration_s", "checksum", "merged")
# The system's figure for a process, which differs from run to run.
OF_THE_SYSTEM = "rss_peak_bytes"


def environment(slow_ms: int = 0) -> dict[str, str]:
    """Contract checks and the calibration answer at once; a cell takes so long."""
    faults = [*AT_ONCE, *([('"do":"measure"', f"sleep:{slow_ms}")] if slow_ms else ())]
    return {
        "LD_PRELOAD": _library(),
        "ATTN_TEST_FAULTS": "\n".join("\t".join(pair) for pair in faults),
        "PYTHONPATH": str(ROOT / "python"),
        "OMP_WAIT_POLICY": "passive",
    }


def slurm(*words: str | Path, more: dict[str, str]) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "attnbench.slurm", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more}, timeout=120)


def cells_of(file: Path) -> dict[str, dict]:
    """What is no time of each cell, by its id; AssertionError where a cell is there twice."""
    found: dict[str, dict] = {}
    for row in read_rows(file):
        if row["kind"] != "cell":
            continue
        assert row["cell"] not in found, f"{row['cell']} is there twice"
        metrics = {k: v for k, v in (row["metrics"] or {}).items() if k != OF_THE_SYSTEM}
        verified = {k: v for k, v in (row.get("verified") or {}).items() if k != "seconds"}
        found[row["cell"]] = {k: v for k, v in row.items() if k not in TIMES} | {"metrics": metrics, "verified": verified}
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
        until(lambda: self.is_over(sweep), 120, "the end of the jobs")
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
        self.assertIn("mean", (self.folder / "tables.txt").read_text())
        self.assertTrue(list((self.folder / "rows-plots").glob("*.png")), logs)
        told = self.slurm("status", self.folder)
        self.assertEqual(told.stdout.count(" done\n"), len(parts) + 1, told.stdout)
        self.assertIn(f"{CELLS}/{CELLS}", told.stdout.splitlines()[-1])

    def wait_for_rows(self, shard: int, count: int) -> list[str]:
        until(lambda: len(lines_in(self.folder, shard)) >= count, 40, f"{count} lines of shard {shard}")
        return lines_in(self.folder, shard)

    def test_lost_preempted_and_near_the_time_limit(self) -> None:
        """A node dies under shard 0. Slurm sends SIGTERM to every process of shard 1, cells too, and before the time limit SIGUSR1
        to the script of shard 2. All go on where they were."""
        sweep = self.submit("--time=10", slow_ms=250)
        job = sweep["jobs"][0]
        before = {shard: self.wait_for_rows(shard, 4) for shard in (0, 1)}
        node = self.node_of(job, 0)
        self.assertNotEqual(node, self.node_of(job, 1), "a task has a node of its own")
        self.cluster.kill_node(node)
        killed = time.monotonic()
        before[0] = lines_in(self.folder, 0)
        self.assertEqual(self.cluster.run("scontrol", "requeue", f"{job}_1").returncode, 0)
        again = self.slurm("submit", "--array", str(SHARDS), "-o", self.folder, "--", *SWEEP)
        self.assertEqual(again.returncode, 2)
        self.assertRegex(again.stderr, "has jobs in the queue")
        before[2] = self.wait_for_rows(2, 4)
        signalled = self.cluster.run("scancel", "--batch", "--signal=USR1", f"{job}_2")
        self.assertEqual(signalled.returncode, 0)
        for shard, lines in before.items():
            self.assertLess(len(lines), 1 + len(sweep["cells"][shard]), "in the middle")
        until(lambda: self.node_of(job, 0) != node, 30, "the task of the lost node is queued again")
        queued = time.monotonic() - killed
        self.assertEqual(lines_in(self.folder, 0), before[0])
        self.wait_for_rows(0, len(before[0]) + 1)
        went_on = time.monotonic() - killed
        self.assert_whole(sweep)
        for shard, lines in before.items():
            self.assertEqual(lines_in(self.folder, shard)[: len(lines)], lines, "what was there stays")
        self.assertIn("queued again", (self.folder / "logs" / "shard-2.log").read_text())
        if FIGURES:
            print(f"{node} killed with {len(before[0])} lines of shard 0; queued again after {queued:.1f} s, rows after "
                  f"{went_on:.1f} s, {len(lines_in(self.folder, 0))} lines at the end; preempted with {len(before[1])} lines, "
                  f"time limit with {len(before[2])}; all whole after {time.monotonic() - killed:.1f} s", file=sys.stderr)  # fmt: skip

    def test_an_unknown_partition(self) -> None:
        done = self.slurm("submit", "--array", "2", "--partition=nope", "-o", self.folder, "--", *SWEEP)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"(?m)^slurm: sbatch refused shards.sbatch: [^\n]*invalid partition[^\n]*$")
        self.assertFalse(self.folder.exists())


@BUILT
class Folders(unittest.TestCase):
    """What needs no Slurm: wrong usage, the scripts, the files of shards."""

    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="attn-slurm-folder-"))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        self.folder = self.place / "a sweep"

    def slurm(self, *words: str | Path, **more: str) -> subprocess.CompletedProcess:
        return slurm(*words, more=environment() | more)

    def written(self, *more: str, sweep: list[str] = SWEEP) -> str:
        """The script of a sweep that is not submitted."""
        words = ["--array", "3", "-n", "-o", self.folder, *more]
        done = self.slurm("submit", *words, "--", *sweep)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / "shards.sbatch").read_text()

    def measure(self, shard: int, **more: str) -> None:
        """The script by hand, as Slurm would start it."""
        task = {"SLURM_ARRAY_TASK_ID": str(shard), "SLURM_ARRAY_TASK_COUNT": "3"}
        done = subprocess.run(
            ["bash", self.folder / "shards.sbatch"],
            env={**os.environ, **environment(), **task, **more}, capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)

    def assert_refused(self, pattern: str, *words: str | Path, **more: str) -> None:
        done = self.slurm(*words, **more)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, rf"\Aslurm: [^\n]*{pattern}[^\n]*\n\Z")

    def test_wrong_usage_is_one_line(self) -> None:
        submit = ("submit", "-n", "-o", self.folder)
        for array in ("0", "x", "-1", "4%0", "10001"):
            self.assert_refused("--array .* is not valid", *submit, f"--array={array}", "--", *SWEEP)
        self.assert_refused("required: --array", *submit, "--", *SWEEP)
        self.assert_refused("no sweep file .*nothing.toml", *submit, "--array=2", "nothing.toml")
        self.assert_refused("'nope'", *submit, "--array=2", "--", "-v", "nope")
        halving = ("-v", "full", "-t", "mqar[preset=small]", "--tune", "learning_rate", "--tune-by", "halving")
        self.assert_refused("halving does not go with jobs", *submit, "--array=2", "--", *halving)
        for word in ("-o", "--output=x", "--shard", "-n", "-fq"):
            self.assert_refused("is given by each job", *submit, "--array=2", "--", *SWEEP, word)
        self.assert_refused("no sbatch found", "submit", "--array=2", "--", *SWEEP, PATH="/nowhere")
        self.assertFalse(self.folder.exists())
        self.assert_refused("is no folder of scripts/slurm", "status", self.folder)
        self.folder.mkdir()
        (self.folder / "other").touch()
        self.assert_refused("has no sweep.json", "collect", self.folder)
        self.assert_refused("holds other files", *submit, "--array=2", "--", *SWEEP)

    def test_a_folder_is_of_one_sweep(self) -> None:
        self.written()
        self.written("--time=1:00", sweep=[*SWEEP, "--timeout", "5m"])  # other limits
        for array, sweep in (("2", SWEEP), ("3", [*SWEEP, "--seed", "7"])):
            words = ("submit", "-n", "-o", self.folder, "--array", array, "--", *sweep)
            self.assert_refused("holds another sweep", *words)

    def test_the_script_asks_for_what_the_sweep_needs(self) -> None:
        alone = self.written("--constraint=epyc", "--sbatch=--gres=disk:1")
        for line in ("--exclusive", "--mem=0", "--constraint=epyc", "--gres=disk:1", "--requeue"):
            self.assertIn(f"\n#SBATCH {line}\n", alone)
        self.assertNotIn("--max-memory", alone)
        shutil.rmtree(self.folder)
        beside = self.written(sweep=["-v", "mean", "--measure", "fidelity", "--length", LENGTHS])
        self.assertNotIn("--exclusive", beside)
        self.assertNotIn("--mem=0", beside)
        self.measure(0, SLURM_CPUS_PER_TASK="2", SLURM_MEM_PER_CPU="1000", SLURM_CPUS_ON_NODE="2")
        run = read_rows(next(self.folder.glob("shard-0.*.jsonl")))[0]
        self.assertEqual((run["config"]["jobs"], run["config"]["max_memory_bytes"]), (2, 900 << 20))

    def test_a_sweep_file_is_copied(self) -> None:
        file = self.place / "mine.toml"
        file.write_text('[[sweep]]\nmeasure = "fidelity"\nvariants = ["mean"]\naxes = {length = [8, 16, 24]}\n')
        done = self.slurm("submit", file, "--array", "3", "-n", "-o", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        file.unlink()
        self.measure(1)

    def test_fewer_parts_than_shards(self) -> None:
        sweep = ["-v", "mean", "--measure", "fidelity", "--length", "8,16"]
        done = self.slurm("submit", "--array", "9", "-n", "-o", self.folder, "--", *sweep)
        self.assertIn("into 2 parts at most", done.stderr)
        self.assertIn("#SBATCH --array=0-1\n", (self.folder / "shards.sbatch").read_text())

    def test_what_status_and_collect_tell(self) -> None:
        """A shard is missing; of another, a task on another kind of machine began a file of its own."""
        self.written()
        self.measure(0)
        self.measure(2)
        file = next(self.folder.glob("shard-2.*.jsonl"))
        self.assertRegex(file.name, r"\Ashard-2\.[0-9a-f]{8}\.jsonl\Z")
        lines = file.read_text().splitlines(keepends=True)
        (self.folder / "shard-2.00000000.jsonl").write_text("".join(lines[:3]))
        told = self.slurm("status", self.folder).stdout.splitlines()
        self.assertRegex(told[1], r"^ +0 +16/16 +0  done$")
        self.assertRegex(told[2], r"^ +1 +0/16 +0  not begun$")
        self.assertRegex(told[4], r"^ +all +32/48 +0  2 of 3 done$")
        done = self.slurm("collect", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("shard 1 lacks 16 of 16 cells", done.stderr)
        self.assertIn("shard-2.00000000.jsonl is of another machine or build", done.stderr)
        self.assertEqual(len(cells_of(self.folder / "rows.jsonl")), 32)
