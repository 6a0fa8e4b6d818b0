"""The report's fidelity: means over seeds, and what is told of inputs that models read. What a variant
loses in score."""

from __future__ import annotations

import re
import unittest
from typing import Any

import matplotlib.pyplot as plt

from attnbench.plots.kinds.fidelity import fidelity as pictures
from attnbench.plots.rows.style import Styles
from attnbench.reports import exactness
from attnbench.reports.book import Book
from attnbench.reports.scores import Tasks
from attnbench.reports.summary import summary

from .. import fixture
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


if __name__ == "__main__":
    unittest.main()
