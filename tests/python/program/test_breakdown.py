"""`attnbench run --breakdown`: rows that say where the time of a pass goes, the table of them, and wrong usage."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from .test_cli import attnbench

TINY = ["--length", "64", "--heads", "1", "--head-dim", "8"]


class Breakdown(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        self.rows = self.folder / "rows.jsonl"

    def run_verb(self, *arguments: str):
        return attnbench("run", *TINY, *arguments, "-o", str(self.rows), cwd=self.folder)

    def cells(self) -> list[dict]:
        lines = [json.loads(line) for line in self.rows.read_text().splitlines()]
        return [line for line in lines if line["kind"] == "cell"]

    def test_shares_of_a_pass_add_up(self) -> None:
        done = self.run_verb("-v", "full", "-v", "performer", "--breakdown", "--mode", "forward,train")
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = self.cells()
        self.assertEqual(len(cells), 4)
        for cell in cells:
            breakdown = cell["metrics"]["breakdown"]
            self.assertAlmostEqual(sum(breakdown["shares"].values()), 1, places=9)
            self.assertGreater(breakdown["shares"]["products"], 0)
            self.assertGreaterEqual(breakdown["passes"], 2)
            self.assertGreater(breakdown["marks"], 0)
            has_features = "features" in breakdown["shares"]
            self.assertEqual(has_features, cell["variant"]["name"] == "performer")
        self.assertEqual(done.stdout.count("where the time of a pass goes"), 2, done.stdout)
        shown = attnbench("table", str(self.rows), cwd=self.folder)
        self.assertIn("where the time of a pass goes", shown.stdout)

    def test_rows_of_before_keep_what_they_have(self) -> None:
        self.assertEqual(self.run_verb("-v", "full").returncode, 0)
        self.assertNotIn("breakdown", self.cells()[0]["metrics"])
        done = self.run_verb("-v", "full", "--breakdown")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 speed rows of the file were measured without --breakdown; --force", done.stderr)
        done = self.run_verb("-v", "full", "--breakdown", "--force")
        self.assertIn("breakdown", self.cells()[0]["metrics"])
        self.assertNotIn("without --breakdown", done.stderr)

    def test_other_measures_have_none(self) -> None:
        done = self.run_verb("-v", "full", "--breakdown", "--measure", "memory,fidelity")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(
            done.stderr,
            "--breakdown is about speed, and this sweep has fidelity and memory cells; say --measure speed",
        )
        self.assertFalse(self.rows.exists())


if __name__ == "__main__":
    unittest.main()
