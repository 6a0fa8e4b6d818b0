"""Both verbs with the real program: rows that it measured agree with what it measures again, and one that lies does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from attnbench.bundles.figures import id_of
from attnbench.plots.rows.checksum import hash_of

from ..faults import BUILT, PROGRAM, ROOT, calibrated

# Figures that no other process on the machine disturbs.
SWEEP = ["run", "-v", "full", "-v", "truncated[window=8]", "-v", "linear", "--measure", "memory,fidelity", "--length", "48", "--heads", "1", "--head-dim", "8",
         "-o", "rows.jsonl", "--quiet", "--yes"]  # fmt: skip


@BUILT
class WithProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
        environment = calibrated({**os.environ, "XDG_CACHE_HOME": str(cls.folder)})
        subprocess.run([PROGRAM, *SWEEP], cwd=cls.folder, env=environment, check=True, capture_output=True)

    def verb(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "ATTNBENCH_PROGRAM": str(PROGRAM), "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, "-m", "attnbench", *words], cwd=self.folder, env=environment, capture_output=True, text=True)

    def test_from_rows_to_a_verdict(self) -> None:
        made = self.verb("submit", "rows.jsonl", "-o", "rows.attnbundle")
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        said = self.verb("verify", "rows.attnbundle", "--sample", "2", "--json", "--nonce", "1")
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        found = json.loads(said.stdout)
        self.assertEqual([cell["state"] for cell in found["cells"]], ["agree", "agree"])
        self.assertEqual(found["eligible"], 6)

    def test_the_id_of_a_training_holds_what_else_it_is_tested_on(self) -> None:
        words = ["run", "-v", "linear", "-t", "copy[length=32]", "--measure", "accuracy", "--train", "steps=2,eval_every=1", "--test-on", "length=[48]",
                 "-o", "trained.jsonl", "--quiet", "--yes"]  # fmt: skip
        environment = calibrated({**os.environ, "XDG_CACHE_HOME": str(self.folder)})
        subprocess.run([PROGRAM, *words], cwd=self.folder, env=environment, check=True, capture_output=True)
        run, cell = (json.loads(line) for line in (self.folder / "trained.jsonl").read_text().splitlines())
        self.assertEqual((cell["test_on"][0]["length"], id_of(cell, run)), (48, cell["cell"]))
        self.assertNotEqual(id_of({k: v for k, v in cell.items() if k != "test_on"}, run), cell["cell"])

    def test_a_lie_is_measured_again(self) -> None:
        run, *cells = [json.loads(line) for line in (self.folder / "rows.jsonl").read_text().splitlines()]
        own = [cell for cell in cells if cell["measure"] == "fidelity" and cell["variant"]["name"] == "linear"]
        self.assertEqual([id_of(cell, run) for cell in own], [cell["cell"] for cell in own])
        for cell in own:
            cell["metrics"]["relative_error"] /= 2
            cell["checksum"] = hash_of({name: value for name, value in cell.items() if name != "checksum"})
        (self.folder / "lies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (run, *own)))
        self.assertEqual(self.verb("submit", "lies.jsonl", "-o", "lies.attnbundle").returncode, 0, "nothing that it says betrays it")
        said = self.verb("verify", "lies.attnbundle")
        self.assertEqual(said.returncode, 3, said.stdout + said.stderr)
        self.assertIn("verdict: disagree (1 disagree of 1 cells measured anew", said.stdout)


if __name__ == "__main__":
    unittest.main()
