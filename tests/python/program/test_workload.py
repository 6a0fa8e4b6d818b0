"""The axis workload by the real program: rows that keep the schema, tables, wrong use, and how bundles and pictures read it."""

from __future__ import annotations

import unittest

from attnbench.bundles.figures import faults_of

from ..faults import BUILT, FaultCase, read_rows

WORD = "2q64_3q1kv40_q4kv33"
SMALL = ["--heads", "4", "--head-dim", "16", "--repetitions", "2", "-q"]


@BUILT
class Workload(FaultCase):
    def rows_of(self, *words: str) -> list[dict]:
        done = self.run_program("run", *words, "-o", self.rows_file, at_once=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return read_rows(self.rows_file)

    def test_a_cell_records_what_those_who_wait_see(self) -> None:
        run, *rows = self.rows_of("-v", "full", "-v", "linear", "--workload", WORD, "--threads", "1,2", *SMALL)
        self.assertEqual(len(rows), 4)
        for row in rows:
            axes, metrics = row["axes"], row["metrics"]
            serving, call = metrics["serving"], metrics["time_s"]["median"]
            self.assertEqual((axes["workload"], axes["mode"], axes["length"], axes["batch"]), (WORD, "serve", 64, 6))
            self.assertEqual((serving["prompts"], serving["decoding"], serving["calls"], serving["rounds"]), (2, 4, 32, 2))
            self.assertEqual(serving["first_token_s"], call)
            self.assertLessEqual(serving["token_p50_s"], serving["token_p99_s"])
            self.assertAlmostEqual(metrics["tokens_per_s"] * call, 2 * 64 + 3 + 4)
            self.assertGreater(serving["generated_per_s"], 0)
            self.assertEqual(row["verified"]["by"], "reference")
            self.assertEqual(list(faults_of(row, run)), [])
        row, twice = (next(r for r in rows if (r["variant"]["name"], r["axes"]["threads"]) == ("full", n)) for n in (1, 2))
        full = row["metrics"]
        self.assertEqual(full["state_bytes"], (2 * 64 + 3 * 40 + 33) * 2 * 4 * 16 * 4)
        broken = row | {"metrics": full | {"tokens_per_s": full["tokens_per_s"] * 2}}
        self.assertTrue(any("tokens_per_s" in fault for fault in faults_of(broken, run)))
        again = self.run_program("repro", self.rows_file, twice["cell"], "--print").stdout
        self.assertIn(f"--workload {WORD} --threads 2", again)
        self.assertNotIn("--length", again)

    def test_tables_show_it_and_other_tables_do_not(self) -> None:
        self.rows_of("-v", "full", "-v", "linformer", "--workload", "3q1kv40,q64", *SMALL)
        shown = self.run_program("table", self.rows_file).stdout
        self.assertIn("workload as it is served, times in ms; heads 4, head_dim 16, workload q64", shown)
        self.assertEqual(shown.count("first token  token p50"), 1, "there is a prompt in one of the two")
        self.assertEqual(shown.count("token p50"), 2)
        self.assertIn("linformer skipped: ", shown)
        self.assertNotIn("by length", shown)

    def test_rows_are_compared_as_others_are(self) -> None:
        self.rows_of("-v", "full", "--workload", "q64", *SMALL)
        done = self.run_program("compare", self.rows_file, self.rows_file)
        self.assertIn("q64", done.stdout)

    def test_wrong_use_is_one_line(self) -> None:
        for words, said in (
            (["2q"], "'2q': a query length is missing"),
            (["0q1k"], "a count of sequences is 1 to 4096, not 0"),
            (["3q1kv0"], "a cache of 0 cannot hold the 1 of its queries"),
            (["99999q99999k"], "a count of sequences is 1 to 4096"),
            (["4096q1kv4096k"], "expected 67108864 at most"),
            ([""], "workload"),
            (["q64", "--length", "64"], "axis length=64 does not apply to a workload"),
            (["q64", "--mode", "decode"], "axis mode=decode does not apply to a workload"),
            (["q64", "--measure", "memory"], "axis workload=q64 does not apply to measure memory"),
            (["q64", "--breakdown"], "--breakdown is of passes"),
        ):
            done = self.run_program("run", "-v", "full", "--workload", *words, "-o", self.rows_file)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), (words, done.stderr))
            self.assertIn(said, done.stderr)
            self.assertFalse(self.rows_file.exists())


if __name__ == "__main__":
    unittest.main()
