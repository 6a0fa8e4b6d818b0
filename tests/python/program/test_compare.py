"""`compare` and `table` on rows of the real program, and on copies of them with planted changes."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from ..faults import BUILT, PROGRAM, InFolder
from .test_cli import CACHE, attnbench, rows_of

SWEEP = (
    *("run", "-v", "full", "-v", "linear", "-t", "majority", "--measure", "speed,memory,accuracy,fidelity"),
    *("--length", "64", "--heads", "1", "--head-dim", "16", "--repetitions", "3", "--input-scale", "1"),
    *("--train", "steps=4,eval_every=4,width=8,heads=1,layers=1,batch=8,test_examples=200,validation_examples=8"),
)
HOSTILE = 'a<b>&"\'|_%{}\\#$~^\n\u00b1'


def changed(rows, change):
    """A deep copy of `rows`, each line as `change` leaves it."""
    copies = json.loads(json.dumps(rows))
    for row in copies:
        change(row)
    return copies


def calm(row, factor=1.0, noisy=()):
    """Times that scatter by 1 %, whatever the machine did while the sweep ran."""
    if row.get("measure") == "speed":
        row["samples"] = [factor * 1e-5 * scatter for scatter in (0.99, 1.0, 1.01)]
        row.pop("noisy", None)
        if noisy:
            row["noisy"] = list(noisy)


def timed(row, seconds):
    """With this median."""
    if row.get("measure") == "speed":
        scale = seconds / row["metrics"]["time_s"]["median"]
        row["metrics"]["time_s"] |= {k: v * scale for k, v in row["metrics"]["time_s"].items() if k != "n"}
        row["samples"] = [s * scale for s in row["samples"]]


def slower(row):
    calm(row, 10)


def elsewhere(row):
    if row["kind"] == "run":
        row["environment"]["cpu_model"] = "Another CPU"


@BUILT
class Comparisons(InFolder):
    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.runs = Path(held.name)
        cls.printed = {}
        for name in "ab":
            done = attnbench(*SWEEP, "-o", f"{name}.jsonl", cwd=cls.runs, cache=CACHE.name)
            assert done.returncode == 0, done.stderr
            cls.printed[name] = done.stdout
        cls.rows = rows_of(cls.runs / "a.jsonl")

    def setUp(self):
        super().setUp()
        self.a, self.b = self.runs / "a.jsonl", self.runs / "b.jsonl"

    def write(self, name, change, keep=lambda row: True):
        path = self.folder / name
        rows = changed([row for row in self.rows if row["kind"] == "run" or keep(row)], change)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    def compared(self, code, *arguments):
        done = attnbench("compare", *arguments, "--format", "json", cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def verdicts(self, comparison):
        return {(pair["measure"], pair["verdict"]) for pair in comparison["pairs"]}

    def refused(self, code, expected, *arguments):
        with self.subTest(arguments=arguments):
            done = attnbench(*arguments, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertRegex(done.stderr, expected)

    def test_a_file_differs_in_nothing_from_itself(self):
        found = self.compared(0, self.a, self.a)
        self.assertEqual({pair["measure"] for pair in found["pairs"]}, {"speed", "memory", "accuracy", "fidelity"})
        self.assertEqual({v for m, v in self.verdicts(found) if m != "speed"}, {"same"})
        self.assertLessEqual({v for _, v in self.verdicts(found)}, {"same", "undecided"})
        self.assertEqual((found["left_out"], found["only_in_old"], found["only_in_new"]), ([], 0, 0))

    def test_two_runs_of_one_program_agree(self):
        found = self.compared(0, self.a, self.b, "--measure", "memory,accuracy,fidelity")
        self.assertEqual({v for _, v in self.verdicts(found)}, {"same"})
        examples = [pair["basis"] for pair in found["pairs"] if pair["measure"] == "accuracy"]
        self.assertEqual(examples, ["200 examples of one seed"] * 2)
        self.compared(0, self.a, self.b, "--threshold", "99%")

    def test_rows_say_which_examples_were_right(self):
        for row in self.rows:
            if row.get("measure") != "accuracy":
                continue
            held = row["metrics"]["by_example"]
            self.assertEqual((held["count"], held["levels"], len(held["scores"])), (200, 2, 50))
            self.assertAlmostEqual(int(held["scores"], 16).bit_count() / 200, row["metrics"]["test"])

    def test_a_slower_copy_is_a_regression(self):
        base, slow = self.write("base.jsonl", calm), self.write("slow.jsonl", slower)
        found = self.compared(3, base, slow)
        self.assertIn(("speed", "worse"), self.verdicts(found))
        self.assertIn(("speed", "better"), self.verdicts(self.compared(0, slow, base)))
        for pair in found["pairs"]:
            if pair["measure"] == "speed":
                self.assertAlmostEqual(pair["value"], 10, places=6)

    def disturbed(self, factor, fell):
        """Times `factor` times as long; the witness of two visits in three reached the share `fell` of its best."""

        def change(row):
            calm(row, factor, ["witness"])
            if row.get("measure") == "speed":
                row["witness"] = {"flops_per_s": [1e9, fell * 1e9, fell * 1e9], "copy_bytes_per_s": [1e9] * 3}

        return change

    def test_a_change_that_no_disturbance_explains_is_a_regression(self):
        base = self.write("base.jsonl", self.disturbed(1, 1))
        slow = self.write("slow.jsonl", self.disturbed(14.9, 0.4))
        found = self.compared(3, base, slow, "--measure", "speed", "--strict")
        self.assertEqual(self.verdicts(found), {("speed", "worse")})
        for pair in found["pairs"]:
            self.assertRegex(pair["basis"], r"3 and 3 visits, disturbed, interval widened by 2\.4\d x")
            self.assertAlmostEqual(pair["widened"], 0.99 / (0.4 * 1.01), places=6)
        text = attnbench("compare", base, slow, "--measure", "speed").stdout
        self.assertIn("2 times were judged with the interval widened", text)

    def test_a_change_that_a_disturbance_may_explain_is_undecided(self):
        base = self.write("base.jsonl", self.disturbed(1, 1))
        slow = self.write("slow.jsonl", self.disturbed(2, 0.4))
        for code, more in ((0, ()), (7, ("--strict",))):
            found = self.compared(code, base, slow, "--measure", "speed", *more)
            self.assertEqual(self.verdicts(found), {("speed", "undecided")})
        same = self.compared(0, base, base, "--measure", "speed", "--strict", "--threshold", "5%")
        self.assertEqual(self.verdicts(same), {("speed", "same")})

    def test_more_memory_and_lower_scores_are_regressions(self):
        def larger(row):
            if row.get("measure") == "memory":
                row["metrics"]["peak_bytes"] = row["metrics"]["peak_bytes"] * 11 // 10

        def wrong(row):
            if row.get("measure") == "accuracy":
                row["metrics"]["test"] = 0
                row["metrics"]["by_example"]["scores"] = "0" * 50

        self.assertIn(("memory", "worse"), self.verdicts(self.compared(3, self.a, self.write("m.jsonl", larger))))
        self.compared(0, self.a, self.folder / "m.jsonl", "--threshold", "0.11")
        self.compared(0, self.folder / "m.jsonl", self.a)
        self.assertIn(("accuracy", "worse"), self.verdicts(self.compared(3, self.a, self.write("w.jsonl", wrong))))

    def test_rows_without_scores_of_examples_are_undecided(self):
        old = self.write("old.jsonl", lambda row: (row.get("metrics") or {}).pop("by_example", None))
        found = self.compared(0, old, self.a, "--measure", "accuracy")
        self.assertEqual(self.verdicts(found), {("accuracy", "undecided")})

    def test_times_of_two_machines_are_refused(self):
        other = self.write("other.jsonl", elsewhere)
        self.refused(2, r"two machines \(cpu_model: .*Another CPU.*--across-machines", "compare", self.a, other)
        self.compared(0, self.a, other, "--measure", "memory")
        found = self.compared(0, self.a, other, "--across-machines", "--measure", "speed")
        self.assertEqual([(p["unit"], p["label"].split()[0]) for p in found["pairs"]], [("ratio to full", "linear")])

        def built_otherwise(row):
            if row["kind"] == "run":
                row["environment"]["flags"] = "-O0"

        build = self.write("build.jsonl", built_otherwise)
        self.refused(2, r"two builds \(flags: .*--across-builds", "compare", self.a, build)
        self.compared(0, self.a, build, "--across-builds")

    def test_cells_without_a_figure_are_counted(self):
        def timeout(row):
            if row.get("measure") == "memory":
                row.update(status="timeout", reason="600 s", metrics=None, samples=None)
            if row.get("measure") == "fidelity":
                row["axes"]["length"] = 65

        found = self.compared(0, self.a, self.write("t.jsonl", timeout))
        self.assertEqual([p["reason"] for p in found["left_out"]], ["NEW: timeout: 600 s"] * 2)
        fidelity = sum(row.get("measure") == "fidelity" for row in self.rows)
        self.assertEqual((found["only_in_old"], found["only_in_new"]), (fidelity, fidelity))
        shown = attnbench("compare", self.a, self.folder / "t.jsonl").stdout
        self.assertIn("memory not compared: 2: NEW: timeout: 600 s", shown)
        self.assertIn(f"only in OLD: {fidelity}", shown)

    def test_every_format_is_what_it_says(self):
        def rename(row):
            slower(row)
            if row.get("variant", {}).get("name") == "linear":
                row["variant"]["params"]["x"] = HOSTILE

        slow = self.write("slow.jsonl", rename)

        def rename_only(row):
            calm(row)
            if row["kind"] == "cell" and row["variant"]["name"] == "linear":
                row["variant"]["params"]["x"] = HOSTILE

        base = self.write("base.jsonl", rename_only)
        texts = {}
        for form in ("table", "md", "csv", "json", "latex", "junit"):
            done = attnbench("compare", base, slow, "--format", form)
            self.assertEqual(done.returncode, 3, done.stderr)
            texts[form] = done.stdout
        pairs = json.loads(texts["json"])["pairs"]
        lines = list(csv.DictReader(io.StringIO(texts["csv"])))
        self.assertEqual([line["verdict"] for line in lines], [pair["verdict"] for pair in pairs])
        suite = ElementTree.fromstring(texts["junit"]).find("testsuite")
        self.assertEqual(int(suite.get("tests")), len(pairs))
        failed = [case for case in suite if case.find("failure") is not None]
        self.assertEqual(len(failed), sum(pair["verdict"] == "worse" for pair in pairs))
        self.assertTrue(any("a<b>&\"'|_%" in case.get("name") for case in suite))
        for line in texts["md"].splitlines():
            if line.startswith("| "):
                self.assertTrue(line.endswith(" |"), line)
                self.assertIn(line.replace("\\|", "").count("|"), (7, 9), line)
        self.assertIn("\\_\\%\\{\\}\\textbackslash{}", texts["latex"])
        self.assertEqual(texts["latex"].count("\\begin{tabular}"), texts["latex"].count("\\bottomrule"))

    def test_wrong_use_is_one_line(self):
        for value in ("5x", "-1%", "100%", "1", "nan", "inf", "%"):
            self.refused(2, "--threshold .* is not valid; expected a share", "compare", self.a, self.b, f"--threshold={value}")
        self.refused(2, "unknown measure 'tempo'", "compare", self.a, self.b, "--measure", "speed,tempo")
        self.refused(2, "--format xml is not valid", "compare", self.a, self.b, "--format", "xml")
        self.refused(2, "two rows files, not 1", "compare", self.a)
        self.refused(2, "unexpected argument", "compare", self.a, self.b, self.b)
        self.refused(2, "needs a rows file", "table")
        self.refused(2, "--format junit is not valid", "table", self.a, "--format", "junit")
        self.refused(4, "no cell in common", "compare", self.a, self.write("run.jsonl", lambda row: row.get("axes", {}).update(length=77)))
        torn = self.folder / "torn.jsonl"
        torn.write_text(self.a.read_text()[:-9])
        damaged = self.folder / "damaged.jsonl"
        damaged.write_text(self.a.read_text().replace('"measure":"memory"', '"measure":"memorx"'))
        for verb in (["compare", self.a], ["table"]):
            self.refused(6, "absent.jsonl", *verb, "absent.jsonl")
            self.refused(2, "torn.jsonl:[0-9]+: torn line", *verb, torn)
            self.refused(2, "damaged.jsonl:[0-9]+: ", *verb, damaged)

    def test_a_report_goes_into_a_file_but_never_over_rows(self):
        done = attnbench("compare", self.a, self.a, "--format", "junit", "-o", "junit.xml", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        ElementTree.parse(self.folder / "junit.xml")
        copy = self.write("copy.jsonl", lambda row: None)
        before = copy.read_text()
        self.refused(2, "is a rows file that is read", "compare", self.a, copy, "-o", copy)
        self.refused(2, "is a rows file that is read", "table", copy, "-o", copy)
        self.assertEqual(copy.read_text(), before)
        self.refused(6, "/proc/none", "table", copy, "-o", "/proc/none/table.md")

    def test_a_reader_that_left_ends_it(self):
        for verb in (["compare", self.a, self.a], ["table", self.a]):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([PROGRAM, *verb], stdout=writer, stderr=subprocess.PIPE, text=True)
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (-13, ""), "ended by SIGPIPE")

    def test_a_table_is_what_run_printed(self):
        self.maxDiff = None
        done = attnbench("table", self.a)
        self.assertEqual((done.returncode, done.stdout), (0, self.printed["a"]))
        cells = [row for row in self.rows if row["kind"] == "cell"]
        self.assertEqual(len(json.loads(attnbench("table", self.a, "--format", "json").stdout)), len(cells))
        self.assertEqual(len(list(csv.reader(io.StringIO(attnbench("table", self.a, "--format", "csv").stdout)))), 1 + len(cells))
        self.assertIn("|---|", attnbench("table", self.a, "--format", "md").stdout)
        latex = attnbench("table", self.a, "--format", "latex", "--ledger").stdout
        self.assertIn("parity ledger", latex)
        self.assertEqual(latex.count("\\begin{table}"), latex.count("\\end{table}"))
        self.assertNotIn("±", latex)

    def test_a_table_lists_variants_by_time(self):
        for slow, order in (("full", ["linear", "full"]), ("linear", ["full", "linear"])):
            file = self.write(f"slow-{slow}.jsonl", lambda row: timed(row, 2e-5 if row.get("variant", {}).get("name") == slow else 1e-5))
            done = attnbench("table", file, "--sort", "time")
            self.assertEqual(done.returncode, 0, done.stderr)
            part = done.stdout[done.stdout.index("time in ms"):].splitlines()
            self.assertEqual([line.split()[0] for line in part if line.split()[:1] and line.split()[0] in order][:2], order)
        self.refused(2, "--sort speed is not valid; expected one of time, memory", "table", self.a, "--sort", "speed")

    def test_scores_of_another_machine_stand_in_the_same_table(self):
        timed_here = self.write("here.jsonl", lambda row: None, lambda row: row["measure"] != "accuracy")
        trained = self.write("trained.jsonl", elsewhere, lambda row: row["measure"] == "accuracy")
        whole = attnbench("table", self.a).stdout
        for files in ((timed_here, trained), (trained, timed_here)):
            self.assertEqual(attnbench("table", *files).stdout, whole)
        both = attnbench("table", self.a, trained)
        self.assertIn("machine or build 2: Another CPU", both.stdout, "what both trained is told apart")

    def test_two_machines_never_share_a_table(self):
        other = self.write("other.jsonl", elsewhere)
        done = attnbench("table", self.a, other)
        self.assertEqual(done.returncode, 0, done.stderr)
        titles = [line for line in done.stdout.splitlines() if "machine or build" in line]
        self.assertEqual(sum("build 1: " in t for t in titles), sum("build 2: Another CPU" in t for t in titles))
        self.assertGreater(len(titles), 7)
        self.refused(2, "is in '.*a.jsonl' and in '.*b.jsonl'.*attnbench compare", "table", self.a, self.b)
