"""The page of scores and ranks, on made-up rows."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from attnbench.plots.rows.read import read_rows
from dev.pages import captured, ranks
from dev.pages.by_family import scores_of
from dev.pages.trainings import _lost, trainings

from .. import fixture


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
        self.assertIn("| `mqar` | 3 of 3 | 2 | 1.00 | 0.17 |", page)
        self.assertIn("All 10 trainings behind the scores ended by themselves.", page)
        self.assertIn("of the 2 variants that run on all of them, Kendall's W is 1.00", page)
        self.assertIn("0.91 at 25%, 1.00 at 50%", page, "two are below the shortcut at first")
        # 1.960 · sqrt(2 · 3 / (6 · 2)): with two tasks nothing is told apart
        self.assertIn("apart at 5 % from 1.39 on (Nemenyi's test over all pairs). Groups of what they do not tell apart: `full`, `linear`.", page)

    def test_of_rows_in_which_all_tie_tau_is_not_defined(self) -> None:
        order, tie = {"full": [0.9, 0.9], "linear": [0.6, 0.62]}, {"full": [0.9, 0.9], "linear": [0.9, 0.9]}
        other = Path(self.enterContext(tempfile.TemporaryDirectory()), "other.jsonl")
        lines = [fixture.header(), *rows_of({"reverse": tie, "sort": tie})]
        other.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
        page = self.page(rows_of({"mqar": order, "copy": order}), lambda path: ranks.table(path, other))
        self.assertIn("over `full`, `linear`: not defined, since all of one side tie.", page)

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
        self.assertIn("There is no order over tasks: the 2 variants that run on all 1 tasks all trained to their end on 1 of them (`adding`).", page)

    def test_what_was_cut_off_has_no_rank_and_its_task_no_say(self) -> None:
        one = {"full": [0.9, 0.9], "linear": [0.6, 0.62], "mean": [0.3, 0.3]}
        cells = rows_of({"mqar": one, "copy": one, "induction": one})
        for cell in cells:  # as rows of earlier versions say it
            cell["metrics"]["stopped_by"] = "steps" if (cell["task"]["name"], cell["variant"]["name"]) == ("copy", "mean") else "target"
        page = self.page(cells)
        self.assertIn("| `copy` | 0.900 ±0.000 (1) | 0.610 ±0.127 (2) | 0.300† ±0.000 | 0.200 |", page)
        self.assertIn("| `copy` | 2 of 3 | 2 | 1.00 | 0.5 |", page)
        self.assertIn("Over the 2 tasks, of the 3 variants", page)
        self.assertIn("Of 18 trainings behind the scores 2 were stopped by their steps, 2 of these with their best validation score in the last fifth", page)

    def test_scores_below_the_shortcut_order_nothing(self) -> None:
        page = self.page(rows_of({"mqar": {"full": [0.9, 0.9], "linear": [0.15, 0.16], "mean": [0.1, 0.11]}}))
        self.assertIn("(2.5) | 0.105", page)
        self.assertIn("| `mqar` | 3 of 3 | 2 | 1.00 | 0.33 |", page, "two of the ranks are shared")

    def test_choices_of_rates_and_numbers_of_parameters_are_told(self) -> None:
        cells = rows_of({"mqar": {"full": [0.9], "linear": [0.6]}})
        made = []
        for cell in cells:
            cell["metrics"]["parameters"] = 100 if cell["variant"]["name"] == "full" else 188
            for rate, worse in ((1e-3, 0.1), (3e-3, 0.0), (1e-2, 0.2 if cell["variant"]["name"] == "full" else -0.1)):
                validation = cell["metrics"]["validation"] - worse
                made.append({**cell, "cell": f"{len(made):016x}", "training": {"learning_rate": rate}, "tuned": ["learning_rate"],
                             "metrics": {**cell["metrics"], "validation": validation}})  # fmt: skip
        page = self.page(made, trainings)
        self.assertIn("Of 2 choices among 3 learning rates 1 fell on the largest and 0 on the smallest.", page)
        two = [c for c in made if c["training"]["learning_rate"] < 1e-2]
        self.assertNotIn("learning rates", self.page(two, trainings), "of two rates every one is at an end")
        self.assertIn("Models learn 1.00 (`full`) to 1.88 times (`linear` on `mqar`) the numbers of that of `full`.", page)
        apart = [{**c, "metrics": {**c["metrics"], "metric": "exact_match", "places": ["encoder", *(["cross"] if c["variant"]["name"] == "full" else [])]}}
                 for c in made]  # fmt: skip
        self.assertIn("On `mqar` exact attention stands in for full in the decoder's self-attention; for linear in the decoder's self-attention and in "
                      "cross-attention.", self.page(apart, trainings))  # fmt: skip
        made[0] |= {"status": "diverged", "reason": "the loss was not finite", "metrics": None}
        made = [c for c in made if c["training"]["learning_rate"] == 1e-3]
        self.assertIn("Without a score: `full` on `mqar`, diverged.", self.page(made, lambda path: _lost(read_rows([path]).cells)))

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
