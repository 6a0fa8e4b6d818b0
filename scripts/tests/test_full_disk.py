"""A disk that fills up in the middle of a sweep: exit 6, one line, nothing lost, and the sweep goes on once there is room."""

from __future__ import annotations

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from .test_cli import PROGRAM, attnbench

SWEEP = ["run", "-v", "linear", "--measure", "memory", "--length", "16:320:+16"]
SWEEP += ["--heads", "1", "--head-dim", "16", "-q", "-o", "rows.jsonl"]
CELLS = 20


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
class FullDisk(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name, "small")
        self.folder.mkdir()

    def mount(self, options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            self.skipTest(f"no mount here: {error}")
        if done.returncode:
            self.skipTest(f"mounting is not permitted: {done.stderr.strip()}")

    def rows(self) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "rows.jsonl").read_text().splitlines()]

    def test_a_disk_that_fills_up_in_mid_sweep(self) -> None:
        self.mount("size=8k")
        self.addCleanup(subprocess.run, ["umount", str(self.folder)])
        full = attnbench(*SWEEP, cwd=self.folder, cache=self._folder.name)
        self.assertEqual((full.returncode, full.stdout), (6, ""), full.stderr)
        self.assertRegex(full.stderr, r"\Aattnbench: rows.jsonl: .*No space left on device\n\Z")
        held = self.rows()
        self.assertEqual([row["kind"] for row in held[:2]], ["run", "cell"])
        self.assertLess(len(held), 1 + CELLS)
        self.mount("remount,size=1m")
        rest = attnbench(*SWEEP, cwd=self.folder, cache=self._folder.name)
        self.assertEqual((rest.returncode, rest.stderr), (0, ""))
        rows = self.rows()
        self.assertEqual(rows[: len(held)], held)
        self.assertEqual(len({row["cell"] for row in rows[1:]}), CELLS)
        self.assertEqual(len(rows), 1 + CELLS)


if __name__ == "__main__":
    unittest.main()
