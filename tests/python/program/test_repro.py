"""attnbench repro: the command of a row makes the same cell, and a row that was changed does not agree."""

from __future__ import annotations

import json
import shlex
import unittest

from ..faults import BUILT, SHAPE, FaultCase, read_rows

MODEL = "steps=20,width=32,layers=1,heads=2,batch=8,eval_every=10,validation_examples=32,test_examples=32"
TASK = "mqar[vocab=32,pairs=2,length=16,train_examples=128]"
SWEEPS = (
    ["-v", "linformer[rank=4]", "--measure", "memory", "--length", "32", *SHAPE],
    ["-v", "linear", "--measure", "speed", "--length", "32", "--mode", "decode", *SHAPE],
    ["-v", "linear", "--measure", "fidelity", "--length", "32", "--input", "needle", *SHAPE],
    ["-v", "full", "-t", TASK, "--train", MODEL],
    ["-v", "full", "-t", TASK, "--train", MODEL, "--test-on", "length=8;pairs=4"],
    ["-v", "linear", "--measure", "reach", "--length", "16", "--layers", "2", *SHAPE],
)


@BUILT
class Repro(FaultCase):
    def rows_of(self, sweep: list[str]) -> dict:
        done = self.run_program("run", *sweep, "-o", "rows.jsonl", "-q", "--force")
        self.assertEqual(done.returncode, 0, done.stderr)
        [row] = read_rows(self.rows_file)[1:]
        return row

    def change(self, **fields: object) -> None:
        head, row = read_rows(self.rows_file)
        row["metrics"] |= fields
        for line in (head, row):
            line.pop("checksum")
        self.rows_file.write_text("".join(json.dumps(line) + "\n" for line in (head, row)))

    def test_the_command_makes_the_same_cell(self) -> None:
        for sweep in SWEEPS:
            with self.subTest(sweep):
                row = self.rows_of(sweep)
                shown = self.run_program("repro", "rows.jsonl", row["cell"], "--print")
                self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                words = shlex.split(shown.stdout)
                self.assertEqual(words[:2], ["attnbench", "run"])
                again = self.run_program(*words[1:], "-o", "again.jsonl", "-q", "--force")
                self.assertEqual(again.returncode, 0, again.stderr)
                self.assertEqual(read_rows(self.folder / "again.jsonl")[1]["cell"], row["cell"])
                held = self.rows_file.read_bytes()
                done = self.run_program("repro", "rows.jsonl", row["cell"][:8])
                self.assertRegex(done.stdout, r"^attnbench run [^\n]*\n[^\n]* then, [^\n]* now[^\n]*\n$")
                if row["measure"] != "speed":  # times of a loaded machine may differ
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertRegex(done.stdout, r": agrees\n$")
                self.assertEqual(self.rows_file.read_bytes(), held)

    def test_a_changed_row_does_not_agree(self) -> None:
        row = self.rows_of(SWEEPS[0])
        self.change(peak_bytes=row["metrics"]["peak_bytes"] // 2)
        done = self.run_program("repro", "rows.jsonl", row["cell"], "-o", "new.jsonl")
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertIn("does not agree: more memory", done.stdout)
        self.assertEqual(read_rows(self.folder / "new.jsonl")[1]["cell"], row["cell"])

    def test_wrong_use_is_one_line(self) -> None:
        row = self.rows_of(["-v", "full", *SWEEPS[0][2:]])
        for words, code, message in (
            (["rows.jsonl"], 2, "needs a rows file and a cell"),
            (["rows.jsonl", "xyz"], 2, "'xyz' is no cell"),
            (["rows.jsonl", "ab"], 2, "'ab' is no cell"),
            (["rows.jsonl", "0" * 16], 2, "no cell of 'rows.jsonl' begins with"),
            (["missing.jsonl", row["cell"]], 6, "missing.jsonl"),
            (["rows.jsonl", row["cell"], "-o", "rows.jsonl"], 2, "'rows.jsonl' exists"),
        ):
            with self.subTest(words):
                done = self.run_program("repro", *words)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), done.stderr)
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
