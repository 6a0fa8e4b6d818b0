"""Children that hang, flood stdout, fork away, exit 0 with nonsense or run out of memory: rows that say so, and no
process left. SIGSTOP and SIGCONT in mid-measurement: the visit is measured again, or the row says that its times
were disturbed."""

from __future__ import annotations

import json
import os
import signal
import time
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
        self.bad_cell("hang", "timeout", r"not done after 1 s\Z", "--timeout", "1s")

    def test_one_that_floods_its_output(self) -> None:
        self.bad_cell("flood", "timeout", "not done after 1 s: .*yyy", "--timeout", "1s")

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


# Of three visits. A child stops itself after it computed for 20 ms; twelve passes take longer on any core.
SPEED = "run -v full --measure speed --length 2048 --heads 2 --head-dim 32 --repetitions 30".split()
MODEL = "steps=150,width=32,layers=1,heads=2,batch=16,eval_every=75"
MODEL += ",validation_examples=32,test_examples=32"
TASK = "mqar[vocab=32,pairs=4,length=64,train_examples=256]"
TRAINING = ["run", "-v", "full", "-t", TASK, "--train", MODEL]


@BUILT
class Stopped(FaultCase):
    def stopped_sweep(self, times: int, sweep: list[str]) -> dict:
        """The only row of a sweep whose children are stopped `times` times."""
        files = {
            "ATTN_TEST_STOPS": str(self.folder / "stops"),
            "ATTN_TEST_LOG": str(self.folder / "log"),
        }
        faults = [('"do":"measure"', f"stop:{times}")]
        done = self.sweep(sweep=sweep, faults=faults, more=files)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((self.folder / "stops").read_text(), str(times))
        [row] = read_rows(self.rows_file)[1:]
        self.assertEqual(row["status"], "ok")
        held = self.rows_file.read_bytes()
        self.assertEqual(self.sweep(sweep=sweep).returncode, 0)
        self.assertEqual(self.rows_file.read_bytes(), held)
        return row

    def visits_made(self) -> int:
        lines = (self.folder / "log").read_text().splitlines()
        return sum(json.loads(line)["do"] == "measure" for line in lines)

    def test_a_visit_is_measured_again(self) -> None:
        row = self.stopped_sweep(1, SPEED)
        self.assertNotIn("stopped", row.get("noisy", []))
        self.assertEqual(row["visits"], [10, 10, 10])
        self.assertGreaterEqual(self.visits_made(), 4, "more where the machine itself stood still")

    def test_a_visit_that_is_stopped_each_time_is_marked(self) -> None:
        row = self.stopped_sweep(4, SPEED)
        self.assertIn("stopped", row["noisy"])
        self.assertEqual(row["visits"], [10, 10, 10])
        self.assertGreaterEqual(self.visits_made(), 6)

    def test_a_frozen_container_is_measured_again(self) -> None:
        """No signal tells of it, but the program itself stood still."""
        log = self.folder / "log"
        with control_group(self, "freezer") as (group, version_two):
            state = group / ("cgroup.freeze" if version_two else "freezer.state")
            frozen, thawed = ("1", "0") if version_two else ("FROZEN", "THAWED")
            join = ["bash", "-c", f'echo $$ > "{group}/cgroup.procs"; exec "$@"', "bash"]
            running = self.start(sweep=SPEED, before=join, ATTN_TEST_LOG=str(log))
            try:
                self.wait_until(self.measures(log), running=running)
                state.write_text(frozen)
                time.sleep(3)
            finally:
                state.write_text(thawed)
            self.assertEqual(running.wait(timeout=120), 0)
        [row] = read_rows(self.rows_file)[1:]
        self.assertNotIn("stopped", row.get("noisy", []))
        self.assertGreaterEqual(self.visits_made(), 4)

    def test_a_training_is_marked(self) -> None:
        row = self.stopped_sweep(1, TRAINING)
        self.assertEqual((row["noisy"], self.visits_made()), (["stopped"], 1))

    def test_a_stopped_sweep_counts_no_time(self) -> None:
        """Ctrl-Z stops the program alone: a child that ended meanwhile in time is not too late."""
        log = self.folder / "log"
        sweep = ["run", "-v", "mean", "--measure", "memory", "--length", "8", *SHAPE]
        slow = [('"do":"measure"', "sleep:700")]
        running = self.start("--timeout", "2s", sweep=sweep, faults=slow, ATTN_TEST_LOG=str(log))
        self.wait_until(self.measures(log), running=running)
        running.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        running.send_signal(signal.SIGCONT)
        self.assertEqual(running.wait(timeout=60), 0)
        [row] = read_rows(self.rows_file)[1:]
        self.assertEqual(row["status"], "ok", row["reason"])

    def test_a_stopped_child_counts_no_time(self) -> None:
        """A child that is stopped past its limit is in time once it goes on."""
        sweep = ["run", "-v", "mean", "--measure", "memory", "--length", "8", *SHAPE]
        log = self.folder / "log"
        slow = [('"do":"measure"', "sleep:700")]
        running = self.start("--timeout", "2s", sweep=sweep, faults=slow, ATTN_TEST_LOG=str(log))
        self.wait_until(self.measures(log), running=running)
        [child] = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGSTOP)
        time.sleep(2.5)
        os.kill(int(child), signal.SIGCONT)
        self.assertEqual(running.wait(timeout=60), 0)
        [row] = read_rows(self.rows_file)[1:]
        self.assertEqual(row["status"], "ok", row["reason"])
