"""One core, 64 cores claimed, a CPU quota: the program says how many cores it has, and never hangs."""

from __future__ import annotations

import os
import time
import unittest
from pathlib import Path

from ..faults import BUILT, CELLS, FaultCase, control_group, read_rows, tool

SPEED = [
    "run",
    "-v",
    "mean",
    "--measure",
    "speed",
    "--length",
    "64",
    "--heads",
    "2",
    "--head-dim",
    "8",
]
SPEED += ["--repetitions", "3"]
MANY_CELLS = 66
MANY = ["run", "-v", "linear", "--measure", "fidelity", "--length", f"8:{8 * MANY_CELLS}:+8"]
MANY += ["--heads", "1", "--head-dim", "8", "--max-memory", "1G"]


def children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has ended
        return []


@BUILT
class Cores(FaultCase):
    def environment_of_run(self) -> dict:
        return read_rows(self.rows_file)[0]["environment"]

    def said(self, done) -> list[str]:
        return [line for line in done.stderr.splitlines() if line.startswith("attnbench: ")]

    def timed(self, threads: int, *before: str):
        arguments = [*SPEED, "--threads", str(threads), "-o", self.rows_file]
        done = self.run_program(*arguments, before=before)
        self.assertEqual(done.returncode, 0, done.stderr)
        [row] = read_rows(self.rows_file)[1:]
        self.assertEqual((row["status"], row["axes"]["threads"]), ("ok", threads))
        return done

    def test_64_threads_on_fewer_cores(self) -> None:
        cores = len(os.sched_getaffinity(0))
        if cores >= 64:
            self.skipTest("this machine has 64 cores")
        [line] = self.said(self.timed(64))
        self.assertRegex(line, rf"\Aattnbench: 64 threads run on {cores} cores?[: ]")

    def test_as_many_threads_as_cores_are_no_news(self) -> None:
        self.assertEqual(self.said(self.timed(1)), [])

    def test_64_jobs(self) -> None:
        """Cells of fidelity run side by side; each waits a while, so that several are seen at once."""
        running = self.start("-j", "64", sweep=MANY, faults=[('"do":"measure"', "sleep:500")])
        most = 0
        while running.poll() is None:
            most = max(most, len(children(running.pid)))
            time.sleep(0.01)
        self.assertEqual((running.returncode, running.stderr.read()), (0, ""))
        self.assertGreater(most, 8)
        self.assert_resumes(read_rows(self.rows_file), cells=MANY_CELLS, sweep=MANY)

    def test_one_core(self) -> None:
        taskset = tool(self, "taskset", "util-linux")
        one = str(min(os.sched_getaffinity(0)))
        [line] = self.said(self.timed(2, taskset, "-c", one))
        self.assertRegex(line, r"\Aattnbench: 2 threads run on 1 core:")
        self.assertEqual(self.environment_of_run()["threads"], 1)

    def test_one_core_of_more_is_another_machine(self) -> None:
        """Rows of both in one file would not compare."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("this machine has one core")
        self.assertEqual(self.sweep().returncode, 0)
        held = self.rows_file.read_bytes()
        one = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        wider = self.sweep("--seed", "1", before=one)
        self.assert_one_line(
            wider, 2, "measured elsewhere .*environment.threads: [0-9]+ there, 1 here"
        )
        self.assertEqual(self.rows_file.read_bytes(), held)
        self.assert_resumes(read_rows(self.rows_file), CELLS)

    def test_a_cpu_quota(self) -> None:
        """Half a core: the sweep ends, its run line holds the quota, and one line says it."""
        with control_group(self, "cpu") as (group, version_two):
            if version_two:
                (group / "cpu.max").write_text("50000 100000")
            else:
                (group / "cpu.cfs_period_us").write_text("100000")
                (group / "cpu.cfs_quota_us").write_text("50000")
            join = ["bash", "-c", f'echo $$ > "{group}/cgroup.procs"; exec "$@"', "bash"]
            [line] = self.said(self.timed(2, *join))
        self.assertIn("2 threads run on 1 core (the CPU quota is 0.5): ", line)
        found = self.environment_of_run()
        self.assertEqual((found["cpu_quota"], found["threads"]), (0.5, 1))

    def test_64_cores_of_which_a_quota_leaves_two(self) -> None:
        """As in a container of version 2, whose files are made up here, in a mount namespace."""
        unshare = tool(self, "unshare", "util-linux")
        fake = self.folder / "cgroup"
        fake.mkdir()
        (fake / "cpu.max").write_text("150000 100000\n")
        (self.folder / "groups").write_text("0::/\n")
        binds = f"mount --bind '{fake}' /sys/fs/cgroup && mount --bind '{self.folder}/groups' /proc/self/cgroup"
        # /proc/self is another process's after exec of a shell's child, so that the file is bound by its number.
        script = binds.replace("/proc/self", "/proc/$$") + ' && exec "$@"'
        done = self.sweep(before=[unshare, "-rm", "bash", "-c", script, "bash"])
        # 1: unshare has no permission; 32: mount has none.
        if done.returncode in (1, 32) and not Path(self.rows_file).exists():
            self.skipTest(f"no namespaces here: {done.stderr.strip()}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = self.environment_of_run()
        cores = min(2, len(os.sched_getaffinity(0)))
        self.assertEqual((found["cpu_quota"], found["threads"]), (1.5, cores))


if __name__ == "__main__":
    unittest.main()
