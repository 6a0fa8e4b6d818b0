"""`noise` on the real program: two files, the table, the cache; and what tables, pictures and `compare` make of a floor."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from ..faults import BUILT, PROGRAM, InFolder, calibrated
from ..passed import passed_checks
from ..plots.test_plots import plot
from .test_cli import attnbench, rows_of

CELLS = (
    *("-v", "full", "-v", "linear", "-v", "performer", "--length", "64,128", "--heads", "1", "--head-dim", "16"),
    *("--mode", "forward", "--repetitions", "3"),
)


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def planted(rows, factors, floor=None):
    """The rows with times that scatter by 1 %; a variant takes its factor of the usual time."""
    rows = json.loads(json.dumps(rows))
    if floor is not None:
        at = {"mode": "forward", "threads": 1, "cells": 5, "measured_at": "2026-01-31T12:00:00Z", "commit": None}
        rows[0]["noise_floor"] = [{**at, "length": 64, "share": floor}]
    for row in rows[1:]:
        middle = 1e-3 * factors.get(row["variant"]["name"], 1) * row["axes"]["length"]
        row["samples"] = [middle * scatter for scatter in (0.99, 1.0, 1.01)]
        row["visits"] = [1, 1, 1]
        row.pop("noisy", None)
        time_s = row["metrics"]["time_s"]
        time_s.update(median=middle, mean=middle, min=0.99 * middle, ci_low=0.98 * middle, ci_high=1.02 * middle)
    return rows


@BUILT
class Noise(InFolder):
    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.runs = Path(held.name)
        cls.done = attnbench("noise", *CELLS, "-o", "tiny", "--format", "json", cwd=cls.runs, cache=cls.runs / "cache")
        assert cls.done.returncode == 0, cls.done.stderr
        cls.rows = rows_of(cls.runs / "tiny-a.jsonl")

    def run_program(self, *arguments):
        return attnbench(*arguments, cwd=self.folder)

    def refused(self, code, expected, *arguments):
        with self.subTest(arguments=arguments):
            done = self.run_program("noise", *arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertRegex(done.stderr, expected)
            self.assertEqual(list(self.folder.glob("*.jsonl")), [])

    def test_each_cell_is_measured_twice(self):
        found = json.loads(self.done.stdout)
        self.assertEqual([(line["mode"], line["length"]) for line in found], [("forward", 64), ("forward", 128), (None, None)])
        self.assertEqual([line["cells"] for line in found], [3, 3, 6])
        for line in found:
            self.assertGreater(line["detectable"], 0)
            self.assertEqual(line["differ"], line["cells"] - line["intervals_hold"])
        one, other = (rows_of(self.runs / f"tiny-{side}.jsonl") for side in "ab")
        self.assertNotEqual(one[0]["run"], other[0]["run"])
        self.assertEqual({row["cell"] for row in one[1:]}, {row["cell"] for row in other[1:]})
        self.assertEqual([row["status"] for row in one[1:] + other[1:]], ["ok"] * 12)
        self.assertNotIn("noise_floor", one[0])
        self.assertIn("tiny-a.jsonl and tiny-b.jsonl", self.done.stderr)

    def test_the_two_files_compare(self):
        files = [self.runs / f"tiny-{side}.jsonl" for side in "ab"]
        done = self.run_program("compare", *files, "--threshold", "99%", "--format", "json")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["pairs"]), 6)

    def test_it_is_computed_again_from_rows(self):
        files = [self.runs / f"tiny-{side}.jsonl" for side in "ab"]
        again = self.run_program("noise", *files, "--format", "json")
        self.assertEqual((again.returncode, again.stdout, again.stderr), (0, self.done.stdout, ""))
        table = self.run_program("noise", *files)
        self.assertIn("intervals hold", table.stdout)
        self.assertIn("nothing smaller is faster", table.stdout)
        lines = list(csv.DictReader(io.StringIO(self.run_program("noise", *files, "--format", "csv").stdout)))
        self.assertEqual([line["length"] for line in lines], ["64", "128", ""])
        self.assertIn(r"\toprule", self.run_program("noise", *files, "--format", "latex").stdout)
        self.assertIn("| forward |", self.run_program("noise", *files, "--format", "md").stdout)

    def test_floors_are_kept_with_the_machine_and_quoted_by_the_next_run(self):
        kept = json.loads((self.runs / "cache" / "attnbench" / "noise.json").read_text())
        found = {line["length"]: line["detectable"] for line in json.loads(self.done.stdout)}
        self.assertEqual({floor["length"]: floor["share"] for floor in kept.values()}, {n: found[n] for n in (64, 128)})
        run = ("run", "-v", "full", "-v", "linear", "--length", "64", "--heads", "1", "--head-dim", "16", "--repetitions", "3")
        done = attnbench(*run, "-o", "r.jsonl", cwd=self.folder, cache=self.runs / "cache")
        self.assertEqual(done.returncode, 0, done.stderr)
        quoted = rows_of(self.folder / "r.jsonl")[0]["noise_floor"]
        self.assertEqual({floor["length"]: floor["share"] for floor in quoted}, {n: found[n] for n in (64, 128)})
        self.assertIn("noise floor of this machine: ", done.stdout)
        self.assertNotIn("not known", done.stderr)

    def test_a_run_without_a_floor_says_so_and_a_damaged_file_is_named(self):
        run = ("run", "-v", "linear", "--length", "64", "--heads", "1", "--head-dim", "16", "--repetitions", "1")
        done = self.run_program(*run, "-o", "r.jsonl")
        self.assertIn("noise floor of this machine: not known", done.stderr)
        self.assertNotIn("noise_floor", rows_of(self.folder / "r.jsonl")[0])
        self.assertNotIn("noise floor", done.stdout)
        cache = self.folder / "attnbench"
        cache.mkdir(exist_ok=True)
        (cache / "noise.json").write_text('{"torn')
        done = self.run_program(*run, "-o", "s.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"noise\.json' is damaged")
        quiet = self.run_program(*run, "-o", "t.jsonl", "-q")
        self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))

    def test_wrong_use_is_one_line_and_writes_nothing(self):
        rows = [str(self.runs / f"tiny-{side}.jsonl") for side in "ab"]
        self.refused(2, "is one rows file", rows[0])
        self.refused(2, "are of one run", rows[0], rows[0])
        self.refused(2, "--length is about a measurement", *rows, "--length", "64")
        self.refused(2, "--output is about a measurement", *rows, "-o", "x")
        self.refused(6, "missing", rows[0], str(self.folder / "missing"))
        self.refused(2, "standard output", *CELLS, "-o", "-")
        self.refused(2, "repetitions 1 makes a single visit", "-v", "full", "--length", "64", "--repetitions", "1")
        self.refused(2, "nearest", "-v", "linaer")
        self.refused(2, "format", *CELLS, "--format", "pdf")
        self.refused(2, "unknown option 't'", "-t", "mqar")
        self.refused(2, "sweep file", "nothing.toml.txt")

    def test_existing_files_are_refused_and_kept(self):
        path = self.folder / "x-b.jsonl"
        path.write_text("mine\n")
        done = self.run_program("noise", *CELLS, "-o", "x")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"'x-b\.jsonl' exists")
        self.assertEqual(path.read_text(), "mine\n")
        self.assertEqual(sorted(p.name for p in self.folder.glob("*.jsonl")), ["x-b.jsonl"])

    def test_a_dry_run_lists_each_cell_twice(self):
        done = self.run_program("noise", *CELLS, "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 12)
        self.assertEqual(done.stdout.count(" again "), 6)
        self.assertEqual(list(self.folder.glob("*.jsonl")), [])
        defaults = self.run_program("noise", "--dry-run")
        self.assertEqual(len(defaults.stdout.splitlines()), 2 * 5 * 7 * 2)

    def test_a_profile_and_a_sweep_file_choose_speed_cells_alone(self):
        (self.folder / "s.toml").write_text(
            'name = "s"\n[[sweep]]\nmeasure = ["speed", "memory"]\nvariants = ["full"]\naxes = { length = [64] }\n'
        )
        for words in (["s.toml"], ["--profile", "smoke"]):
            done = self.run_program("noise", *words, "--dry-run", "--format", "json")
            self.assertEqual(done.returncode, 0, done.stderr)
            cells = json.loads(done.stdout)
            self.assertEqual({cell["measure"] for cell in cells}, {"speed"}, words)

    def test_an_interrupt_keeps_what_is_done(self):
        environment = calibrated({**os.environ, "XDG_CACHE_HOME": str(self.folder)})
        command = [PROGRAM, "noise", *CELLS[:-1], "60", "-o", "cut", "--verbose"]
        with passed_checks(self.folder):
            process = subprocess.Popen(command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True)
            for line in process.stderr:
                if line.startswith("speed"):
                    break
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        if process.returncode == 0:
            self.skipTest("the cells were done before the signal")
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("interrupted", said)
        self.assertFalse((self.folder / "attnbench" / "noise.json").exists())
        for side in "ab":
            rows_of(self.folder / f"cut-{side}.jsonl")

    def test_tables_call_nothing_faster_below_the_floor(self):
        fast = {"linear": 0.9, "performer": 0.5}
        bare = self.run_program("table", written(self.folder / "bare.jsonl", planted(self.rows, fast)))
        self.assertNotIn("noise floor", bare.stdout)
        self.assertRegex(bare.stdout, r"(?m)^ *linear .* 64$")
        held = self.run_program("table", written(self.folder / "held.jsonl", planted(self.rows, fast, 0.2)))
        self.assertEqual(held.returncode, 0, held.stderr)
        self.assertRegex(held.stdout, r"(?m)^ *linear .* not up to 128$")
        self.assertRegex(held.stdout, r"(?m)^ *performer .* 64$")
        self.assertIn("noise floor of this machine: 20.0 % at length 64 (attnbench noise, 2026-01-31)", held.stdout)
        without = [line for line in held.stdout.splitlines() if "noise floor" not in line]
        self.assertEqual(len(without), len(bare.stdout.splitlines()))

    def test_compare_tells_the_floor_and_decides_by_visits(self):
        base = written(self.folder / "base.jsonl", planted(self.rows, {}, 0.2))
        slow = written(self.folder / "slow.jsonl", planted(self.rows, {"linear": 1.15}, 0.2))
        done = self.run_program("compare", base, slow)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("noise floor of this machine for cells of 3 visits: 20.0 to 20.0 %", done.stdout)
        bare = [written(self.folder / f"{n}.jsonl", planted(self.rows, f)) for n, f in (("a", {}), ("b", {"linear": 1.15}))]
        self.assertEqual(self.run_program("compare", *bare).returncode, 3)

    def test_pictures_are_held_to_the_floor(self):
        fast = {"linear": 0.9, "performer": 0.5}
        for name, floor, answer, note in (("bare", None, "64", False), ("held", 0.2, "not up to 128", True)):
            rows = written(self.folder / f"{name}.jsonl", planted(self.rows, fast, floor))
            out = self.folder / name
            code, _, said = plot(rows, "-o", out, "--kind", "crossing")
            self.assertEqual(code, 0, said)
            (table,) = out.glob("crossing-*.csv")
            (picture,) = out.glob("crossing-*.svg")
            with table.open() as file:
                lines = {line["variant"]: line for line in csv.DictReader(file)}
            self.assertEqual(lines["linear"]["faster_than_full_from"], answer)
            self.assertEqual(lines["performer"]["faster_than_full_from"], "64")
            self.assertEqual("Noise floor of this machine" in picture.read_text(), note)
