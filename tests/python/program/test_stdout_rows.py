"""`run -o -`: rows on standard output, alone, to whoever reads them."""

from __future__ import annotations

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from .test_cli import PROGRAM, TINY, attnbench


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
class RowsOnStdout(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name)

    def test_rows_alone_are_on_stdout_and_tables_beside_them(self) -> None:
        done = attnbench("run", *TINY, "-o", "-", cwd=self.folder, cache="/dev/null/home")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row["kind"] for row in rows], ["run", "cell", "cell"])
        self.assertIn("peak memory", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [], "no file of that name")

    def test_quiet_leaves_the_tables_out(self) -> None:
        done = attnbench("run", *TINY, "-q", "-o", "-", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(done.stdout.splitlines()), 3)

    def test_what_was_written_to_a_file_is_a_rows_file(self) -> None:
        command = f"{PROGRAM} run {' '.join(TINY)} -q -o - > rows.jsonl"
        self.assertEqual(subprocess.run(command, shell=True, cwd=self.folder).returncode, 0)
        held = (self.folder / "rows.jsonl").read_text()
        again = attnbench("run", *TINY, "-o", "rows.jsonl", cwd=self.folder)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((self.folder / "rows.jsonl").read_text(), held, "nothing was missing")

    def test_a_reader_that_leaves_ends_it_without_a_word(self) -> None:
        command = f"{PROGRAM} run {' '.join(TINY)} -q -o - | head -n 1"
        done = subprocess.run(
            ["bash", "-c", command + '; echo "${PIPESTATUS[0]}"'],
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=120,
        )
        first, status = done.stdout.splitlines()
        self.assertEqual(json.loads(first)["kind"], "run")
        self.assertEqual((status, done.stderr), ("141", ""), "ended by SIGPIPE")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_full_disk_there_is_one_line(self) -> None:
        command = f"{PROGRAM} run {' '.join(TINY)} -q -o - > /dev/full"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 6)
        self.assertRegex(done.stderr, r"\Aattnbench: standard output: .*No space left.*\n\Z")


if __name__ == "__main__":
    unittest.main()
