"""scripts/reproduce: entries and what is wrong with them, outcomes, measuring and resuming, the page, exit codes."""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import runpy
import shutil
import subprocess
import sys
import unittest
from dataclasses import replace
from unittest.mock import patch

from scipy.stats import binomtest

from attnbench.reproduce import findings, page, product
from attnbench.reproduce.chart import Line, Panel, Point, drawn
from attnbench.reproduce.entries import (
    FOLDER,
    ROOT,
    ReproduceError,
    chosen,
    entry_ids,
    read_entries,
    read_entry,
    read_left_out,
)
from attnbench.reproduce.estimates import (
    Estimate,
    crossing_of,
    crossings_of,
    difference,
    exact,
    mean_of,
    quotient,
    share,
)
from attnbench.reproduce.judging import Finding, Outcome, State, outcome_of
from attnbench.reproduce.product import Product

from .. import faults
from ..faults import BUILT, calibrated
from ..passed import passed_checks

PROGRAM = Product().path
BUILT = BUILT
# A sweep of trainings or times takes a second a cell: most are planned in every run, and run with --all.
EVERY = bool(os.environ.get("ATTN_GOLDEN_ALL"))
IN_CI = ("R1", "R2", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13", "R24", "R27")
ENTRY = """
id = "R99"
title = "a title"
paper = "a paper"
place = "table 1"
claim = "a claim"
scaled = "a set-up"
minutes = 1
idle = false

[[measure]]
sweep = "memory.toml"
small = ["--length", "16,32"]

[[published]]
name = "ratio"
source = "table 1"
unit = "times"
values = { ratio = 2 }
"""
SWEEP = """
[[sweep]]
measure = "memory"
variants = ["full", "linear"]
axes = { length = [16, 32, 64], heads = 1, head_dim = 16 }
"""
VERDICT = """
from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import exact
from attnbench.reproduce.judging import Finding, Verdict


def verdict(evidence):
    cells = evidence.cells("memory", "full")
    found = tuple(Point(c.length, exact(c.metric("peak_bytes")), (c,)) for c in cells)
    findings = (Finding("peak", found[-1].found, least=1, published="2", unit="bytes"),)
    panel = Panel("peak", "length", "bytes", (Line("full", found),), y_scale="bytes")
    return Verdict(findings, "It is a number.", (panel,))
"""


class InFolder(faults.InFolder):
    def entry(self, text: str = ENTRY, name: str = "R99"):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        for file, content in (("entry.toml", text), ("memory.toml", SWEEP), ("verdict.py", VERDICT)):
            (folder / file).write_text(content)
        return read_entry(folder)


class Entries(InFolder):
    def test_every_entry_is_whole(self) -> None:
        entries = read_entries()
        self.assertGreaterEqual(len(entries), 14)
        for entry in entries:
            for one in entry.published.values():
                self.assertTrue(one.source and one.unit and one.values, entry.id)
            self.assertFalse(set(entry_ids()) & set(read_left_out()), "an entry is left out and there")

    def test_all_thirty_are_there_or_left_out(self) -> None:
        every = {f"R{n}" for n in range(1, 31)}
        self.assertEqual(every - set(entry_ids()) - set(read_left_out()), set())

    def test_what_is_said_to_be_missing_is_no_variant(self) -> None:
        listed = (ROOT / "variants" / "CMakeLists.txt").read_text(encoding="utf-8")
        variants = set(re.findall(r"^ +\w+/(\w+)$", listed, re.M))
        self.assertLessEqual({"hyena", "mamba", "rwkv6", "s4d"}, variants)
        for entry, left in read_left_out().items():
            said = [s for s in re.split("[;,]", left["why"]) if re.search("missing|no .* yet", s)]
            names = [n.lower() for n in re.findall(r"\w*[A-Z]\w*", " ".join(said))]
            there = [n for n in names if any(v.startswith(n) for v in variants)]
            self.assertEqual(there, [], f"{entry}: {left['why']}")

    def test_numbers_order_entries(self) -> None:
        for name in ("R10", "R9", "R100"):
            self.entry(ENTRY.replace("R99", name), name)
        self.assertEqual(entry_ids(self.folder), ["R9", "R10", "R100"])
        self.assertEqual([e.id for e in chosen(["R100", "R9", "R9"], self.folder)], ["R9", "R100"])
        self.assertEqual(len(chosen(["all"], self.folder)), 3)

    def test_what_is_wrong_is_one_line_that_names_it(self) -> None:
        cases = (
            ('title = "a title"', 'titel = "a title"', "'titel'"),
            ('id = "R99"', 'id = "R98"', "'R98'.*'R99'"),
            ('claim = "a claim"', 'claim = " "', "'claim'"),
            ("minutes = 1", "minutes = 0", "minutes is 0"),
            ("idle = false", "idle = 1", "idle is 1"),
            ("memory.toml", "speed.toml", "'speed.toml'"),
            ('sweep = "memory.toml"', 'sweep = "memory.toml"\nprogram = "x.py"', "either"),
            ('unit = "times"', "", "'unit'"),
            ('"--length", "16,32"', '"--length", "16", "32"', "small of 'memory.toml'.*pairs"),
            ('"16,32"]', '"16", "--length", "32"]', "small of 'memory.toml'.*each name once"),
            ("minutes = 1", "minutes = ", "line 8"),
        )
        for old, new, expected in cases:
            with self.subTest(new=new), self.assertRaisesRegex(ReproduceError, expected) as caught:
                self.entry(ENTRY.replace(old, new))
            self.assertEqual(caught.exception.code, 2)
            self.assertEqual(str(caught.exception).count("\n"), 0)

    def test_an_option_of_the_small_size_stands_for_that_of_the_full_one(self) -> None:
        more = 'options = ["--length", "16,64", "--repetitions", "9"]\nsmall ='
        one = self.entry(ENTRY.replace("small =", more)).measurements[0]
        self.assertEqual(one.words(small=False), ["--length", "16,64", "--repetitions", "9"])
        self.assertEqual(one.words(small=True), ["--length", "16,32", "--repetitions", "9"])

    def test_an_unknown_id_names_the_nearest(self) -> None:
        with self.assertRaisesRegex(ReproduceError, "'r77' is no entry; did you mean R7"):
            chosen(["r77"])


class Judging(unittest.TestCase):
    def finding(self, low: float, high: float, of_machine: bool = False) -> Finding:
        return Finding("x", Estimate((low + high) / 2, low, high), least=1, of_machine=of_machine)

    def test_states(self) -> None:
        for (low, high), state in (((1, 2), "holds"), ((0.5, 0.9), "fails"), ((0.5, 1.5), "unclear")):
            self.assertEqual(self.finding(low, high).state, State(state))
        self.assertEqual(self.finding(math.nan, math.nan).state, State.unclear)
        self.assertEqual(Finding("x", Estimate(math.inf, 8, math.inf), most=2).state, State.fails)
        with self.assertRaises(ValueError):
            Finding("x", exact(1))

    def test_outcomes(self) -> None:
        holds, fails, unclear = self.finding(1, 2), self.finding(0, 0.5), self.finding(0, 2)
        machine = self.finding(0, 0.5, of_machine=True)
        for findings, outcome in (
            ([holds, holds], Outcome.agrees),
            ([holds, fails], Outcome.disagrees),
            ([unclear, fails], Outcome.disagrees),
            ([machine, fails], Outcome.disagrees),
            ([holds, unclear], Outcome.undecided),
            ([machine, unclear], Outcome.undecided),
            ([holds, machine], Outcome.hardware),
            ([], Outcome.undecided),
        ):
            self.assertEqual(outcome_of(findings), outcome)

    def test_estimates(self) -> None:
        mean = mean_of([1.0, 2.0, 3.0])
        self.assertAlmostEqual(mean.high - mean.value, 4.3027 / math.sqrt(3), places=3)
        self.assertGreater(mean_of([1.0, 2.0, 3.0], among=9).high, mean.high)
        gap = difference(Estimate(5, 4, 6), Estimate(1, 1, 1))
        self.assertEqual((gap.value, gap.low, gap.high), (4, 3, 5))
        self.assertEqual(quotient(Estimate(4, 2, 8), Estimate(2, 1, 4)), Estimate(2, 0.5, 8))
        self.assertTrue(math.isnan(quotient(exact(math.inf), exact(math.inf)).value))
        part = share(727 / 2000, 2000)
        wilson = binomtest(727, 2000).proportion_ci(0.95, method="wilson")
        self.assertAlmostEqual(part.low, wilson.low, places=6)
        self.assertAlmostEqual(part.high, wilson.high, places=6)
        self.assertTrue(part.low < 0.3635 < part.high and part.high - part.low < 0.05)

    def test_crossings(self) -> None:
        line = {"variant": "linear[a=1]", "measure": "speed", "rival": "full", "from": 16, "to": 64, "ended": True,
                "outcome": "", "becomes": None, "crossing": None, "low": None, "high": None}  # fmt: skip
        for more, expected in (
            ({"becomes": "less", "crossing": 30.0, "low": 28.0, "high": 33.0}, (30, 28, 33)),
            ({"becomes": "less", "low": 16.0, "high": 64.0}, (32, 16, 64)),
            ({"measure": "memory", "becomes": "less", "crossing": 30.0, "low": 28.0, "high": 33.0}, (30, 29, 33)),
            ({"measure": "memory", "becomes": "less", "crossing": 28.5, "low": 28.0, "high": 29.0}, (29, 29, 29)),
            ({"becomes": "more", "crossing": 30.0, "low": 28.0, "high": 33.0}, (math.inf, 64, math.inf)),
            ({"outcome": "faster at every length from 16 to 64"}, (16, 1, 16)),
            ({"outcome": "faster from 32 to 64; undecided at 16"}, (32, 1, 32)),
            ({"outcome": "more at every length from 16 to 64"}, (math.inf, 64, math.inf)),
        ):
            self.assertEqual(crossing_of(line | more), Estimate(*expected), more)
        self.assertIsNone(crossing_of(line | {"outcome": "undecided: times differ by less"}))
        last = [line | {"becomes": b, "crossing": 30.0, "low": 28.0, "high": 33.0} for b in ("more", "less")]
        self.assertEqual(crossings_of(last), {("linear", "speed", "full"): Estimate(30, 28, 33)})


@BUILT
class Measuring(InFolder):
    def setUp(self) -> None:
        super().setUp()
        patched = patch.dict(os.environ, calibrated({**os.environ, "XDG_CACHE_HOME": str(self.folder)}))
        self.enterContext(patched)
        self.enterContext(passed_checks(self.folder))

    def measured(self, **options: bool) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = product.measure(self.entry(), Product(), self.folder / "rows", **options)
        return code, said.getvalue()

    def test_rows_that_are_there_are_kept(self) -> None:
        rows = self.folder / "rows" / "memory.jsonl"
        self.assertEqual(self.measured(small=True)[0], 0)
        first = rows.read_bytes()
        self.assertEqual(first.count(b"\n"), 1 + 2 * 2)
        self.assertIn("memory.jsonl is there and is kept; --force measures it again", self.measured()[1])
        self.assertEqual(rows.read_bytes(), first)
        self.assertEqual(self.measured(force=True)[0], 0)
        self.assertEqual(rows.read_bytes().count(b"\n"), 1 + 2 * 3)

    def test_a_sweep_that_was_ended_goes_on(self) -> None:
        rows = self.folder / "rows" / "memory.jsonl"
        part = rows.with_suffix(".part.jsonl")
        self.measured()
        lines = rows.read_bytes().splitlines(keepends=True)
        rows.unlink()
        part.write_bytes(b"".join(lines[:4]))
        self.assertEqual(self.measured()[0], 0)
        self.assertEqual(rows.read_bytes().splitlines(keepends=True)[:4], lines[:4])
        self.assertFalse(part.exists())

    def test_rows_of_another_sweep_are_refused(self) -> None:
        self.measured()
        rows = self.folder / "rows" / "memory.jsonl"
        rows.write_text(rows.read_text().replace("[16, 32, 64], heads", "[16, 32, 48], heads"))
        with self.assertRaisesRegex(ReproduceError, "another memory.toml.*--force"):
            self.measured()

    def test_a_program_yields_records(self) -> None:
        program = "def measure(product, small):\n    yield {'small': small, 'found': 0.5}\n"
        (self.folder / "R99").mkdir()
        (self.folder / "R99" / "find.py").write_text(program)
        text = ENTRY.replace('sweep = "memory.toml"', 'program = "find.py"').replace("small =", "options = [] #")
        entry = self.entry(text)
        product.measure(entry, Product(), self.folder / "rows", small=True)
        head, records = product.read_records(self.folder / "rows" / "find.jsonl")
        self.assertIn("cpu_model", head["environment"])
        self.assertEqual([(r["small"], r["found"]) for r in records], [(True, 0.5)])

    def test_the_page_of_an_entry(self) -> None:
        self.measured()
        entry = self.entry()
        found = page.judge(entry, self.folder / "rows", Product())
        self.assertEqual(found.verdict.outcome, Outcome.agrees)
        (self.folder / "left_out.toml").write_text('[R98]\ntitle = "another"\nwhy = "no time"\n')
        text = page.text_of([found], self.folder, self.folder / "page.md")
        for expected in ("| [R99](#r99-a-title) | a title | agrees |", "**Outcome: agrees.** It is a number.",
                         "KiB | ≥ 1 B | 2 | holds |", "(./R99/R99.png)", "**R98, another**: no time", "attnbench"):  # fmt: skip
            self.assertIn(expected, text)
        disturbed = replace(found.measured.cells[0], measure="speed", noisy=("steal",), verified={"by": "reference"})
        marked = replace(found, measured=replace(found.measured, cells=[disturbed]))
        text = page.text_of([marked], self.folder, self.folder / "page.md")
        for expected in ("| a title | agrees `*` |", "**Outcome: agrees `*`.** It is a number. 1 of the 1 times behind it was measured"):
            self.assertIn(expected, text)
        shutil.rmtree(self.folder / "rows")
        waiting = page.judge(entry, self.folder / "rows", Product())
        self.assertIn("Not measured yet", page.text_of([waiting], self.folder))


@BUILT
class Page(unittest.TestCase):
    def test_page_and_pictures_are_what_the_rows_say(self) -> None:
        found = page.judge_all(Product())
        text = page.PAGE.read_text(encoding="utf-8")
        self.assertEqual(page.text_of(found), text, "scripts/reproduce report writes it anew")
        told = findings.text_of(found, Product())
        self.assertEqual(told, findings.PAGE.read_text(encoding="utf-8"), "scripts/reproduce report writes it anew")
        for one in found:
            if one.picture:
                table = one.picture.data.to_csv(index=False, float_format="%.9g", lineterminator="\n")
                there = (FOLDER / one.entry.id / f"{one.entry.id}.csv").read_text(encoding="utf-8")
                self.assertEqual(table, there, one.entry.id)
                self.assertTrue((FOLDER / one.entry.id / f"{one.entry.id}.png").exists(), one.entry.id)

    def test_rows_are_of_the_sweep_files_beside_them(self) -> None:
        for entry in read_entries():
            for one in entry.measurements:
                if one.rows(entry.folder).exists():
                    product.check_source(entry, one, entry.folder)


class Picture(InFolder):
    def test_published_figures_are_hollow(self) -> None:
        entry = self.entry()
        lines = (Line("full", (Point(16, exact(1)), Point(32, exact(2)))),
                 Line("full", (Point(16, exact(1)), Point(32, exact(3))), published=True),
                 Line("other", (Point(16, Estimate(1, 0.5, 2)),)))  # fmt: skip
        from attnbench.plots.rows.read import Rows

        picture = drawn(entry, [Panel("t", "x", "y", lines)], Rows((), [], []), [])
        assert picture.figure is not None
        curves = [c for c in picture.figure.axes[0].lines if len(c.get_xdata()) and c.get_marker() != "None"]
        self.assertEqual([c.get_markerfacecolor() == "white" for c in curves], [False, True, False])
        self.assertEqual(list(picture.data["kind"]), ["measured"] * 2 + ["published"] * 2 + ["measured"])


@BUILT
class Command(InFolder):
    def reproduce(self, *words: str) -> subprocess.CompletedProcess[str]:
        cache = self.folder / "cache"
        cache.mkdir(exist_ok=True)
        environment = calibrated({**os.environ, "PYTHONPATH": str(ROOT / "python"), "XDG_CACHE_HOME": str(cache)})
        command = [sys.executable, "-m", "attnbench.reproduce", *words]
        with passed_checks(cache):
            return subprocess.run(command, capture_output=True, text=True, env=environment)

    def reproduce_here(self, *words: str) -> subprocess.CompletedProcess[str]:
        """In this process, where the packages are loaded."""
        out, err, code = io.StringIO(), io.StringIO(), None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), patch.object(sys, "argv", ["reproduce", *words]):
            try:
                runpy.run_module("attnbench.reproduce", run_name="__main__")
            except SystemExit as stop:
                code = stop.code
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    def test_list(self) -> None:
        done = self.reproduce("list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(done.stdout.splitlines()), len(entry_ids()))

    def test_wrong_use_is_exit_2(self) -> None:
        for words, expected in ((["run", "R0"], "'R0' is no entry"), ([], "required"), (["measure"], "'measure'"),
                                (["run", "R7", "--fast"], "--fast")):  # fmt: skip
            done = self.reproduce_here(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(expected, done.stderr)
        self.assertEqual(self.reproduce_here("run", "R0").stderr.count("\n"), 1)

    def test_a_folder_that_cannot_be_written_is_exit_6(self) -> None:
        (self.folder / "file").write_text("")
        done = self.reproduce("run", "R7", "--small", "-o", str(self.folder / "file"))
        self.assertEqual(done.returncode, 6, done.stderr)
        said = [line for line in done.stderr.splitlines() if not line.startswith("bench: building")]
        self.assertEqual(len(said), 1, said)
        self.assertIn("file", said[0])

    def run_small(self, *wanted: str) -> None:
        done = self.reproduce("run", *wanted, "--small")
        self.assertEqual(done.returncode, 0, done.stderr)
        ids = [line.partition(":")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
        self.assertEqual(ids, entry_ids() if wanted == ("all",) else list(wanted))
        self.assertIn("at a small size, which decides nothing", done.stdout)
        self.assertRegex(done.stdout, "(?m)^R10: agrees ")  # forms of one function, at every size

    def test_entries_run_at_a_small_size(self) -> None:
        """In every run those with a program and one of each measure; all with scripts/test --all."""
        self.run_small(*(["all"] if EVERY else IN_CI))

    def test_every_sweep_is_planned_at_its_small_size(self) -> None:
        """What the sweeps ask for is there: files, variants, tasks, parameters, options."""
        for entry in read_entries():
            for one in entry.measurements:
                if one.is_program:
                    self.assertIn(entry.id, IN_CI, "a program is planned by running it")
                    continue
                for small in (False, True):
                    words = ["run", one.source, *one.words(small), "--dry-run", "-o", self.folder / "rows.jsonl"]
                    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=ROOT)
                    self.assertEqual(done.returncode, 0, f"{entry.id} {one.source.name}: {done.stderr}")
