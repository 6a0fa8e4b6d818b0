"""attnbench pool as its users see it: what it prints, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from attnbench.plots.rows.read import read_rows
from attnbench.pooling.command import main
from attnbench.pooling.figures import Figure
from attnbench.pooling.machines import fleet_of
from attnbench.pooling.ratios import ratios

from ..faults import BUILT, PROGRAM, ROOT, InFolder
from .planted import Planted, Row, cell, crossing_at, flat, write


class PoolCase(InFolder):
    def pool(self, *words: object) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(["pool", *map(str, words)])
            except SystemExit as stop:
                code = int(stop.code or 0)
        return code, out.getvalue(), err.getvalue()

    def three(self, **how) -> list:
        return [Planted(n, crossing_at(x), seed=i, **how).write(self.folder) for i, (n, x) in enumerate((("A", 400), ("B", 500), ("C", 600)))]

    def json(self, *words: object) -> dict:
        code, out, err = self.pool(*words, "--format", "json")
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)

    def figure(self, told: dict, measure: str, variant: str, length: int | None = None) -> dict:
        return next(
            f
            for f in told["figures"]
            if f["measure"] == measure and f["variant"].partition("[")[0] == variant and length in (None, f["axes"].get("length"))
        )


class Command(PoolCase):
    def test_three_machines_in_one_table(self) -> None:
        code, out, err = self.pool(*self.three())
        self.assertEqual((code, err), (0, ""))
        self.assertIn("machine 3: Example C, 2 cores, 2 threads, avx512 (C.jsonl)", out)
        self.assertRegex(out, r"linear +2048 .*faster on 3 of 3 machines")
        self.assertRegex(out, r"linear +128 .*slower on 3 of 3 machines")
        self.assertRegex(out, r"linear +512 .*faster on 1 of 3 machines; slower on machine 3; undecided on machine 2")
        self.assertIn("Length from which on the variant is faster than exact attention: attention alone, forward, not causal", out)
        self.assertNotIn(str(self.folder), out)

    def test_json_says_what_the_table_says(self) -> None:
        told = self.json(*self.three())
        one = self.figure(told, "speed", "linear", 1024)
        self.assertEqual([m["machine"] for m in one["machines"]], ["1", "2", "3"])
        self.assertAlmostEqual(one["pooled"]["value"], (400 * 500 * 600) ** (1 / 3) / 1024, delta=0.01)
        self.assertLess(one["pooled"]["low"], one["pooled"]["value"])
        self.assertLess(one["pooled"]["new_low"], one["pooled"]["low"])
        self.assertGreater(one["pooled"]["tau"], 1.1)
        self.assertLess(one["pooled"]["q_p"], 0.001)
        self.assertEqual(one["says"], "faster on 3 of 3 machines")
        crossing = self.figure(told, "crossing", "linear")
        self.assertAlmostEqual(crossing["pooled"]["value"], (400 * 500 * 600) ** (1 / 3), delta=8)
        self.assertNotIn("length", crossing["axes"])

    def test_absolute_times_play_no_part(self) -> None:
        plain = self.json(*self.three())
        slower = [
            Planted(n, crossing_at(x), slowness=s, seed=i).write(self.folder)
            for i, (n, x, s) in enumerate((("A", 400, 1), ("B", 500, 8), ("C", 600, 0.25)))
        ]  # powers of two, so that logarithms differ by rounding alone
        for before, after in zip(plain["figures"], self.json(*slower)["figures"], strict=True):
            self.assertEqual(before["says"], after["says"])
            if before["pooled"]:
                self.assertAlmostEqual(before["pooled"]["value"] / after["pooled"]["value"], 1, places=6)

    def test_the_order_of_files_changes_no_pooled_figure(self) -> None:
        files = self.three()
        pooled = [self.figure(self.json(*order), "speed", "linear", 512)["pooled"] for order in (files, files[::-1])]
        for name, value in pooled[0].items():
            self.assertAlmostEqual(value, pooled[1][name], places=9)

    def test_csv_has_a_row_for_each_machine_and_one_for_all(self) -> None:
        code, out, _ = self.pool(*self.three(), "--format", "csv", "-v", "linear", "--measure", "speed")
        self.assertEqual(code, 0)
        rows = list(csv.DictReader(io.StringIO(out)))
        own = [r for r in rows if r["measure"] == "speed" and "length=512" in r["axes"].split()]
        self.assertEqual([r["machine"] for r in own], ["1", "2", "3", "all"])
        self.assertEqual({r["variant"] for r in rows}, {"linear"})
        self.assertTrue(float(own[3]["low"]) < float(own[3]["value"]) < float(own[3]["high"]))
        self.assertEqual(own[3]["machines"], "3")

    def test_markdown(self) -> None:
        code, out, _ = self.pool(*self.three(), "--format", "markdown")
        self.assertEqual(code, 0)
        self.assertIn("| linear | 2048 |", out)
        tables = [line for line in out.splitlines() if line.startswith("|")]
        self.assertTrue(all(line.endswith("|") for line in tables))
        self.assertIn("- machine 1: Example A", out)

    def test_one_machine_pools_nothing_and_says_so(self) -> None:
        code, out, _ = self.pool(self.three()[0])
        self.assertEqual(code, 0)
        self.assertIn("one machine: nothing is pooled", out)
        self.assertRegex(out, r"linear +2048 .*faster on 1 of 1 machine")
        self.assertNotIn("pooled  ", out)
        self.assertTrue(all(f["pooled"] is None for f in self.json(self.three()[0])["figures"]))

    def test_two_machines_say_that_they_are_few(self) -> None:
        code, out, _ = self.pool(*self.three()[:2])
        self.assertEqual(code, 0)
        self.assertIn("two machines leave one degree of freedom", out)
        self.assertNotIn("a new machine", out)

    def test_five_machines_share_a_column(self) -> None:
        files = [Planted(n, flat(0.5), seed=i, lengths=(512,)).write(self.folder) for i, n in enumerate("ABCDE")]
        code, out, _ = self.pool(*files)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"linear +512 +0\.\d+ to 0\.\d+ +0\.\d+ \(")
        self.assertIn("faster on 5 of 5 machines", out)

    def test_a_narrow_terminal_gets_a_narrow_table(self) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        files = self.three()
        widths = {}
        for columns in ("300", "120"):
            with mock.patch.dict(os.environ, COLUMNS=columns), redirect_stdout(Terminal()) as out:
                self.assertEqual(main(["pool", *map(str, files)]), 0)
            widths[columns] = max(len(line) for line in out.getvalue().splitlines() if line.startswith("  "))
        self.assertLess(widths["120"], widths["300"] - 20)
        self.assertRegex(out.getvalue(), r"linear +512 +0\.\d+ to 1\.\d+ ")

    def test_what_one_machine_alone_has_is_counted(self) -> None:
        files = [*self.three(), Planted("D", flat(0.5), lengths=(64, 512)).write(self.folder)]
        code, out, _ = self.pool(*files, "--measure", "speed")
        self.assertEqual(code, 0)
        self.assertIn("not shown: 2 figures of one machine alone", out)
        self.assertRegex(self.pool(*files, "-v", "linear")[1], r"linear +64 +- +- +- +0\.\d+")
        lengths = {f["axes"].get("length") for f in self.json(*files)["figures"]}
        self.assertIn(64, lengths)

    def test_nothing_in_common_ends_with_4(self) -> None:
        def other(row: Row) -> None:
            row["source"]["variant"] = "feedfeedfeedfeed"

        changed = Planted("X", flat(0.5), changes=other).write(self.folder)
        code, out, err = self.pool(self.three()[0], changed)
        self.assertEqual((code, out), (4, ""))
        self.assertIn("the 2 machines have nothing in common", err)
        self.assertIn("times of linear and truncated: measured with other sources of exact attention and the variant", err)
        self.assertEqual(len(err.splitlines()), 1)

    def test_other_lengths_are_nothing_in_common_either(self) -> None:
        short, long = (Planted(n, flat(0.5), lengths=(x,)).write(self.folder) for n, x in (("A", 128), ("B", 2048)))
        code, _, err = self.pool(short, long)
        self.assertEqual(code, 4)
        self.assertIn("no variant has the same parameters and axes on two of them", err)

    def test_no_exact_attention_ends_with_4(self) -> None:
        rows = [r for r in Planted("A", flat(0.5)).rows() if r["kind"] == "run" or r["variant"]["name"] != "full"]
        code, _, err = self.pool(write(self.folder / "A.jsonl", rows))
        self.assertEqual(code, 4)
        self.assertIn("no variant has a figure beside exact attention's", err)

    def test_wrong_words_end_with_2(self) -> None:
        files = self.three()
        for words, said in (
            (["--measure", "sped"], "--measure 'sped' is none of speed, memory, accuracy, fidelity"),
            (["--format", "html"], "--format 'html' is none of text, json, csv, markdown"),
            (["-v", "performer"], "--variant 'performer' is in none of these rows; they have full, linear, truncated"),
            (["-v", "truncated[window=8]"], "--variant 'truncated[window=8]' is in none of these rows"),
        ):
            with self.subTest(words=words):
                code, out, err = self.pool(*files, *words)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(said, err)
                self.assertEqual(len(err.splitlines()), 1)
        self.assertEqual(self.pool()[0], 2)

    def test_variants_by_their_parameters(self) -> None:
        code, out, _ = self.pool(*self.three(), "-v", "truncated[window=16]", "--format", "csv")
        self.assertEqual(code, 0)
        self.assertEqual({r["variant"] for r in csv.DictReader(io.StringIO(out))}, {"truncated[window=16]"})

    def test_asking_for_one_variant_changes_no_figure(self) -> None:
        files = self.three()
        whole = [f for f in self.json(*files)["figures"] if f["variant"] == "linear"]
        self.assertEqual(self.json(*files, "-v", "linear")["figures"], whole)

    def test_a_noise_floor_is_told(self) -> None:
        floor = [{"mode": "forward", "threads": 1, "length": 512, "share": 0.2, "measured_at": "2026-01-01T00:00:00Z", "cells": 3, "commit": None}]
        quiet = Planted("Q", flat(0.9), noise=0.001, head_changes={"noise_floor": floor}).write(self.folder)
        out = self.pool(*self.three(), quiet)[1]
        self.assertIn("machine 4 decides no difference below its noise floor (attnbench noise), 20.0 to 20.0 % here", out)

    def test_files_that_cannot_be_read(self) -> None:
        self.assertEqual(self.pool(self.folder / "none.jsonl")[0], 6)
        edited = self.three()[0]
        edited.write_text(edited.read_text().replace('"repetitions": 9', '"repetitions": 8', 1))
        code, _, err = self.pool(edited)
        self.assertEqual(code, 2)
        self.assertIn("was changed after it was written", err)

    def test_marks_are_explained(self) -> None:
        def disturbed(row: Row) -> None:
            row["noisy"] = ["witness"]

        files = [*self.three()[:2], Planted("C", flat(0.5), changes=disturbed).write(self.folder)]
        out = self.pool(*files)[1]
        self.assertIn("* measured on a disturbed machine", out)
        self.assertRegex(out, r"linear +512 .*\)\* ")

    def test_failures_are_named(self) -> None:
        lost = cell("speed", "linear", length=512, mode="forward", scope="attention", causal=False)
        lost |= {"status": "oom", "reason": "needs 2 GiB", "metrics": None, "samples": None}
        for field in ("visits", "rounds", "visits_ended_by", "noisy", "verified", "witness", "disturbance"):
            lost.pop(field, None)
        files = [*self.three()[:2], Planted("C", flat(0.5), lengths=(1024,), more=[lost]).write(self.folder)]
        self.assertIn("without a figure: linear on machine 3 (oom)", self.pool(*files)[1])

    def test_one_processor_with_two_instruction_sets_is_told(self) -> None:
        other = Planted("X", flat(0.5), environment={"cpu_model": "Example A", "instruction_set": "avx2"}).write(self.folder)
        self.assertIn("machines 1 and 2 are one processor model with several settings", self.pool(self.three()[0], other)[1])


class Search(PoolCase):
    ROWS = ROOT / "results" / "reproductions" / "R18" / "crossing.jsonl"

    @BUILT
    def test_a_search_is_told_as_the_program_tells_it(self) -> None:
        done = subprocess.run([PROGRAM, "table", self.ROWS, "--crossings", "--format", "json"], capture_output=True, text=True)
        said = [line for line in json.loads(done.stdout) if line["crossing"] is not None and line["becomes"] == "less" and line["measure"] == "speed"]
        self.assertTrue(said)
        code, out, _ = self.pool(self.ROWS, "--measure", "speed", "--format", "json")
        self.assertEqual(code, 0)
        told = [m["value"] for f in json.loads(out)["figures"] if f["measure"] == "crossing" for m in f["machines"]]
        for line in said:
            self.assertIn(round(line["crossing"], 6), [round(value, 6) for value in told if value is not None])


class Output(InFolder):
    def ended(self, output: str) -> subprocess.CompletedProcess[str]:
        file = Planted("A", flat(0.5)).write(self.folder)
        command = f"'{sys.executable}' -m attnbench pool '{file}' {output}; echo ${{PIPESTATUS[0]}}"
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)

    def test_a_full_disk_is_one_line(self) -> None:
        done = self.ended("> /dev/full")
        self.assertEqual(done.stdout.strip(), "6")
        self.assertEqual(done.stderr.splitlines(), ["pool: standard output: cannot be written: No space left on device"])

    def test_a_reader_that_left_is_no_fault(self) -> None:
        done = self.ended("| true")
        self.assertEqual((done.stdout.strip(), done.stderr), ("141", ""))


class Closeness(PoolCase):
    NOTE = "a pooled interval follows from how far machines lie apart"

    def test_machines_closer_than_their_errors_are_said_to_be(self) -> None:
        wide = [Planted(n, flat(0.5), noise=0.2, seed=1).write(self.folder) for n in "ABC"]  # one seed: the same ratios
        self.assertIn(self.NOTE, self.pool(*wide)[1])

    def test_machines_apart_are_not(self) -> None:
        apart = [Planted(n, flat(r), seed=i).write(self.folder) for i, (n, r) in enumerate((("A", 0.3), ("B", 0.5), ("C", 0.8)))]
        self.assertNotIn(self.NOTE, self.pool(*apart, "--measure", "speed")[1])


class AsCompare(InFolder):
    @BUILT
    def test_intervals_are_those_of_attnbench_compare(self) -> None:
        """`compare` divides the ratios to exact attention of two files, by the same rule in another language."""
        files = [
            Planted(n, flat(r), noise=0.01 * (1 + i), seed=i, environment={"cpu_model": n}).write(self.folder)
            for i, (n, r) in enumerate((("A", 0.5), ("B", 0.6)))
        ]
        command = [PROGRAM, "compare", *files, "--across-machines", "--measure", "speed", "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        told = {(pair["variant"]["name"], pair["axes"]["length"]): pair for pair in json.loads(done.stdout)["pairs"]}
        old, new = ({g.place: g.figures[0] for g in ratios(fleet_of([read_rows([f])]))} for f in files)
        self.assertEqual(len(old), 10)
        for place, before in old.items():
            after, said = new[place], told[place.variant, place.length]
            variance = before.error**2 + after.error**2
            degrees = variance**2 / (before.error**4 / before.degrees + after.error**4 / after.degrees)
            own = Figure(1, after.value - before.value, math.sqrt(variance), degrees)
            self.assertAlmostEqual(said["value"], math.exp(own.value), places=5)
            self.assertAlmostEqual(said["low"], math.exp(own.interval[0]), places=5)
            self.assertAlmostEqual(said["high"], math.exp(own.interval[1]), places=5)
