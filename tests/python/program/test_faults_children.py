"""Children that hang, flood stdout, fork away, exit 0 with nonsense or run out of memory: rows that say so, and no process left."""

from __future__ import annotations

import os
import unittest
from pathlib import Path

from ..faults import BUILT, CELLS, PROGRAM, SHAPE, FaultCase, control_group, read_rows

CHOSEN = '"length":16,'  # the cell whose child misbehaves


@BUILT
class Children(FaultCase):
    def bad_cell(self, action: str, status: str, reason: str, *more: str) -> None:
        """One cell fails as told, the others are ok, and resuming takes the file as it is."""
        done = self.sweep(*more, faults=[(CHOSEN, action)])
        self.assertEqual(done.returncode, 1, done.stderr)
        rows = read_rows(self.rows_file)
        self.assertEqual(len(rows), 1 + CELLS)
        [bad] = [row for row in rows[1:] if row["status"] != "ok"]
        self.assertEqual((bad["axes"]["length"], bad["status"]), (16, status))
        self.assertRegex(bad["reason"], rf"\A{reason}")
        self.assertLess(len(bad["reason"]), 700)
        again = self.sweep()
        self.assertEqual((again.returncode, again.stderr), (1, ""))
        self.assertEqual(read_rows(self.rows_file), rows, "a failure is a result, until --force")

    def test_one_that_hangs(self) -> None:
        self.bad_cell("hang", "timeout", r"not done after 2 s\Z", "--timeout", "2s")

    def test_one_that_floods_its_output(self) -> None:
        self.bad_cell("flood", "timeout", "not done after 2 s: .*yyy", "--timeout", "2s")

    def test_one_that_exits_0_with_nonsense(self) -> None:
        self.bad_cell("say:all is well", "failed", "its process gave no result: not JSON")

    def test_one_that_answers_something_else(self) -> None:
        self.bad_cell(
            'say:{"status":"ok","reason":null}', "failed", "the result makes no row: metrics"
        )

    def test_one_that_says_nothing(self) -> None:
        self.bad_cell("exit:0", "failed", "its process gave no result")

    def test_one_that_fails(self) -> None:
        self.bad_cell("exit:9", "failed", "ended with exit code 9")

    def test_one_that_forks_away(self) -> None:
        """A daemon in a session of its own, below a child that is otherwise sound."""
        file = self.folder / "daemon.pid"
        done = self.sweep(faults=[(CHOSEN, f"daemon:{file}")])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        daemon = int(file.read_text())
        self.assertFalse(Path(f"/proc/{daemon}").exists(), "it was ended before the sweep was")
        self.assert_resumes(read_rows(self.rows_file))

    def test_processes_that_were_there_before_are_left_alone(self) -> None:
        """A shell may start a process, then become the program: it has a child that is none of its own."""
        script = f"sleep 300 >/dev/null 2>&1 & echo $! > before.pid; exec '{PROGRAM}' \"$@\""
        words = ["run", "-v", "mean", "--measure", "memory", "--length", "8", *SHAPE, "-q", "-o"]
        arguments = ["-c", script, "bash", *words, self.rows_file]
        done = self.run_program(*arguments, program="bash")
        self.assertEqual(done.returncode, 0, done.stderr)
        before = int((self.folder / "before.pid").read_text())
        os.kill(before, 9)  # ProcessLookupError where it is gone


@BUILT
class OutOfMemory(FaultCase):
    BIG = ["run", "-v", "full[kernel=materialized]", "--measure", "memory", "--length", "64,4096"]
    BIG += ["--heads", "4", "--head-dim", "8", "--max-memory", "8G"]

    def assert_big_is_oom(self, done) -> None:
        self.assertEqual(done.returncode, 1, done.stderr)
        rows = {row["axes"]["length"]: row for row in read_rows(self.rows_file)[1:]}
        self.assertEqual(rows[64]["status"], "ok", rows[64])
        self.assertEqual(rows[4096]["status"], "oom", rows[4096])
        held = self.rows_file.read_bytes()
        again = self.sweep(sweep=self.BIG)
        self.assertEqual((again.returncode, self.rows_file.read_bytes()), (1, held))

    def test_by_the_address_space(self) -> None:
        """RLIMIT_AS: an allocation fails."""
        limit = ["bash", "-c", 'ulimit -v 250000; exec "$@"', "bash"]
        self.assert_big_is_oom(self.sweep(sweep=self.BIG, before=limit))

    def test_by_the_control_group(self) -> None:
        """memory.max: the system kills the child, and the sweep goes on."""
        with control_group(self, "memory") as (group, version_two):
            (group / ("memory.max" if version_two else "memory.limit_in_bytes")).write_text("64M")
            # No swap: version 1 limits memory and swap together. A system without swap may lack the file.
            swap = group / ("memory.swap.max" if version_two else "memory.memsw.limit_in_bytes")
            if swap.exists():
                swap.write_text("0" if version_two else "64M")
            join = ["bash", "-c", f'echo $$ > "{group}/cgroup.procs"; exec "$@"', "bash"]
            done = self.sweep(sweep=self.BIG, before=join)
        self.assert_big_is_oom(done)
        [reason] = [row["reason"] for row in read_rows(self.rows_file)[1:] if row["reason"]]
        self.assertIn("killed by the system", reason)

    def test_so_little_that_nothing_runs(self) -> None:
        """Whatever fails first: one line or failed rows, never a hang, and the file goes on."""
        program = os.path.getsize(PROGRAM) // 1024  # with less, the kernel kills it before its first line
        for kilobytes in (program, program + 6000, program + 16000):
            with self.subTest(kilobytes=kilobytes):
                limit = ["bash", "-c", f'ulimit -v {kilobytes}; exec "$@"', "bash"]
                done = self.sweep("--force", before=limit)
                # 126, 127: the program did not start.
                self.assertIn(done.returncode, (0, 1, 5, 6, 126, 127), done.stderr)
                if self.rows_file.exists():
                    read_rows(self.rows_file)
        self.assertEqual(self.sweep("--force").returncode, 0)


if __name__ == "__main__":
    unittest.main()
