"""What verbs print: `list` of the catalogues and the machine, `fit` on rows of the real program, `run
--breakdown` and its table, and what is not declared is called measured (tables, ledger, `check --derive`)."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import unittest
from pathlib import Path

from attnbench.plots.rows.agreement import agreements
from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.scores import task_groups

from ..faults import BUILT, PROGRAM, ROOT, SHAPE, FaultCase, InFolder, read_terminal
from ..plots.probe_rows import cell
from .test_cli import attnbench, rows_of


@BUILT
class Listed(unittest.TestCase):
    def test_variants_are_found_by_family_trait_and_year(self):
        def found(*options):
            return json.loads(attnbench("list", "--json", *options).stdout)["variants"]

        every = json.loads(attnbench("list", "--json").stdout)["variants"]
        self.assertEqual([v["name"] for v in every if v["year"] is None], [])
        gated = found("--family", "gated", "--family", "control")
        self.assertEqual({v["family"] for v in gated}, {"gated", "control"})
        self.assertEqual(len(gated), sum(v["family"] in ("gated", "control") for v in every))
        both = {v["name"] for v in every if v["traits"]["cross"] and v["traits"]["decode"]}
        self.assertEqual({v["name"] for v in found("--trait", "cross,decode")}, both)
        self.assertEqual({v["name"] for v in found("--trait", "cross", "--trait", "decode")}, both)
        of_2020 = {v["name"] for v in found("--year", "2020")}
        self.assertIn("linformer", of_2020)  # whose identifier has other digits, 2006.04768
        self.assertEqual(of_2020, {v["name"] for v in every if v["year"] == 2020})
        self.assertEqual(len(found("--year", "1900:2999")), len(every))
        self.assertEqual([v["name"] for v in found("--trait", "distance_bias")], ["full", "truncated"])
        self.assertEqual([v["name"] for v in found("--trait", "mimicry")], ["dsa", "hedgehog"])
        head = (ROOT / "README.md").read_text(encoding="utf-8").partition("![")[0]  # its first screen names those since 2024
        since = re.findall(r"`(\w+)`", head.partition("Those since 2024:")[2].partition("It answers")[0])
        self.assertEqual(set(since), {v["name"] for v in found("--year", "2024:2999")})
        none = attnbench("list", "--family", "exact", "--trait", "gated")
        self.assertEqual((none.returncode, none.stdout), (4, ""))
        self.assertIn("no variant", none.stderr)

    def test_list_and_info_of_everything(self):
        listed = json.loads(attnbench("list", "--json").stdout)
        names = [v["name"] for v in listed["variants"]]
        self.assertEqual(names[:5], ["full", "truncated", "linformer", "performer", "linear"])
        self.assertIn("quick", [p["name"] for p in listed["profiles"]])
        # Each task's sheet as text is on results/tasks.md, which test_pages.py makes again.
        for name in [*names, "mqar"]:
            self.assertEqual(attnbench("info", name).returncode, 0, name)
        tasks = {t["name"]: [p["name"] for p in t["presets"]] for t in listed["tasks"]}
        sizes = {name: "preset=small," for name, presets in tasks.items() if "small" in presets}
        sizes |= {"pathx": "distractors=0,contour=6,", "frames": "length=32,", "retrieval": "length=128,"}
        for name in dict.fromkeys([*names, *tasks]):
            # Shortcuts are fitted on the training examples: on all of a task of full size they take up to a second.
            both = name in names and name in tasks
            spec = f"{name}[{sizes.get(name, '')}train_examples=16]" if name in tasks and not both else name
            shown = json.loads(attnbench("info", spec, "--json").stdout)
            self.assertEqual(shown["name"], name)
            self.assertIn("params", shown)
            self.assertEqual("traits" in shown, name in names)  # of both, the variant's
            if both:
                self.assertEqual(shown["task"]["name"], name)
                self.assertIn("chance", shown["task"])
        for what in ("variants", "tasks", "profiles"):
            self.assertTrue(attnbench("list", what).stdout.startswith(what))

    def test_each_entry_is_one_line_that_a_terminal_cuts(self):
        whole = attnbench("list", "variants")
        lines = [line for line in whole.stdout.splitlines() if line.startswith("  ")]
        names = [v["name"] for v in json.loads(attnbench("list", "--json").stdout)["variants"]]
        self.assertEqual(sorted(line.split()[0] for line in lines), sorted(names))
        self.assertTrue(all("; parameters: " in line for line in lines))
        self.assertEqual(whole.stderr, "")

        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        run = subprocess.Popen([PROGRAM, "list", "variants"], stdout=slave, stderr=subprocess.PIPE)
        os.close(slave)
        shown = read_terminal(master)
        said = run.communicate(timeout=60)[1].decode()
        cut = [line for line in shown.decode().splitlines() if line.startswith("  ")]
        self.assertEqual(len(cut), len(lines))
        for short, line in zip(cut, lines, strict=True):
            self.assertLessEqual(len(short), 60)
            self.assertTrue(line.startswith(short.removesuffix("…")), short)
        self.assertIn("cut to this terminal's width; attnbench info NAME", said)


@BUILT
class ListMachine(FaultCase):
    def test_tells_the_machine_and_how_it_computes(self) -> None:
        done = self.run_program("list", "machine", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        machine = json.loads(done.stdout)["machine"]
        self.assertEqual(machine["allowed_cpus"], sorted(os.sched_getaffinity(0)))
        self.assertEqual(machine["page_bytes"], os.sysconf("SC_PAGE_SIZE"))
        self.assertIn(machine["kernel_instruction_set"], machine["instruction_sets"])
        self.assertEqual(list(machine["cache_bytes"]), ["L1d", "L2", "L3"])
        for part in ("product", "softmax_forward"):
            self.assertTrue(all(number > 0 for number in machine[part].values()), machine[part])
        told = self.run_program("list", "machine")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        product = machine["product"]
        tile = f"{product['tile_rows']} rows × {product['tile_vectors']} vectors × {product['lanes']} lanes"
        self.assertIn(tile, told.stdout)

    def test_is_listed_by_name_alone(self) -> None:
        catalogue = json.loads(self.run_program("list", "--json").stdout)
        self.assertEqual(set(catalogue), {"variants", "tasks", "profiles", "shapes"})
        wrong = self.run_program("list", "machines")
        self.assertEqual((wrong.returncode, wrong.stderr.count("\n")), (2, 1))
        self.assertIn("'machines'", wrong.stderr)
        shown = self.run_program("list", "machine", "--show", "quick")
        self.assertEqual((shown.returncode, shown.stderr.count("\n")), (2, 1))


VARIANTS = ["-v", "full[kernel=materialized]", "-v", "linear"]
SWEEP = ["run", *VARIANTS, "--measure", "memory", "--length", "256:4096:*2", *SHAPE, "-q"]


@BUILT
class Fit(FaultCase):
    def fit(self, *words: str):
        return self.run_program("fit", *words)

    def test_memory_of_scores_is_quadratic(self) -> None:
        self.assertEqual(self.run_program(*SWEEP, "-o", "rows.jsonl").returncode, 0)
        done = self.fit("rows.jsonl", "--format", "json", "--at", "65536")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        full, linear = json.loads(done.stdout)
        self.assertAlmostEqual(full["exponent"], 2, delta=0.1)
        self.assertAlmostEqual(full["declared_exponent"], 2, delta=0.1)
        self.assertLess(linear["exponent"], 1.2)
        self.assertEqual(full["extrapolated"]["length"], 65536)
        table = self.fit("rows.jsonl")
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        self.assertIn("held back", table.stdout)
        lines = list(csv.DictReader(io.StringIO(self.fit("rows.jsonl", "--format", "csv").stdout)))
        self.assertEqual([line["variant"] for line in lines], [full["variant"], "linear"])
        self.assertIn(r"\toprule", self.fit("rows.jsonl", "--format", "latex").stdout)
        few = self.fit("rows.jsonl", "--from", "2048")
        self.assertIn("2 lengths; a fit needs 3", few.stdout)
        none = self.fit("rows.jsonl", "--measure", "speed")
        self.assertEqual((none.returncode, none.stdout, none.stderr.count("\n")), (4, "", 1))

    def test_tasks_that_order_variants_as_language_does(self) -> None:
        """By the report's code too. Of nine variants one was cut off on one task."""
        self.assertEqual(self.run_program(*SWEEP, "-o", "rows.jsonl").returncode, 0)
        head, *grown = (self.folder / "rows.jsonl").read_text().splitlines()
        names = ("full", "linear", "performer", "linformer", "local", "fnet", "mean", "reformer", "truncated")
        bits = {"metric": "bits_per_token", "chance": 8.0, "shortcuts": {"n-gram of 2": 4.0}}
        scored = [cell(n, "copy", 0.95 - 0.05 * i, params={}, ended_by="steps" if i == 8 else "plateau") for i, n in enumerate(names)]
        scored += [cell(n, "lm", 2 + 0.1 * i + 0.35 * (i == 4), params={}, ended_by="plateau", **bits) for i, n in enumerate(names)]
        lines = [json.dumps(row | {"run": json.loads(head)["run"]}) for row in scored]
        (self.folder / "scores.jsonl").write_text("\n".join([head, *grown, *lines]) + "\n")
        (expected,) = agreements(task_groups(read_rows([self.folder / "scores.jsonl"]).of("accuracy")))
        found, left_out = (o for o in json.loads(self.fit("scores.jsonl", "--format", "json").stdout) if o["measure"] == "agreement")
        self.assertEqual((found["variants"], found["tau"]), (expected.variants, expected.tau))
        self.assertEqual(expected.variants, 8)
        for end, value in zip(("low", "high"), expected.interval, strict=True):
            self.assertAlmostEqual(found["interval"][end], value, places=9)
        self.assertIn(f"cut off by their steps (\u2020): {names[8]} on copy", left_out["reason"])
        table = self.fit("scores.jsonl").stdout
        self.assertRegex(table, rf" 8 +{expected.tau:.2f} +{expected.interval_text}")
        self.assertIn("held back", table, "growth stands beside it")
        self.assertEqual(self.fit("scores.jsonl", "--measure", "memory").stdout, self.fit("rows.jsonl", "--measure", "memory").stdout)
        self.assertEqual(self.fit("rows.jsonl").stdout.count("tau"), 0, "no task is scored in bits")

    def test_wrong_use_is_one_line(self) -> None:
        for words, code in (
            ([], 2),
            (["missing.jsonl"], 6),
            (["x", "--from", "9", "--to", "8"], 2),
            (["x", "--at", "0"], 2),
            (["x", "--format", "pdf"], 2),
        ):
            done = self.fit(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), words)


TINY = ["--length", "64", "--heads", "1", "--head-dim", "8"]
FEW = ["--repetitions", "3"]


class Breakdown(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.rows = self.folder / "rows.jsonl"

    def run_verb(self, *arguments: str):
        return attnbench("run", *TINY, *arguments, "-o", str(self.rows), cwd=self.folder)

    def cells(self) -> list[dict]:
        lines = [json.loads(line) for line in self.rows.read_text().splitlines()]
        return [line for line in lines if line["kind"] == "cell"]

    def test_shares_of_a_pass_add_up(self) -> None:
        done = self.run_verb(*FEW, "-v", "full", "-v", "performer", "--breakdown", "--mode", "forward,train")
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = self.cells()
        self.assertEqual(len(cells), 4)
        for cell in cells:
            breakdown = cell["metrics"]["breakdown"]
            self.assertAlmostEqual(sum(breakdown["shares"].values()), 1, places=9)
            self.assertGreater(breakdown["shares"]["products"], 0)
            self.assertGreaterEqual(breakdown["passes"], 2)
            self.assertGreater(breakdown["marks"], 0)
            has_features = "features" in breakdown["shares"]
            self.assertEqual(has_features, cell["variant"]["name"] == "performer")
        self.assertEqual(done.stdout.count("where the time of a pass goes"), 2, done.stdout)
        shown = attnbench("table", str(self.rows), cwd=self.folder)
        self.assertIn("where the time of a pass goes", shown.stdout)

    def test_rows_of_before_keep_what_they_have(self) -> None:
        self.assertEqual(self.run_verb(*FEW, "-v", "full").returncode, 0)
        self.assertNotIn("breakdown", self.cells()[0]["metrics"])
        done = self.run_verb(*FEW, "-v", "full", "--breakdown")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 speed rows of the file were measured without --breakdown; --force", done.stderr)
        done = self.run_verb(*FEW, "-v", "full", "--breakdown", "--force")
        self.assertIn("breakdown", self.cells()[0]["metrics"])
        self.assertNotIn("without --breakdown", done.stderr)

    def test_other_measures_have_none(self) -> None:
        done = self.run_verb("-v", "full", "--breakdown", "--measure", "memory,fidelity")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(
            done.stderr,
            "--breakdown is about speed, and this sweep has fidelity and memory cells; say --measure speed",
        )
        self.assertFalse(self.rows.exists())


UNDECLARED = "run -v full -v linear --measure speed,memory --length 64,128 --heads 1 --head-dim 16 --repetitions 3".split()


@BUILT
class Undeclared(unittest.TestCase):
    def test_tables_call_measured_what_is_not_declared(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.jsonl"
            done = attnbench(*UNDECLARED, "-o", str(path), cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("measured", done.stdout)
            rows = rows_of(path)
            for row in rows[1:]:
                self.assertEqual(row["ledger"]["cost"], "declared")
                if row["variant"]["name"] == "linear":
                    self._undeclare(row)
            path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
            # Nothing is left to measure.
            again = attnbench(*UNDECLARED, "-o", str(path), "--ledger", cwd=folder)
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertIn("FLOPs of linear are measured: no cost is declared", again.stdout)
            ledger = again.stdout[again.stdout.index("parity ledger") :].splitlines()
            told = {name: [x for x in ledger if f" {name} " in x and "speed" in x] for name in ("full", "linear")}
            self.assertIn("FLOP measured", told["linear"][0])
            self.assertNotIn("measured", told["full"][0])

    @staticmethod
    def _undeclare(row):
        row["ledger"]["cost"] = "measured"
        if row["measure"] == "speed":
            row["metrics"]["bytes"] = row["metrics"]["roofline_s"] = None
        else:
            row["metrics"]["declared_extra_bytes"] = row["metrics"]["state_bytes"] = None

    def test_derive_prints_a_do_cost(self):
        done = attnbench("check", "linear", "--derive")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Cost do_cost(const AttentionShape& s) const override {", done.stdout)
        self.assertIn(".flops = ", done.stdout)
        self.assertIn("heads * d * d", done.stdout)

    def test_derive_refuses_what_it_cannot_do_in_one_line(self):
        for arguments, said in (
            ([], "needs the name of a variant"),
            (["listops"], "listops"),
            (["linear", "--quick"], "--quick"),
            (["linaer"], "linear"),
        ):
            done = attnbench("check", *arguments, "--derive")
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(said, done.stderr)
