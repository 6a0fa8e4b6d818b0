"""The report's fidelity (means over seeds, what is told of inputs that models read) and losses; its first
table; a history of runs, with a planted step found at its commit; marks of variants in Python."""

from __future__ import annotations

import html
import json
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from attnbench.plots.gallery import draw_all
from attnbench.plots.kinds.fidelity import fidelity as pictures
from attnbench.plots.layout.caption import caption
from attnbench.plots.rows.read import PYTHON, PYTHON_NOTE, Rows, RowsError, read_rows
from attnbench.plots.rows.style import Styles
from attnbench.reports import exactness
from attnbench.reports.book import Book
from attnbench.reports.first_table import first_table
from attnbench.reports.history import LEVEL, history, read_history, steps
from attnbench.reports.scores import Tasks
from attnbench.reports.summary import summary

from .. import fixture
from ..faults import ROOT, InFolder
from .test_report import InReport, crossing_cells
from .test_report_sections import InSections, rows_of

ERRORS = {"full": (1e-7, 1e-7, 1e-7), "linear": (0.5, 0.6, 0.7), "truncated": (0.2, 0.3, 0.4)}


def cells(kind: str, scale: float = 1.0, **more: Any) -> list[dict[str, Any]]:
    """A cell for each variant of ERRORS and each of three seeds."""
    out = []
    for name, errors in ERRORS.items():
        for seed, error in enumerate(errors):
            axes = {"length": 64, "batch": 8, "heads": 2, "head_dim": 32, "causal": True, "threads": 1, "seed": seed}
            axes |= {"input": kind, "input_scale": scale}
            metrics = {"relative_error": error, "cosine": 0.5, "weights_kl": None, **more}
            task = {"name": "mqar", "params": {"length": 64}} if kind in exactness.MODELS else None
            out.append(fixture.cell("fidelity", name, dict(fixture.VARIANTS)[name], axes, task=task, metrics=metrics))
    return out


def layered(kept: float) -> dict[str, Any]:
    layer = {"relative_error": 0.25, "weights_kl": None, "mass_kept": kept}
    return {"mass_kept": kept, "keys_read": 12.5, "weights_rank": 8.0, "layers": [{**layer, "effective_rank": 40.0}, {**layer, "effective_rank": 20.0}]}


class Fidelity(InSections):
    def test_a_point_is_the_mean_over_seeds_with_its_interval(self) -> None:
        book = self.book([*cells("random"), *cells("random", 2.0)])
        (panel,) = exactness.fidelity(book)["panels"]
        lines = {book.told()["series"][line["series"]]["variant"]: line["points"] for line in panel["lines"]}
        self.assertEqual([p[:2] for p in lines["linear"]], [[1, 0.6], [2, 0.6]])
        low, high = lines["linear"][0][2:4]
        self.assertAlmostEqual((high - low) / 2, 4.3027 * 0.1 / 3**0.5, delta=1e-4)  # Student's t, two degrees
        self.assertEqual(len(lines["linear"][0][4]), 3)
        self.assertIsNone(exactness.captured(book))

    def test_a_point_of_the_picture_is_that_mean_too(self) -> None:
        rows = self.book([*cells("random"), *cells("random", 2.0)]).rows
        (picture,) = pictures(rows, Styles(rows))
        self.addCleanup(plt.close, picture.figure)
        for axes in picture.figure.axes[:2]:  # against cost, and against scale
            heights = [round(float(y), 6) for line in axes.lines for y in line.get_ydata()]
            self.assertIn(0.6, heights)
            self.assertNotIn(0.5, heights)

    def test_precisions_share_no_panel(self) -> None:
        halved = [{**c, "axes": {**c["axes"], "dtype": "bfloat16"}, "cell": c["cell"][::-1]} for c in cells("random")]
        found = exactness.fidelity(self.book([*cells("random"), *halved]))
        self.assertEqual([p["title"].endswith("bfloat16") for p in found["panels"]], [False, True])

    def test_what_models_read_has_a_table_and_lists_of_what_is_not_exact(self) -> None:
        rows = [*cells("initial", **layered(0.5)), *cells("trained", model_test=0.9, **layered(0.5))]
        book = self.book(rows)
        self.assertIsNone(exactness.fidelity(book))
        found = exactness.captured(book)
        told = rows_of(found, "captured")
        self.assertEqual(len(told), 6)
        trained = next(r for r in told if r["inputs"] == "trained model" and r["relative error"] == 0.3)
        self.assertEqual((trained["effective rank by layer"], trained["error by layer"]), ("40, 20", "0.25, 0.25"))
        self.assertEqual((trained["seeds"], trained["score of the model"], trained["weight kept"]), (3, 0.9, 0.5))
        self.assertEqual((trained["keys read"], trained["rank of weights"]), (12.5, 8))
        titles = [p["title"].partition(":")[0] for p in found["panels"]]
        self.assertEqual(titles, ["relative error"] * 2 + ["weight kept"] * 2)
        self.assertEqual([len(p["lines"]) for p in found["panels"]], [2, 2, 3, 3])  # full is exact
        whole = exactness.captured(self.book(cells("trained", **layered(1.0)), "whole"))
        self.assertEqual([p["title"].partition(":")[0] for p in whole["panels"]], ["relative error"])

    def test_the_summary_tells_the_nearest_on_trained_models(self) -> None:
        book: Book = self.book(cells("trained", **layered(0.5)))
        told = next(s for s in summary(book, Tasks(book)) if "trained on `mqar`" in s)
        self.assertIn("`truncated` is nearest to exact attention on what a model trained on `mqar` reads (causal), "
                      "with a relative error of 0.3 \u00b1 0.2, and `linear` farthest, with 0.6 \u00b1 0.2 (means over 3 seeds)", told)
        self.assertTrue(told.endswith("is 40, 20 by layer."), told)


class Losses(InReport):
    def test_scores_stand_beside_exact_attention_and_the_shortcut(self) -> None:
        told = self.sentences([*crossing_cells(1, 300), *fixture.accuracy_cells()])
        clause = next(s for s in told if s.startswith("`linear` is faster"))
        worse, every, task, own, exact = re.search(
            r"; it scores less than exact attention, beyond both intervals, on (\d) of (\d) tasks, most on `(\w+)`: "
            r"([\d.]+) \u00b1 [\d.]+ where exact attention has ([\d.]+) ", clause
        ).groups()
        self.assertEqual((worse, every, task), ("2", "2", "mqar"))  # on listops it diverged
        tests = fixture.TASKS[task]["test"]
        self.assertEqual((float(own), float(exact)), (tests["linear"], tests["full"]))
        vague = [{**c, "metrics": {**c["metrics"], "test_stderr": 0.5 if c["task"]["name"] == task else 1e-3}}
                 for c in fixture.accuracy_cells() if c["metrics"]]  # fmt: skip
        told_of_vague = self.sentences([*crossing_cells(1, 300), *vague])[0]
        self.assertRegex(told_of_vague, "on 1 of 2 tasks, most on `image`")
        alike = fixture.accuracy_cells()
        for cell in alike:
            if cell["metrics"]:
                cell["metrics"] |= {"test": 0.9, "metric": "exact_match", "places": ["encoder", "decoder", "cross"][: 3 if cell["variant"]["name"] == "full" else 2]}
        told_of_alike = next(s for s in self.sentences([*crossing_cells(1, 300), *alike]) if s.startswith("`linear` is faster"))
        self.assertRegex(told_of_alike, r"on none of 2 tasks(;|\.)")  # no largest difference of zero
        for cell in alike:
            if cell["metrics"] and cell["variant"]["name"] == "linear":
                cell["metrics"]["test"] = 0.5
        told_of_alike = next(s for s in self.sentences([*crossing_cells(1, 300), *alike]) if s.startswith("`linear` is faster"))
        self.assertIn("(in cross-attention exact attention stands in for the variant)", told_of_alike)
        one = [c for c in fixture.accuracy_cells() if c["task"]["name"] == task]
        alone = self.sentences([*crossing_cells(1, 300), *one])[0]
        self.assertIn(f"; its accuracy on `{task}` is {tests['linear']:.2f} \u00b1", alone)
        other = [c for c in one if c["variant"]["name"] != "linear"]
        self.assertIn("; its score was not measured with these parameters", self.sentences([*crossing_cells(1, 300), *other])[0])
        mqar = next(s for s in told if s.startswith("On `mqar`"))
        self.assertIn("`full` 0.990 \u00b1 0.006", mqar)
        self.assertIn("the best trivial shortcut (context value) has 0.12", mqar)
        self.assertNotIn("do not exceed", mqar)
        for row in one:
            if row["metrics"]:
                row["metrics"]["control"] = "majority"
        self.assertNotIn("; its accuracy", self.sentences([*crossing_cells(1, 300), *one])[0])
        listops = next(s for s in told if s.startswith("On `listops`"))
        self.assertNotIn("`linear`", listops)  # diverged


RUNS, SERIES, POINTS = 10, 300, 12


def simulated(rng: np.random.Generator, noise: str) -> np.ndarray:
    if noise == "heavy":
        return rng.standard_t(2, size=POINTS)
    return rng.standard_normal(POINTS)


class ChangePoints(unittest.TestCase):
    def test_the_share_of_false_alarms_is_the_level(self) -> None:
        """Of 300 series without a step; three standard errors of the share on both sides."""
        for noise in ("normal", "heavy"):
            rng = np.random.default_rng(11)
            alarms = np.mean([bool(steps(simulated(rng, noise))) for _ in range(SERIES)])
            reach = 3 * np.sqrt(LEVEL * (1 - LEVEL) / SERIES)
            self.assertTrue(abs(alarms - LEVEL) < reach, (noise, alarms))

    def test_steps_are_found_where_they_are(self) -> None:
        rng = np.random.default_rng(5)
        found = 0
        for _ in range(40):
            values = 0.01 * rng.standard_normal(18) + np.repeat([0.0, 0.2, -0.1], 6)
            found += [s.at for s in steps(values)] == [6, 12]
        self.assertGreaterEqual(found, 34)  # of 40; the inner cut at 6 of 12 is at the level's limit
        (step,) = steps([1.0, 1.01, 0.99, 1.0, 1.0, 1.3, 1.31, 1.29, 1.3, 1.3])
        self.assertEqual(step.at, 5)
        self.assertAlmostEqual(step.after - step.before, 0.3, delta=0.01)

    def test_few_values_have_no_step(self) -> None:
        self.assertEqual(steps([1.0, 1.0, 1.0, 9.0, 9.0]), [])


class History(InFolder):
    def runs(self, factor_of: dict[str, list[float]], count: int = RUNS, noise: float = 0.01) -> None:
        """Times with noise, of 1 % by default; `factor_of` a variant by run. Names of files go against their times."""
        rng = np.random.default_rng(2)
        for number in range(count):
            head: dict[str, Any] = fixture.header(f"2026010{number // 10}T0000{number:02d}Z")
            head["environment"] = {**head["environment"], "commit": f"{number:x}" * 40}
            head["started_at"] = f"2026-01-01T00:{number:02d}:00Z"
            cells = []
            for name, factors in factor_of.items():
                params = dict(fixture.VARIANTS)[name]
                for n in (256, 512):
                    time = 1e-6 * n * factors[number] * (1 + noise * rng.standard_normal(9))
                    row = fixture.timed(name, params, fixture.shape(n, "forward", "attention", False), time, n)
                    cells.append({**row, "run": head["run"]})
            fixture.write(self.folder / f"run{count - number:02d}.jsonl", cells, head)

    def section(self) -> dict[str, Any]:
        past = read_history(self.folder)
        rows = read_rows([past[-1].file])
        found = history(past, Book(rows, Styles(rows)))
        assert found is not None
        return found

    def test_a_step_is_marked_at_its_commit(self) -> None:
        self.runs({"full": [1.0] * RUNS, "linear": [1.0] * 6 + [1.25] * 4})
        found = self.section()
        table = next(t for t in found["tables"] if t["id"] == "steps")
        told = [r for r in table["rows"] if r[1].startswith("linear")]
        self.assertEqual([r[2] for r in told], ["6" * 9] * 2)
        for row in told:
            self.assertAlmostEqual(row[5], 1.25, delta=0.02)
            self.assertLessEqual(row[6], LEVEL)
        (panel,) = found["panels"]
        marked = {line["name"]: line["steps"] for line in panel["lines"]}
        self.assertEqual(marked["linear, length 256, seed 1"], [7])
        self.assertEqual(marked["full, length 256, seed 1"], [])
        self.assertEqual(panel["x"]["names"], [f"{i:x}" * 9 for i in range(RUNS)])
        line = next(x for x in panel["lines"] if x["name"].startswith("linear"))
        self.assertAlmostEqual(line["points"][-1][1], 1.25, delta=0.03)

    def test_a_step_below_two_percent_is_not_marked(self) -> None:
        for share, wanted in ((1.015, ["commits"]), (1.03, ["steps", "commits"])):
            self.runs({"full": [1.0] * 5 + [share] * 5}, noise=1e-4)
            self.assertEqual([t["id"] for t in self.section()["tables"]], wanted)

    def test_what_makes_no_history_is_refused(self) -> None:
        with self.assertRaisesRegex(RowsError, r"needs two rows files \(\*\.jsonl\), it has 0"):
            read_history(self.folder)
        self.runs({"full": [1.0] * 2}, 2)
        both = sorted(self.folder.glob("*.jsonl"))
        lines = [line for file in both for line in file.read_text().splitlines()]
        merged = [line.replace('"kind": "run"', '"merged": true, "kind": "run"') for line in lines]
        both[0].write_text("\n".join(merged) + "\n")
        with self.assertRaisesRegex(RowsError, r"run01\.jsonl: holds 2 runs"):
            read_history(self.folder)


class FirstTable(InReport):
    def test_a_page_opens_with_the_overview_and_folds_its_settings(self) -> None:
        page = self.page(fixture.quick_cells())
        order = [attrs.get("id") for tag, attrs in page.tags if tag in ("section", "details")]
        self.assertEqual(order[:4], ["overview", "summary", "contents", "settings"])
        self.assertFalse(any("open" in attrs for tag, attrs in page.tags if tag == "details"))

    def test_its_numbers_are_those_of_the_picture(self) -> None:
        file = self.rows(fixture.quick_cells())
        rows = read_rows([file])
        (picture,) = draw_all(rows, "overview")
        table = first_table(Book(rows, Styles(rows)))
        for line in picture.data.to_dict("records"):
            said = html.escape(line["text"]) + line["marks"]
            self.assertIn(f'<span class="value">{said}</span>', table, line)

    def test_rows_of_one_measure_have_no_table(self) -> None:
        rows = read_rows([self.rows(fixture.accuracy_cells())])
        self.assertEqual(first_table(Book(rows, Styles(rows))), "")

    def test_bars_are_within_their_places(self) -> None:
        rows = read_rows([self.rows(fixture.quick_cells())])
        widths = [float(w) for w in re.findall(r"(?:width|left):([\d.]+)%", first_table(Book(rows, Styles(rows))))]
        self.assertGreater(len(widths), 20)
        self.assertTrue(all(0 <= w <= 100 for w in widths))


REFERENCE = ROOT / "results" / "reference" / "quick.jsonl"


def as_python(line: str) -> str:
    """The line with `linear` as a variant in Python."""
    row = json.loads(line)
    row.pop("checksum", None)
    if row["kind"] == "run":
        for variant in row["variants"]:
            if variant["name"] == "linear":
                variant |= {"name": "python_linear", "family": "python"}
    elif row["variant"]["name"] == "linear":
        row["variant"]["name"] = "python_linear"
        row["provided_by"] = "python"
    return json.dumps(row)


class Marks(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.native = read_rows([REFERENCE])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "mixed.jsonl")
            path.write_text("\n".join(map(as_python, REFERENCE.read_text().splitlines())) + "\n")
            cls.mixed = read_rows([path])

    def labels(self, rows: Rows) -> list[str]:
        return [s.label for s in Styles(rows).series(rows.cells)]

    def test_the_sign_stands_in_every_label_of_theirs_and_in_no_other(self) -> None:
        marked = [label for label in self.labels(self.mixed) if PYTHON in label]
        self.assertTrue(marked)
        self.assertTrue(all(label.startswith(f"python_linear{PYTHON}") for label in marked), marked)
        self.assertFalse([label for label in self.labels(self.native) if PYTHON in label])
        self.assertEqual(Styles(self.mixed).family(f"python_linear{PYTHON}"), "python")
        self.assertEqual(len(self.labels(self.mixed)), len(self.labels(self.native)))

    def test_captions_say_what_it_means(self) -> None:
        for rows, count in ((self.mixed, 1), (self.native, 0)):
            self.assertEqual(caption(rows, rows.cells).count(PYTHON_NOTE), count)

    def test_the_summary_of_the_report_says_it_too(self) -> None:
        for rows, count in ((self.mixed, 1), (self.native, 0)):
            book = Book(rows, Styles(rows))
            sentences = summary(book, Tasks(book))
            self.assertEqual(sentences.count(PYTHON_NOTE), count)
            named = [s for s in sentences if "python_linear" in s]
            self.assertEqual(bool(named), bool(count))
            self.assertFalse([s for s in named if "python_linear`" in s])
