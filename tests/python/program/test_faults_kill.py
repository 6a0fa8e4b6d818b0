"""kill -9 at random moments of a sweep, which is resumed each time: nothing is lost, nothing is there twice.

30 moments; ATTN_KILLS=1000 asks for a thousand. Also the second Ctrl-C, and that no process outlives a killed sweep.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

from ..faults import BUILT, EASY, SHAPE, FaultCase, read_rows

KILLS = int(os.environ.get("ATTN_KILLS", "30"))
TINY = ["run", "-v", "mean", "--measure", "memory,fidelity,speed", "--repetitions", "2"]
TINY += ["--length", "8:64:+8", *SHAPE, "-j", "2"]
CELLS = 24
# Cells are EASY, so that a kill often meets the moment of a write.


def cells_of(folder: Path) -> list[int]:
    """Processes of this folder: `attnbench cell`, wherever their parent went."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").resolve() == folder.resolve():
                if b"\0cell\0" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        except OSError:
            continue
    return found


@BUILT
class KilledSweeps(FaultCase):
    def assert_nothing_runs(self) -> None:
        for _ in range(200):
            if not cells_of(self.folder):
                return
            time.sleep(0.05)
        self.fail(f"processes outlived the sweep: {cells_of(self.folder)}")

    def whole_lines(self) -> list[dict]:
        """Those that end with a newline, each by itself valid."""
        if not self.rows_file.exists():
            return []
        text = self.rows_file.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def test_at_random_moments(self) -> None:
        """Each sweep is killed and resumed until it is whole, then the next one starts."""
        chosen = random.Random(KILLS)
        kills, sweeps, held, longest = 0, 0, [], 0.5
        while kills < KILLS:
            started = time.monotonic()
            running = self.start(sweep=TINY, faults=EASY)
            try:
                running.wait(timeout=chosen.uniform(0, longest))
            except Exception:  # it still runs: the moment has come
                running.kill()
            running.communicate()
            ended = running.returncode
            self.assertIn(ended, (0, -signal.SIGKILL))
            kills += ended != 0
            now = self.whole_lines()
            self.assertEqual(now[: len(held)], held, "what was there stays")
            held = now
            if ended == 0:
                longest = max(longest, 1.2 * (time.monotonic() - started))
                self.assert_whole(sweeps)
                sweeps, held = sweeps + 1, []
                self.rows_file.unlink()
        self.assert_nothing_runs()
        self.assertEqual(self.sweep(sweep=TINY, faults=EASY).returncode, 0)
        self.assert_whole(sweeps)
        if KILLS > 100:
            print(f"{kills} kills in {sweeps + 1} sweeps of {CELLS} cells")

    def assert_whole(self, sweep: int) -> None:
        rows = read_rows(self.rows_file)
        ids = [row["cell"] for row in rows if row["kind"] == "cell"]
        self.assertEqual((len(ids), len(set(ids))), (CELLS, CELLS), f"sweep {sweep}")
        self.assertLessEqual({row["status"] for row in rows[1:]}, {"ok", "skipped"})

    def test_no_process_outlives_it(self) -> None:
        """Also of a sweep that a second Ctrl-C ends at once."""
        for ends in ([signal.SIGKILL], [signal.SIGINT, signal.SIGINT], [signal.SIGTERM]):
            self.rows_file.unlink(missing_ok=True)
            hanging = [('"do":"measure"', "hang")]
            log = self.folder / f"log of {ends[-1]}"
            running = self.start(sweep=TINY, faults=hanging, ATTN_TEST_LOG=str(log))
            self.wait_until(self.measures(log), running=running)
            for end in ends:
                running.send_signal(end)
                time.sleep(0.01)
            self.assertIn(running.wait(timeout=60), (-9, 130, 143))
            self.assert_nothing_runs()
            self.assertEqual(self.sweep(sweep=TINY, faults=EASY).returncode, 0)
            self.assert_whole(0)
