"""What becomes of rows of the real program: export (csv, samples, Google Benchmark's JSON, Parquet), merge,
run --retry, and rows on standard output."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import statistics
import subprocess

from attnbench.plots.rows.read import read_rows as read_to_plot

from ..faults import BUILT, PROGRAM, ROOT, SHAPE, FaultCase, InFolder, calibrated, read_rows
from .test_cli import TINY, attnbench, rows_of

SWEEP = ["run", "-v", "full", "-v", "linear", "--measure", "speed,memory", "--length", "64", *SHAPE, "--repetitions", "4", "-q"]
READ = (
    "import json, sys, pyarrow.parquet as parquet\n"
    "table = parquet.read_table(sys.argv[1])\n"
    "print(json.dumps([{f.name: str(f.type) for f in table.schema}, table.to_pylist()], default=str))"
)


@BUILT
class Export(FaultCase):
    measured = b""  # once, for all tests

    def setUp(self) -> None:
        super().setUp()
        if not Export.measured:
            done = self.run_program(*SWEEP, "-o", "rows.jsonl")
            self.assertEqual(done.returncode, 0, done.stderr)
            Export.measured = self.rows_file.read_bytes()
        self.rows_file.write_bytes(Export.measured)
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


MERGED = ["run", "-v", "full", "-v", "linear", "--measure", "memory", "--length", "16:64:+16", *SHAPE]


@BUILT
class Merge(FaultCase):
    def part(self, index: int, *more: str) -> str:
        name = f"part{index}.jsonl"
        done = self.run_program(*MERGED, "--shard", f"{index}/3", "-o", name, "-q", *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return name

    def merge(self, *words: str):
        return self.run_program("merge", *words)

    def test_parts_of_a_sweep_are_one_file(self) -> None:
        parts = [self.part(i) for i in range(3)]
        done = self.merge(*parts, parts[0], "-o", "all.jsonl")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        doubles = len(read_rows(self.folder / parts[0])) - 1
        self.assertEqual(done.stderr, f"8 rows of 3 runs; {doubles} exact doubles dropped\n")
        rows = read_rows(self.folder / "all.jsonl")
        cells = {row["cell"]: row for row in rows if row["kind"] == "cell"}
        self.assertEqual(len(cells), 8)
        for part in parts:
            for row in read_rows(self.folder / part)[1:]:
                self.assertEqual(cells[row["cell"]], row, "as it was measured")
        drawn = read_to_plot([self.folder / "all.jsonl"])
        self.assertEqual((len(drawn.runs), len(drawn.cells)), (3, 8))
        whole = self.run_program(*MERGED, "-o", "whole.jsonl", "-q")
        table = self.run_program("table", "all.jsonl")
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        self.assertEqual(table.stdout, whole.stdout, "the parts make the table of the whole")
        same = self.run_program("compare", "whole.jsonl", "all.jsonl")
        self.assertEqual(same.returncode, 0, same.stderr)
        self.assertRegex(same.stderr, r"^8 pairs: 0 worse, 0 better, 8 same, 0 undecided")
        shown = self.merge("all.jsonl", "-o", "-")
        self.assertEqual(shown.stdout, (self.folder / "all.jsonl").read_text())

    def test_what_cannot_be_merged_is_one_line(self) -> None:
        part = self.part(0)
        (self.folder / "again").mkdir()
        done = self.run_program(*MERGED, "--shard", "0/3", "-o", "again/part0.jsonl", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "torn.jsonl").write_text((self.folder / part).read_text()[:-20])
        (self.folder / "there.jsonl").write_text("kept")
        for words, message in (
            ([part, "again/part0.jsonl", "-o", "x.jsonl"], "measured the same cell in two runs"),
            ([part, "torn.jsonl", "-o", "x.jsonl"], "torn line"),
            ([part, "-o", "there.jsonl"], "'there.jsonl' exists"),
            ([part], "-o names the file"),
            (["-o", "x.jsonl"], "no rows file named"),
            ([part, "-o", "x.jsonl", "--keep", "best"], "best"),
        ):
            with self.subTest(words):
                done = self.merge(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, rf"^attnbench: [^\n]*{message}[^\n]*\n$")
        done = self.merge("missing.jsonl", "-o", "x.jsonl")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (6, 1))
        self.assertFalse((self.folder / "x.jsonl").exists())
        self.assertEqual((self.folder / "there.jsonl").read_text(), "kept")
        done = self.merge(part, "again/part0.jsonl", "-o", "x.jsonl", "--keep", "last")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"rows of 2 runs; \d measured again, the last kept\n$")

    def test_a_merged_file_is_not_gone_on_with(self) -> None:
        part = self.part(0)
        self.assertEqual(self.merge(part, "-o", "all.jsonl").returncode, 0)
        held = (self.folder / "all.jsonl").read_bytes()
        done = self.run_program(*MERGED, "-o", "all.jsonl", "-q")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^attnbench: 'all.jsonl' was merged from 1 run;[^\n]*\n$")
        self.assertEqual((self.folder / "all.jsonl").read_bytes(), held)

    def test_failures_are_measured_again(self) -> None:
        faults = [('"name":"linear"', "exit:9")]
        done = self.run_program(*MERGED, "-o", "rows.jsonl", "-q", faults=faults)
        self.assertEqual(done.returncode, 1, done.stderr)
        again = self.run_program(*MERGED, "-o", "rows.jsonl", "-q", "--retry", "failed")
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        rows = read_rows(self.rows_file)[1:]
        self.assertEqual(sorted({row["status"] for row in rows}), ["ok"])
        self.assertEqual(len({row["cell"] for row in rows}), len(rows))
        wrong = self.run_program(*MERGED, "-o", "rows.jsonl", "-q", "--retry", "bad")
        self.assertEqual(wrong.returncode, 2)
        self.assertRegex(wrong.stderr, r"^attnbench: --retry bad is unknown; expected failed,[^\n]*\n$")

    def runs_of_one_sweep(self, *changes) -> list[str]:
        """A file for each change of a small sweep's rows; a change gets the run line and the cells."""
        sweep = ["run", "-v", "linear", "--measure", "speed,memory", "--length", "16", *SHAPE, "--repetitions", "3"]
        done = self.run_program(*sweep, "-o", "one.jsonl", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = []
        for number, change in enumerate(changes):
            head, *cells = (json.loads(line) for line in (self.folder / "one.jsonl").read_text().splitlines())
            for line in (head, *cells):
                line.pop("checksum")
                line["run"] = f"{number:016x}"
                line.pop("noisy", None)
            change(head, cells)
            names.append(f"run{number}.jsonl")
            lines = "".join(json.dumps(line) + "\n" for line in (head, *cells))
            (self.folder / names[-1]).write_text(lines)
        return names

    def joined(self, *names: str) -> dict[str, dict]:
        done = self.merge(*names, "-o", "all.jsonl", "--keep", "all", "--force")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual(done.stderr, f"2 rows, the times of each from {len(names)} runs\n")
        return {row["measure"]: row for row in read_rows(self.folder / "all.jsonl") if row["kind"] == "cell"}

    def test_runs_of_one_sweep_become_visits(self) -> None:
        def timed(time: float, *noisy: str):
            def change(head: dict, cells: list[dict]) -> None:
                speed = next(cell for cell in cells if cell["measure"] == "speed")
                speed["samples"] = [0.9 * time, time, 1.1 * time]
                speed["metrics"]["time_s"]["median"] = time
                speed["metrics"]["tokens_per_s"] = 16 / time
                if noisy:
                    speed["noisy"] = list(noisy)

            return change

        names = self.runs_of_one_sweep(timed(1e-5, "steal"), timed(2e-5), timed(4e-5, "steal", "switches", "witness"))
        row = self.joined(*names)["speed"]
        self.assertEqual((row["visits"], row["noisy"]), ([3, 3, 3], ["witness", "steal"]))
        self.assertEqual(row["samples"][3:6], [0.9 * 2e-5, 2e-5, 1.1 * 2e-5])
        time = row["metrics"]["time_s"]
        self.assertEqual((time["median"], time["n"]), (2e-5, 9))
        self.assertAlmostEqual(row["metrics"]["tokens_per_s"], 16 / 2e-5, places=3)
        # Student's t over the logarithms of three medians, each twice the one before: 4.3027 · ln 2 / √3.
        self.assertAlmostEqual(math.log(time["ci_high"] / time["ci_low"]) / 2, 4.30265 * math.log(2) / math.sqrt(3), places=4)

    def test_a_failure_of_one_run_is_that_of_all(self) -> None:
        def fails(head: dict, cells: list[dict]) -> None:
            for cell in cells:
                cell.update(status="timeout", reason="600 s", metrics=None, samples=None)
                for name in ("visits", "ledger"):
                    cell.pop(name, None)

        row = self.joined(*self.runs_of_one_sweep(lambda *_: None, fails))["speed"]
        self.assertEqual((row["status"], row["reason"]), ("timeout", "600 s"))

    def test_runs_that_are_not_of_one_sweep_are_refused(self) -> None:
        def other_commit(head: dict, cells: list[dict]) -> None:
            head["environment"]["commit"] = "0" * 40

        def other_memory(head: dict, cells: list[dict]) -> None:
            next(cell for cell in cells if cell["measure"] == "memory")["metrics"]["peak_bytes"] += 64

        def fewer(head: dict, cells: list[dict]) -> None:
            cells.pop()

        for change, message in (
            (other_commit, "two programs or machines \\(commit:"),
            (other_memory, "differ in figures that are no times"),
            (fewer, "is in 1 of 2 runs"),
        ):
            done = self.merge(*self.runs_of_one_sweep(lambda *_: None, change), "-o", "all.jsonl", "--keep", "all")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"^attnbench: [^\n]*{message}[^\n]*\n$")
        self.assertFalse((self.folder / "all.jsonl").exists())


@BUILT
class RowsOnStdout(InFolder):
    def in_shell(self, after: str) -> subprocess.CompletedProcess[str]:
        """A run whose rows go where `after` says."""
        command = ["bash", "-c", f"{PROGRAM} run {' '.join(TINY)} -q -o - {after}"]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=120, env=calibrated({**os.environ}))

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
        self.assertEqual(self.in_shell("> rows.jsonl").returncode, 0)
        held = (self.folder / "rows.jsonl").read_text()
        again = attnbench("run", *TINY, "-o", "rows.jsonl", cwd=self.folder)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((self.folder / "rows.jsonl").read_text(), held, "nothing was missing")

    def test_a_reader_that_leaves_ends_it_without_a_word(self) -> None:
        done = self.in_shell('| head -n 1; echo "${PIPESTATUS[0]}"')
        first, status = done.stdout.splitlines()
        self.assertEqual(json.loads(first)["kind"], "run")
        self.assertEqual((status, done.stderr), ("141", ""), "ended by SIGPIPE")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_full_disk_there_is_one_line(self) -> None:
        done = self.in_shell("> /dev/full")
        self.assertEqual(done.returncode, 6)
        self.assertRegex(done.stderr, r"\Aattnbench: standard output: .*No space left.*\n\Z")
