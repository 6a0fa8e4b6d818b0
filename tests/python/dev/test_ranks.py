"""Rankings and how well they agree, on known tables and on made-up rows."""

from __future__ import annotations

import json
import math
import tempfile
import unittest
from pathlib import Path

import numpy as np

from dev.pages import captured, ranks
from dev.pages.by_family import scores_of
from attnbench.plots.rows.agreement import kendall_tau
from dev.pages.ranks import (
    alike_groups,
    critical_difference,
    exact_p,
    kendall_w,
    order_of,
    ranks_of,
    smallest_subset,
    sure_ranks,
    surely_better,
)

from .. import fixture


class Agreement(unittest.TestCase):
    def test_ranks_begin_at_the_best_and_ties_share(self) -> None:
        self.assertEqual(ranks_of(np.array([0.5, 0.901, 0.899, 0.1])).tolist(), [3, 1.5, 1.5, 4])

    def test_what_is_not_surely_better_ties(self) -> None:
        apart = np.array([[0.9, 0.92, 0.91], [0.5, 0.52, 0.51], [0.5, 0.9, 0.7], [0.1, 0.1, 0.1]])
        # of the third it is not known whether it is better or worse than the first two; all are better than the last
        self.assertEqual(sure_ranks(apart).tolist(), [1.5, 2.5, 2, 4])
        self.assertEqual(sure_ranks(apart, 0.6).tolist(), [1.5, 3.0, 2.5, 3.0], "the floor is 0.6")
        self.assertEqual(sure_ranks(np.full((2, 3), 0.4)).tolist(), [1.5, 1.5])
        self.assertEqual(sure_ranks(np.array([[0.901], [0.899], [0.5]])).tolist(), [1.5, 1.5, 3])
        # by hand: means 0.5 apart, errors of 0.5 both, four degrees of freedom: t = 2.776
        near = np.array([[0.0, 1.0, 0.5], [0.5, 1.5, 1.0]])
        error = np.sqrt(2 * 0.25 / 3)
        self.assertFalse(surely_better(near + [[0.0], [2.77 * error - 0.5]])[1, 0])
        self.assertTrue(surely_better(near + [[0.0], [2.78 * error - 0.5]])[1, 0])

    def test_w_of_known_tables(self) -> None:
        self.assertEqual(kendall_w(np.array([[1, 2, 3, 4]] * 3)), 1)
        self.assertEqual(kendall_w(np.array([[1, 2, 3], [3, 2, 1]])), 0)
        # by hand: sums 2, 4.5, 5.5, 8 about 5 give S = 18.5; one tie of two takes 2 * 6 off 4 * 60
        self.assertAlmostEqual(kendall_w(np.array([[1, 2.5, 2.5, 4], [1, 2, 3, 4]])), 12 * 18.5 / 228)
        self.assertTrue(math.isnan(kendall_w(np.array([[2, 2, 2], [2, 2, 2]]))))

    def test_the_exact_test_counts_orders(self) -> None:
        self.assertAlmostEqual(exact_p(np.array([[1, 2, 3]] * 3)), 1 / 36)
        self.assertEqual(exact_p(np.array([[1, 2, 3], [3, 2, 1]])), 1)
        with self.assertRaisesRegex(ValueError, "too many orders"):
            exact_p(np.tile(np.arange(1, 8), (3, 1)))

    def test_the_critical_difference_is_that_of_the_paper(self) -> None:
        # Demšar 2006, section 3.2.4: four classifiers on 14 data sets, 2.569 · sqrt(4 · 5 / (6 · 14))
        self.assertAlmostEqual(critical_difference(4, 14), 1.25, places=2)
        self.assertAlmostEqual(critical_difference(10, 1) / math.sqrt(110 / 6), 3.164, places=3)

    def test_groups_are_the_largest_that_lie_near(self) -> None:
        self.assertEqual(alike_groups(np.array([3.0, 1.0, 2.0, 6.0]), 1.5), [(1, 2), (2, 0), (3,)])
        self.assertEqual(alike_groups(np.array([1.0, 2.0, 3.0]), 2.5), [(0, 1, 2)])
        self.assertEqual(alike_groups(np.array([1.0, 3.5]), 2.5), [(0,), (1,)], "as far apart is told apart")

    def test_tau_and_order(self) -> None:
        self.assertAlmostEqual(kendall_tau([1, 2, 3], [1, 3, 2]), 1 / 3)
        self.assertEqual(order_of(np.array([[2, 1, 3], [3, 1, 2], [3, 1, 2]])), (1, 2, 0))

    def test_the_smallest_subset_is_the_cheapest_of_its_size_and_has_no_ties(self) -> None:
        table = np.array([[1, 2, 3], [1, 2, 3], [3, 2, 1], [2, 2, 2]], float)
        self.assertEqual(smallest_subset(table, [5, 4, 1, 1]), ((1,), 0.5))


def rows_of(scores: dict[str, dict[str, list[float]]], metric: str = "accuracy") -> list[dict]:
    """A cell for each task, variant and seed."""
    cells = []
    for task, by in scores.items():
        for variant, tests in by.items():
            for seed, test in enumerate(tests):
                curve = [
                    {"step": s, "train_loss": 1.0, "validation": test * s / 4, "seconds": 1.0} for s in (1, 2, 3, 4)
                ]
                metrics = {
                    "metric": metric, "test": test, "validation": test, "chance": 0.1, "shortcuts": {"majority": 0.2},
                    "lift": test - 0.2, "steps": 4, "examples": 4, "train_s": 1.0, "examples_per_s": 4.0, "parameters": 1,
                }  # fmt: skip
                axes = {"seed": seed, "length": 8, "causal": True, "threads": 1}
                cell = fixture.cell("accuracy", variant, {}, axes, metrics=metrics, task={"name": task, "params": {}})
                cells.append({**cell, "samples": curve})
    return cells


class Pages(unittest.TestCase):
    def page(self, cells: list[dict], table=ranks.table) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            path.write_text("\n".join(json.dumps(line) for line in [fixture.header(), *cells]) + "\n", encoding="utf-8")
            return table(path)

    def test_scores_ranks_and_sentences(self) -> None:
        one = {"full": [0.9, 0.9], "linear": [0.6, 0.62], "mean": [0.3, 0.3]}
        page = self.page(rows_of({"mqar": one, "copy": {k: v for k, v in one.items() if k != "mean"}}))
        self.assertIn("| `mqar` | 0.900 ±0.000 (1) | 0.610 ±0.127 (2) | 0.300 ±0.000 (3) | 0.200 |", page)
        self.assertIn("| `copy` | 0.900 ±0.000 (1) | 0.610 ±0.127 (2) | — | 0.200 |", page)
        self.assertIn("| `mqar` | 3 | 2 | 1.00 | 0.17 |", page)
        self.assertIn("of the 2 variants that run on all of them, Kendall's W is 1.00", page)
        self.assertIn("1.00 at 25%", page)
        # 1.960 · sqrt(2 · 3 / (6 · 2)): with two tasks nothing is told apart
        self.assertIn("apart at 5 % from 1.39 on (Nemenyi's test over all pairs). Groups of what they do not tell apart: `full`, `linear`.", page)

    def test_without_an_order_there_is_no_best(self) -> None:
        one = {"full": [0.9, 0.7], "linear": [0.9, 0.9]}  # one seed more decides nothing
        page = self.page(rows_of({"mqar": one, "copy": one}))
        self.assertIn("On no task is one of `full`, `linear` surely better than another.", page)
        self.assertNotIn("best mean rank", page)

    def test_a_shared_best_rank_counts_for_each(self) -> None:
        one = {"full": [0.9, 0.9], "linear": [0.9, 0.9], "mean": [0.5, 0.5]}
        page = self.page(rows_of({"mqar": one, "copy": one}))
        self.assertIn("`full` has the best mean rank, alone or with another, in 100% of draws", page)
        self.assertIn("Two variants have the same mean rank over all tasks.", page)

    def test_a_missing_seed_is_named(self) -> None:
        cells = rows_of({"mqar": {"full": [0.9, 0.9], "linear": [0.5]}})
        with self.assertRaisesRegex(ValueError, "no score of linear with seed 1 on mqar"):
            self.page(cells)
        with self.assertRaisesRegex(ValueError, "no score"):
            self.page([], lambda path: scores_of(path))

    def test_the_least_error_is_the_best(self) -> None:
        page = self.page(rows_of({"adding": {"full": [0.04, 0.04], "linear": [0.5, 0.5]}}, "mean_squared_error"))
        self.assertIn("| `adding` | 0.040 ±0.000 (1) | 0.500 ±0.000 (2) |", page)
        self.assertIn("No two tasks have orders to compare.", page)

    def test_captured_rows(self) -> None:
        cells = []
        for state in ("initial", "trained"):
            for variant, error in (("full", 1e-7), ("linear", 0.5 if state == "initial" else 0.75)):
                axes = {"length": 8, "batch": 1, "heads": 2, "head_dim": 8, "causal": True, "threads": 1, "seed": 0,
                        "input": state, "input_scale": 1.0}  # fmt: skip
                layer = {"relative_error": error, "weights_kl": None, "mass_kept": None,
                         "effective_rank": 4.0 if state == "initial" else 2.0}  # fmt: skip
                metrics = {"relative_error": error, "cosine": 1.0, "weights_kl": None, "mass_kept": 1.0 - (variant == "linear"), "layers": [layer]}
                if state == "trained":
                    metrics |= {"model_test": 0.9, "model_chance": 0.1}
                cells.append(fixture.cell("fidelity", variant, {}, axes, metrics=metrics, task={"name": "mqar", "params": {}}))
        page = self.page(cells, captured.table)
        self.assertIn("| `mqar` | `full` | exact | exact | 1.00 | 1.00 |", page)
        self.assertIn("| `mqar` | `linear` | 0.50 | 0.75 | 0.00 | 0.00 |", page)
        self.assertIn("score 0.90 to 0.90; the effective rank of exact attention's weights over 8 positions is 4.0 by layer before training, 2.0 after", page)
