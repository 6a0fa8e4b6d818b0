"""attnbench export on rows of the real program: csv, samples, Google Benchmark's JSON, and Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
import statistics
import subprocess
import unittest

from ..faults import BUILT, PROGRAM, SHAPE, FaultCase
from .test_cli import rows_of

ROOT = PROGRAM.parents[2]
SWEEP = ["run", "-v", "full", "-v", "linear", "--measure", "speed,memory", "--length", "64", *SHAPE, "--repetitions", "4", "-q"]
READ = (
    "import json, sys, pyarrow.parquet as parquet\n"
    "table = parquet.read_table(sys.argv[1])\n"
    "print(json.dumps([{f.name: str(f.type) for f in table.schema}, table.to_pylist()], default=str))"
)


@BUILT
class Export(FaultCase):
    def setUp(self) -> None:
        super().setUp()
        done = self.run_program(*SWEEP, "-o", "rows.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        # In the order of the sweep, which is not that of the file: memory comes after speed, but speed is shuffled.
        rows = [row for row in rows_of(self.folder / "rows.jsonl") if row["kind"] == "cell"]
        self.rows = sorted(rows, key=lambda row: (row["measure"] != "speed", row["variant"]["name"]))
        self.run_line = rows_of(self.folder / "rows.jsonl")[0]

    def export(self, *words: str):
        done = self.run_program("export", "rows.jsonl", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_a_line_a_row_with_its_machine(self) -> None:
        lines = list(csv.DictReader(io.StringIO(self.export())))
        self.assertEqual([line["cell"] for line in lines], [row["cell"] for row in self.rows])
        for line, row in zip(lines, self.rows):
            self.assertEqual(line["environment.cpu_model"], self.run_line["environment"]["cpu_model"])
            if row["measure"] == "speed":
                self.assertEqual(float(line["metrics.time_s.median"]), row["metrics"]["time_s"]["median"])
        objects = json.loads(self.export("--format", "json"))
        self.assertEqual([o["axes"] for o in objects], [row["axes"] for row in self.rows])
        self.assertTrue(all("samples" not in o for o in objects))

    def test_a_line_a_sample(self) -> None:
        lines = list(csv.DictReader(io.StringIO(self.export("--samples"))))
        for row in self.rows:
            if row["measure"] != "speed":
                continue
            mine = [line for line in lines if line["cell"] == row["cell"]]
            self.assertEqual([float(line["time_s"]) for line in mine], row["samples"])
            self.assertEqual([int(line["sample"]) for line in mine], [0, 1, 2, 3])
            self.assertEqual([int(line["visit"]) for line in mine], [0, 0, 1, 2])

    def test_what_google_benchmark_prints(self) -> None:
        whole = json.loads(self.export("--format", "gbench"))
        self.assertEqual(whole["context"]["num_cpus"], self.run_line["environment"]["cores"])
        entries = whole["benchmarks"]
        speed = [row for row in self.rows if row["measure"] == "speed"]
        self.assertEqual(len(entries), sum(len(row["samples"]) + 4 for row in speed))
        for family, row in enumerate(speed):
            mine = [entry for entry in entries if entry["family_index"] == family]
            times = [entry["real_time"] for entry in mine if entry["run_type"] == "iteration"]
            for time, sample in zip(times, row["samples"]):
                self.assertAlmostEqual(time, sample * 1e9, places=3)
            whole_of = {entry["aggregate_name"]: entry["real_time"] for entry in mine if entry["run_type"] == "aggregate"}
            self.assertAlmostEqual(whole_of["median"], statistics.median(times), delta=1e-6 * times[0])
            self.assertAlmostEqual(whole_of["mean"], statistics.mean(times), delta=1e-6 * times[0])
            self.assertAlmostEqual(whole_of["stddev"], statistics.stdev(times), delta=1e-6 * times[0])
            self.assertAlmostEqual(whole_of["cv"], statistics.stdev(times) / statistics.mean(times), places=9)
            self.assertTrue(all(entry["run_name"] == mine[0]["name"] for entry in mine))

    def test_parquet_has_a_type_for_each_column(self) -> None:
        subprocess.run([ROOT / "scripts" / "setup", "--venv", "parquet"], check=True, capture_output=True)
        python = ROOT / ".venv-parquet" / "bin" / "python"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}

        def converted(*words: str):
            command = [python, "-m", "attnbench", "export", *words]
            return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)

        done = converted("rows.jsonl", "-o", "rows.parquet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        read = subprocess.run([python, "-c", READ, "rows.parquet"], cwd=self.folder, capture_output=True, text=True, check=True)
        types, lines = json.loads(read.stdout)
        self.assertEqual([line["cell"] for line in lines], [row["cell"] for row in self.rows])
        expected = {"cell": "string", "axes.length": "int64", "axes.causal": "bool", "metrics.time_s.median": "double"}
        self.assertEqual({name: types[name] for name in expected}, expected)
        self.assertIsNone(next(line for line in lines if line["measure"] == "memory")["metrics.time_s.median"])
        for words, code in ((("rows.jsonl", "-o", "no/x.parquet"), 6), (("rows.jsonl", "--format", "json", "-o", "x.parquet"), 2), (("none.jsonl", "-o", "x.parquet"), 6)):
            done = converted(*words)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), done.stderr)
        self.assertFalse(list(self.folder.glob("*.tmp")))

    def test_wrong_use_is_one_line(self) -> None:
        for words, code in (
            ([], 2),
            (["missing.jsonl"], 6),
            (["rows.jsonl", "--format", "xml"], 2),
            (["rows.jsonl", "--format", "gbench", "--samples"], 2),
            (["rows.jsonl", "-o", "rows.jsonl"], 2),
        ):
            done = self.run_program("export", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), words)
        other = self.folder / "other.jsonl"
        lines = [{k: v for k, v in row.items() if k != "checksum"} for row in rows_of(self.folder / "rows.jsonl")]
        lines[0]["environment"]["cpu_model"] = "Another CPU"
        other.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        done = self.run_program("export", "rows.jsonl", "other.jsonl", "--format", "gbench")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("two machines or builds (cpu_model:", done.stderr)


if __name__ == "__main__":
    unittest.main()
