"""The report's further sections hold the figures that were planted: growth, peers, ledger, checks, state, equal cost,
shares, parts, and several files side by side."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.style import Styles
from attnbench.reports import comparison, curves, equal_cost, parts, peers, records
from attnbench.reports.__main__ import main
from attnbench.reports.book import Book
from attnbench.reports.scores import Tasks
from attnbench.reports.summary import summary

from .. import fixture
from ..faults import BUILT, PROGRAM, ROOT, InFolder
from ..reproduce import planted

PEERS = ROOT / "results" / "reference" / "peers.jsonl"
Json = dict[str, Any]


class InSections(InFolder):
    def book(self, cells: list[Json], name: str = "rows", head: Json | None = None) -> Book:
        return self.book_of(fixture.write(self.folder / f"{name}.jsonl", cells, head))

    def book_of(self, *files: Path) -> Book:
        rows = read_rows(list(files))
        return Book(rows, Styles(rows))

    def planted(self, name: str, *laws: tuple[str, Any], commit: str = "a" * 40, noise: float = 0.004) -> Path:
        """Times by a law of each variant, as rows that the program reads."""
        plant = planted.Plant(noise)
        for variant, law in laws:
            for n in (256, 512, 1024, 2048):
                plant.time(variant, n, law(n))
        plant.write(self.folder, name, Path(__file__))
        path = self.folder / f"{name}.jsonl"
        head, *rest = path.read_text().splitlines()
        told = json.loads(head)
        told["environment"]["commit"] = commit
        path.write_text("\n".join([json.dumps(told), *rest]) + "\n")
        return path


def rows_of(section: Json, table: str) -> list[Json]:
    found = next(t for t in section["tables"] if t["id"] == table)
    heads = [c["title"] for c in found["columns"]]
    return [dict(zip(heads, row, strict=True)) for row in found["rows"]]


class OneLength(InSections):
    def test_times_of_one_length_are_a_list_best_first(self) -> None:
        cells = [c for c in fixture.speed_cells(np.random.default_rng(7), ("attention",)) if c["axes"]["length"] == 4096]
        for panel in curves.speed(self.book(cells))["panels"]:
            values = [line["points"][0][0] for line in panel["lines"]]
            self.assertEqual((panel["kind"], values), ("scores", sorted(values)))
            self.assertEqual(panel["x"]["title"], "time per call at length 4k")


@BUILT
class Growth(InSections):
    def test_planted_exponents_are_found_with_their_intervals(self) -> None:
        file = self.planted("rows", ("full", lambda n: 1e-9 * n**2), ("linear", lambda n: 1e-7 * n**1.1))
        book = self.book_of(file)
        found = comparison.growth(book)
        told = {r["variant"]: r for r in rows_of(found, "fits")}
        for name, power in (("full", 2.0), ("linear", 1.1)):
            self.assertAlmostEqual(told[name]["exponent"], power, delta=told[name]["± half 95 % interval"])
            self.assertLess(told[name]["± half 95 % interval"], 0.05)
        (panel,) = found["panels"]
        labels = [book.told()["series"][line["series"]]["variant"] for line in panel["lines"]]
        self.assertEqual(labels, ["linear", "full"])
        middle, _, low, high, _ = panel["lines"][0]["points"][0]
        self.assertTrue(low < middle < high)

    def test_what_has_one_length_is_in_no_list(self) -> None:
        file = self.planted("rows", ("full", lambda n: 1e-9 * n**2), ("linear", lambda n: 1e-7 * n))
        lines = file.read_text().splitlines()
        alone = json.loads(lines[-1])
        alone["cell"], alone["variant"] = "0" * 16, {"name": "performer", "params": {}}
        file.write_text("\n".join([*lines, json.dumps(alone)]) + "\n")
        rows = rows_of(comparison.growth(self.book_of(file)), "fits")
        self.assertEqual({r["variant"] for r in rows}, {"full", "linear"})

    def test_what_is_told_of_scores_is_in_no_list(self) -> None:
        file = self.planted("rows", ("full", lambda n: 1e-9 * n**2), ("linear", lambda n: 1e-7 * n))
        asked = comparison.asked
        with mock.patch.object(comparison, "asked", lambda *words: [*asked(*words), {"measure": "agreement", "reason": "left out"}]):
            rows = rows_of(comparison.growth(self.book_of(file)), "fits")
        self.assertEqual({r["variant"] for r in rows}, {"full", "linear"})

    def test_an_exponent_has_the_name_of_its_own_file(self) -> None:
        laws = ("full", lambda n: 1e-9 * n**2), ("linear", lambda n: 1e-7 * n)
        for names in (("rows", "rows_2"), ("a/rows", "b/rows")):
            files = []
            for name, commit in zip(names, "ab"):
                (self.folder / name).parent.mkdir(exist_ok=True)
                files.append(self.planted(name, *laws, commit=commit * 40))
            book = self.book_of(*files)
            labels = [s["label"] for s in book.told()["series"]]
            found = [sorted(labels[line["series"]] for line in p["lines"]) for p in comparison.growth(book)["panels"]]
            runs = ("rows", "rows_2") if names[1] == "rows_2" else ("rows 1", "rows 2")
            self.assertEqual(found, [[f"full ({run})", f"linear ({run})"] for run in runs])

    def test_rows_that_are_not_fitted_are_told_of(self) -> None:
        good = self.planted("good", ("full", lambda n: 1e-9 * n**2), ("linear", lambda n: 1e-7 * n))
        bad = self.folder / "bad.jsonl"
        bad.write_text(good.read_text().replace("20260101T000000Z", "20260102T000000Z").replace('"time_s"', '"time_t"'))
        book = self.book_of(good)
        object.__setattr__(book.rows, "sources", (good, bad))
        self.assertRegex(comparison.growth(book)["note"], r"Not fitted: bad\.jsonl: .*\.$")


@BUILT
class Comparison(InSections):
    def test_what_became_slower_is_told_as_compare_tells_it(self) -> None:
        old = self.planted("old", ("full", lambda n: 1e-9 * n**2), ("linear", lambda n: 1e-7 * n))
        new = self.planted("new", ("full", lambda n: 1e-9 * n**2), ("linear", lambda n: 1.4e-7 * n), commit="b" * 40)
        found = comparison.comparison(self.book_of(old, new))
        changes = rows_of(found, "changes")
        slower = {r["cell"] for r in changes if r["verdict"] == "slower"}
        self.assertEqual(len(slower), 4)
        self.assertTrue(all(cell.startswith("linear") for cell in slower), slower)
        for row in changes:
            if row["cell"] in slower:
                self.assertTrue(row["low"] < 1.4 < row["high"], row)
        (panel,) = found["panels"]
        self.assertIn("4 worse", panel["context"])
        self.assertTrue(all("(slower)" in line["name"] for line in panel["lines"][:4]))
        sides = rows_of(found, "files")
        self.assertEqual([s["commit"] for s in sides], ["a" * 9, "b" * 9])
        self.assertEqual([(s["seeds"], s["cells that count"], s["ok"]) for s in sides], [("0", 8, 8)] * 2)

    def test_files_of_two_machines_are_compared_by_ratios(self) -> None:
        old = self.planted("old", ("full", lambda n: 1e-9 * n**2), ("linear", lambda n: 1e-7 * n))
        new = self.planted("new", ("full", lambda n: 2e-9 * n**2), ("linear", lambda n: 2e-7 * n))
        new.write_text(new.read_text().replace("Example CPU", "Another CPU"))
        found = comparison.comparison(self.book_of(old, new))
        self.assertIn("two machines: times are ratios to exact attention", found["note"])
        self.assertTrue(rows_of(found, "changes"))
        self.assertFalse([r for r in rows_of(found, "changes") if r["verdict"] == "slower"])

    def test_one_file_is_compared_with_nothing(self) -> None:
        self.assertIsNone(comparison.comparison(self.book_of(self.planted("old", ("full", lambda n: 1e-9 * n)))))


@BUILT
class Verb(InSections):
    def run_program(self, *words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=self.folder)

    def test_the_program_hands_its_words_to_the_script(self) -> None:
        file = fixture.write(self.folder / "-odd name.jsonl", fixture.memory_cells()[:3])
        done = self.run_program("report", "-o", "out.html", "--", file.name)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "out.html\n"))
        self.assertTrue((self.folder / "out.html").exists())
        for words, wanted in (
            (("plot", file, "--kind", "speeds", "-o", "x"), "plot: --kind speeds: expected one of overview"),
            (("report", "--history", "none"), "report: --history none: is no folder of rows files"),
            (("report", file, "-o", "report.pdf"), "report: 'report.pdf' is no name of a report"),
            (("report", "--histroy", "x"), "unknown option 'histroy'; nearest is 'history'"),
        ):
            done = self.run_program(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(wanted, done.stderr)


class Peers(InSections):
    def some(self) -> Path:
        """The run line, and comparisons of three subjects, one that was skipped among them."""
        lines = PEERS.read_text(encoding="utf-8").splitlines()
        kept = [r for r in lines[1:] if '"subject": "full"' in r][:8] + [r for r in lines if '"skipped"' in r][:1]
        file = self.folder / "peers.jsonl"
        file.write_text("\n".join([lines[0], *kept]) + "\n", encoding="utf-8")
        return file

    def test_ratios_are_those_of_the_rows(self) -> None:
        file = self.some()
        rows = [json.loads(line) for line in file.read_text().splitlines()[1:]]
        found = peers.peers([peers.read_peers(file)])
        told = rows_of(found, "comparisons")
        shown = [row for row in told if row["theirs over ours"] is not None]
        wanted = [row["metrics"]["ratio"] for row in rows if row["status"] == "ok"]
        self.assertGreater(len(wanted), 5)
        for row, ratio in zip(shown, wanted, strict=True):
            for name, key in (("theirs over ours", "median"), ("low", "low"), ("high", "high")):
                self.assertAlmostEqual(row[name], ratio[key], delta=1e-4 * ratio[key])
        self.assertIn("skipped: ", told[-1]["no ratio"])
        drawn = [line["points"][0][0] for p in found["panels"] for line in p["lines"]]
        self.assertEqual(sorted(drawn), sorted(row["theirs over ours"] for row in shown))

    def report(self, *words: object) -> tuple[int, str]:
        err = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            try:
                return main(["report", *map(str, words)]), err.getvalue()
            except SystemExit as stop:
                return int(stop.code or 0), err.getvalue()

    def test_peers_stand_beside_other_rows_or_alone(self) -> None:
        out, own = self.folder / "r.html", fixture.write(self.folder / "rows.jsonl", fixture.accuracy_cells())
        for files in ((own, self.some()), (self.some(),)):
            self.assertEqual(self.report(*files, "-o", out), (0, ""))
            text = out.read_text(encoding="utf-8")
            self.assertIn('"id":"peers"', text)
            self.assertEqual('"id":"accuracy"' in text, own in files)
            self.assertIn("peers.jsonl", text)

    def test_a_broken_peers_file_is_refused(self) -> None:
        file = self.some()
        file.write_text(file.read_text()[:-40])
        code, err = self.report(file, "-o", self.folder / "r.html")
        self.assertEqual((code, err.count("\n")), (2, 1))
        self.assertRegex(err, r"^report: .*peers\.jsonl, line 10: no JSON")


class Given(InSections):
    def test_the_ledger_ranges_over_lengths(self) -> None:
        cells = [c for c in fixture.memory_cells() if c["status"] == "ok"]
        for row in cells:
            row["ledger"] = {"parameters": 7, "flops": 3.0 * row["axes"]["length"], "precision": "float32", "threads": 2,
                             "kernel": "avx2", "loops": "avx2", "cost": "declared"}  # fmt: skip
        book = self.book(cells)
        told = rows_of(records.parity(book), "ledger")
        one = next(r for r in told if book.told()["series"][r["variant"]]["variant"] == "linear")
        self.assertEqual((one["FLOPs, least"], one["FLOPs, most"]), (3.0 * 256, 3.0 * 16384))
        self.assertEqual((one["parameters"], one["kernel"], len(one["cells"])), (7, "avx2", 7))
        self.assertIsNone(records.parity(self.book(fixture.memory_cells(), "bare")))

    def test_a_red_check_is_told(self) -> None:
        cells = [{**c, "referenced": True} for c in fixture.memory_cells() if c["status"] == "ok"]
        self.assertIn("were green", records.checks(self.book(cells, "green"))["lead"])
        cells[-1] |= {"status": "failed", "reason": "a check is red", "gate": "red", "metrics": None}
        found = records.checks(self.book(cells, "red"))
        self.assertIn("A contract check is red for 1 of 6 variants", found["lead"])
        self.assertEqual(sum("red" in r["contract checks"] for r in rows_of(found, "contract")), 1)


class Costs(InSections):
    def accuracies(self) -> list[Json]:
        """Of three windows: a state of 100 times the window, and a score of its own."""
        cells = []
        for window, test in ((16, 0.3), (32, 0.8), (64, 0.6)):
            axes = {"length": 64, "causal": False, "threads": 1, "seed": 0}
            metrics = {"metric": "accuracy", "test": test, "test_stderr": 0.01, "validation": test, "chance": 0.1,
                       "shortcuts": {"majority": 0.2}, "lift": 1.0, "steps": 5, "examples": 5, "train_s": 1.0,
                       "examples_per_s": 5.0, "parameters": 10 * window, "state_bytes": 100 * window}  # fmt: skip
            task = {"name": "mqar", "params": {}}
            cells.append(fixture.cell("accuracy", "truncated", {"window": window}, axes, task=task, metrics=metrics))
        return cells

    def test_score_against_state(self) -> None:
        book = self.book(self.accuracies())
        (panel,) = curves.state(book)["panels"]
        (line,) = panel["lines"]
        self.assertEqual([p[:2] for p in line["points"]], [[1600, 0.3], [3200, 0.8], [6400, 0.6]])
        cells = [book.told()["cells"]["id"][p[4][0]] for p in line["points"]]
        self.assertEqual(cells, [c["cell"] for c in self.accuracies()])
        low, high = line["points"][0][2:4]
        self.assertAlmostEqual(high - low, 2 * 1.96 * 0.01, delta=1e-4)

    def test_the_front_rises_only(self) -> None:
        def one(cost: float, quality: float) -> equal_cost.Candidate:
            return equal_cost.Candidate(None, quality, None, {"time": cost}, ())

        held = [one(4, 0.7), one(1, 0.3), one(2, 0.8), one(2, 0.5), one(8, 0.9)]
        steps = [(at, c.quality) for at, c in equal_cost.front(held, "time", fewer=False)]
        self.assertEqual(steps, [(1, 0.3), (2, 0.8), (8, 0.9)])
        least = [(at, c.quality) for at, c in equal_cost.front(held, "time", fewer=True)]
        self.assertEqual(least, [(1, 0.3)])

    def test_a_budget_buys_what_costs_no_more(self) -> None:
        book = self.book(fixture.memory_cells())
        named = {s.variant: s for s in book.styles.series(book.rows.cells)}
        law = {"linear": (1, 0.3), "truncated": (2, 0.8), "performer": (4, 0.85), "linformer": (7, 0.88), "full": (8, 0.9)}
        held = [equal_cost.Candidate(named[n], q, None, {"memory": c}, named[n].cells[:1]) for n, (c, q) in law.items()]
        contest = equal_cost.Contest("title", "score", False, "accuracy", held, {})
        rows = list(equal_cost._budgets(contest, "memory", held, book))
        self.assertEqual([(r[2], r[4], r[6]) for r in rows], [("2 B", 0.8, 0.9), ("4 B", 0.85, 0.9), ("8 B", 0.9, 0.9)])

    def test_scores_at_equal_cost_carry_the_marks_of_the_score_and_of_that_cost(self) -> None:
        cells = fixture.accuracy_cells()
        for c in cells:
            if c["metrics"] and c["variant"]["name"] in ("full", "linear"):
                stopped = "steps" if c["variant"]["name"] == "full" else "target"
                c["metrics"] |= {"stopped_by": stopped, "parameters": 90000 if stopped == "steps" else 50000}
        book = self.book([*cells, *fixture.speed_cells(np.random.default_rng(7), ("attention",))])
        found = equal_cost.equal_cost(book, Tasks(book))
        panel = next(p for p in found["panels"] if "image" in p["title"] and p["x"]["title"] == "learned parameters")
        marks = {book.told()["series"][line["series"]]["variant"]: line["mark"] for line in panel["lines"]}
        self.assertEqual((marks["full"], marks["linear"]), ("\u2020", ""))
        self.assertEqual(panel["context"], "\u2020 training cut off by its steps")
        timed = next(p for p in found["panels"] if "image" in p["title"] and p["x"]["title"] == "time per token")
        self.assertEqual({line["mark"] for line in timed["lines"]}, {"?", "\u2020?"})  # rows without `verified`
        row = next(r for r in rows_of(found, "best-at-cost") if "image" in r["panel"] and "parameters" in r["at no more than"])
        self.assertEqual(row["mark of exact attention"], "\u2020 training cut off by its steps")

    def test_the_best_at_a_share_of_the_cost_of_exact_attention(self) -> None:
        cells = [c for c in fixture.quick_cells() if c["measure"] != "accuracy"]
        book = self.book(cells)
        found = equal_cost.equal_cost(book, Tasks(book))
        told = [r for r in rows_of(found, "best-at-cost") if "random inputs, not causal, length 512" in r["panel"]]
        at = next(r for r in told if r["at no more than"] == "the time per call of exact attention")
        times = {(c["variant"]["name"], json.dumps(c["variant"]["params"])): c["metrics"]["time_s"]["median"] for c in cells
                 if c["measure"] == "speed" and c["status"] == "ok" and c["axes"]["length"] == 512
                 and (c["axes"]["mode"], c["axes"]["scope"], c["axes"]["causal"]) == ("forward", "attention", False)}  # fmt: skip
        most = next(t for (name, _), t in times.items() if name == "full")
        errors = {(c["variant"]["name"], json.dumps(c["variant"]["params"])): c["metrics"]["relative_error"] for c in cells
                  if c["measure"] == "fidelity" and c["axes"]["length"] == 512 and c["axes"]["input"] == "random"
                  and c["axes"]["input_scale"] == 1}  # fmt: skip
        best = min(max(errors[k], 1e-5) for k, t in times.items() if k in errors and t <= most)
        self.assertAlmostEqual(at["its score or error"], best, delta=1e-4)


class Parts(InSections):
    def test_the_share_of_attention_in_a_layer_and_in_a_model(self) -> None:
        cells = []
        for scope, seconds in (("attention", 0.010), ("layer", 0.025), ("model", 0.080)):
            row = fixture.timed("full", {"kernel": "tiled"}, fixture.shape(512, "forward", scope, False),
                                fixture.np.full(9, seconds), 512)  # fmt: skip
            row["metrics"]["time_s"] |= {"ci_low": 0.9 * seconds, "ci_high": 1.2 * seconds}
            cells.append(row)
        told = rows_of(parts.share_of_model(self.book(cells)), "shares")
        self.assertEqual([(r["of"], r["share"]) for r in told], [("encoder layer", 0.4), ("whole model", 0.25)])
        self.assertAlmostEqual(told[0]["low"], 0.4 * 0.9 / 1.2, delta=1e-4)
        self.assertAlmostEqual(told[0]["high"], 0.4 * 1.2 / 0.9, delta=1e-4)
        self.assertIsNone(parts.share_of_model(self.book(cells[:1], "alone")))

        def told_of(cells: list[Json]) -> list[str]:
            book = self.book(cells)
            return [s for s in summary(book, Tasks(book)) if "attention alone takes" in s]

        both = told_of(cells)
        self.assertEqual(len(both), 2)
        self.assertIn("At 512 tokens attention alone takes 40% (30%\u201353%) of the time of the encoder layer with `full", both[0])
        self.assertTrue(both[0].endswith("a variant that replaces attention alone does not shorten the rest."), both[0])
        self.assertIn("takes 25%", both[1])
        self.assertEqual(told_of(cells[:1]), [])

    def test_parts_add_up_and_small_ones_are_other(self) -> None:
        row = fixture.timed("full", {"kernel": "tiled"}, fixture.shape(512, "forward", "attention", False),
                            fixture.np.full(9, 0.01), 512)  # fmt: skip
        shares = {"packing": 0.1, "products": 0.6, "masks": 0.01, "softmax": 0.2, "waiting": -1e-17, "other": 0.09}
        row["metrics"]["breakdown"] = {"passes": 3, "pass_s": 0.01, "marks": 5.0, "overhead": 0.03, "shares": shares}
        found = parts.parts_of_pass(self.book([row]))
        (told,) = rows_of(found, "parts-of-pass")
        self.assertEqual([k for k in told][3:7], ["products", "softmax", "packing", "other"])
        self.assertAlmostEqual(told["other"], 0.1, delta=1e-6)
        (line,) = found["panels"][0]["lines"]
        self.assertAlmostEqual(sum(line["parts"]), 1, delta=1e-6)
