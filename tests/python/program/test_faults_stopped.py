"""SIGSTOP and SIGCONT in mid-measurement: the visit is measured again, or the row says that its times were disturbed."""

from __future__ import annotations

import json
import os
import signal
import time
import unittest
from pathlib import Path

from ..faults import BUILT, SHAPE, FaultCase, control_group, read_rows

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
        time.sleep(3)
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
        time.sleep(4)
        os.kill(int(child), signal.SIGCONT)
        self.assertEqual(running.wait(timeout=60), 0)
        [row] = read_rows(self.rows_file)[1:]
        self.assertEqual(row["status"], "ok", row["reason"])


if __name__ == "__main__":
    unittest.main()
