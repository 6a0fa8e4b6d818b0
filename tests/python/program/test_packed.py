"""The axes packed and arrivals by the real program: rows that keep the schema, tables, wrong use, and how bundles read them."""

from __future__ import annotations

import unittest

from attnbench.bundles.figures import faults_of

from ..faults import BUILT, FaultCase, read_rows

SMALL = ["--heads", "4", "--head-dim", "16", "--repetitions", "2", "-q"]


@BUILT
class Packed(FaultCase):
    def rows_of(self, *words: str) -> list[dict]:
        done = self.run_program("run", *words, "-o", self.rows_file, at_once=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return read_rows(self.rows_file)

    def test_a_cell_records_both_passes(self) -> None:
        run, *rows = self.rows_of("-v", "full", "-v", "linear", "--packed", "3q16_q64_q1", "--mode", "forward,train", *SMALL)
        self.assertEqual(len(rows), 4)
        for row in rows:
            axes, metrics = row["axes"], row["metrics"]
            packed, time = metrics["packed"], metrics["time_s"]["median"]
            self.assertEqual((axes["packed"], axes["length"], axes["batch"]), ("3q16_q64_q1", 64, 5))
            self.assertEqual((packed["sequences"], packed["tokens"], packed["useful"]), (5, 113, 113 / 320))
            self.assertAlmostEqual(metrics["tokens_per_s"] * time, 113)
            self.assertAlmostEqual(packed["padded_tokens_per_s"] * packed["padded_time_s"]["median"], 113)
            self.assertEqual(packed["padded_time_s"]["n"], metrics["time_s"]["n"])
            self.assertEqual(row["verified"]["by"], "reference")
            self.assertEqual("gradient_error" in row["verified"], axes["mode"] == "train")
            self.assertEqual((len(row["samples"]), len(row["padded_samples"])), (2, 2))
            self.assertLessEqual(packed["speedup_ci_low"], packed["speedup"])
            self.assertLessEqual(packed["speedup"], packed["speedup_ci_high"])
            self.assertEqual(list(faults_of(row, run)), [])
            for samples in (row["padded_samples"][:1], [2 * s for s in row["padded_samples"]]):
                self.assertNotEqual(list(faults_of(row | {"padded_samples": samples}, run)), [])
            for name in ("tokens", "speedup", "useful", "speedup_ci_low", "speedup_ci_high"):
                broken = row | {"metrics": metrics | {"packed": packed | {name: packed[name] * 2}}}
                self.assertNotEqual(list(faults_of(broken, run)), [], name)
        again = self.run_program("repro", self.rows_file, rows[0]["cell"], "--print").stdout
        self.assertIn("--packed 3q16_q64_q1", again)
        self.assertNotIn("--length", again)

    def test_tables_show_it(self) -> None:
        self.rows_of("-v", "full", "-v", "linformer", "--packed", "uniform", "--batch", "4", "--length", "32", "--causal", "true", *SMALL)
        shown = self.run_program("table", self.rows_file).stdout
        self.assertIn("packed sequences beside a padded batch, times in ms; ", shown)
        self.assertRegex(shown, r"full .*× +[0-9.]+ to [0-9.]+")
        self.assertIn("faster: the padded median over the packed one, and its 95 % interval from samples taken in turn", shown)
        self.assertIn("4 sequences, 80 positions in all, 62 % of those of the padded batch", shown)
        self.assertIn("linformer skipped: cannot be causal", shown)
        self.assertNotIn("by length", shown)

    def test_requests_arrive_at_a_workload(self) -> None:
        run, *rows = self.rows_of("-v", "full", "--workload", "2q32_3q1kv16", "--arrivals", "1,1e5", *SMALL)
        calm, crowded = (next(r for r in rows if r["axes"]["arrivals"] == rate)["metrics"]["queue"] for rate in (1, 1e5))
        self.assertEqual([(c["prompt"], c["sequences"]) for c in calm["calls"]], [(32, 1), (0, 1), (0, 2), (0, 4), (0, 5)])
        self.assertLess(calm["utilisation"], 0.5)
        self.assertGreater(crowded["utilisation"], 0.99)
        self.assertGreater(crowded["first_token_p50_s"], 10 * calm["first_token_p99_s"])
        self.assertGreater(calm["sustained_rate"], 1)
        self.assertLess(crowded["sustained_rate"], 1e5)
        for row in rows:
            self.assertEqual(list(faults_of(row, run)), [])
        shown = self.run_program("table", self.rows_file).stdout
        self.assertIn("sustained/s", shown)
        self.assertIn("the queue grows for ever", shown)
        self.assertIn("simulated on medians of measured times: of a prompt of 32 alone, and of a token for 1, 2, 4, 5 sequences on caches of 48, ", shown)
        lines = [line for line in shown.splitlines() if line.startswith("  full ")]
        calm_line, crowded_line = sorted(lines, key=lambda line: line.endswith("!"))
        self.assertEqual(len(calm_line.split()) - len(crowded_line.removesuffix(" !").split()), 2, "no first tokens of a growing queue")

    def test_wrong_use_is_one_line(self) -> None:
        for words, said in (
            (["--packed", "uniform"], "the batch is 1; give their number, such as --batch 8"),
            (["--packed", "uniform", "--tokens", "4096", "--length", "64,4096"], "--tokens 4096 is one sequence of length 4096; leave this length out"),
            (["--packed", "uniform,q64", "--batch", "4"], "the list q64 has lengths of its own"),
            (["--packed", "3x64"], "packed '3x64': '3x64': it has no length; expected such as 8q64_q2k: eight"),
            (["--packed", "0q64"], "packed '0q64': '0q64': a count of sequences is 1 to 4096, not 0"),
            (["--packed", "gamma", "--batch", "4"], "packed 'gamma' is no word; expected uniform, lognormal or a list"),
            (["--packed", "q8_q1kv9"], "a sequence has no cache; leave out kv9"),
            (["--packed", "q8", "--length", "64"], "axis length=64 does not apply to packed q8"),
            (["--packed", "q8", "--mode", "decode"], "sequences are packed in modes forward and train"),
            (["--packed", "q8", "--workload", "q8"], "--packed q8 and --workload are both given"),
            (["--packed", "q8", "--measure", "memory"], "axis packed=q8 does not apply to measure memory"),
            (["--workload", "q64", "--arrivals", "0"], "arrivals=0 is not valid; expected float in 0.001..1000000"),
            (["--arrivals", "0"], "arrivals=0 is not valid; expected float in 0.001..1000000"),
            (["--arrivals", "5"], "axis arrivals=5 needs a workload"),
            (["--workload", "q1kv9", "--arrivals", "5"], "it has no prompts"),
        ):
            done = self.run_program("run", "-v", "full", *words, "-o", self.rows_file)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), (words, done.stderr))
            self.assertIn(said, done.stderr)
            self.assertFalse(self.rows_file.exists())


if __name__ == "__main__":
    unittest.main()
