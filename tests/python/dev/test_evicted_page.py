"""The tables of scores under caches that forget, on made-up rows."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from dev.pages import evicted
from dev.pages.documents import TABLES

from .. import fixture
from ..plots import probe_rows

OWN = {"kernel": "tiled"}
BITS = {"metric": "bits_per_token", "chance": 8.0, "shortcuts": {"n-gram of 2": 3.0}}
BINS = ((1, 15), (17, 61))


def far(near: float, away: float) -> list[dict[str, Any]]:
    return [{"from": a, "to": b, "labels": 9, "accuracy": value, "stderr": 0.1} for (a, b), value in zip(BINS, (near, away), strict=True)]


def cell(seed: int, scores: dict[str, tuple[float, float]], exact: float = 0.9, task: str = "mqar", **more: Any) -> dict[str, Any]:
    """Scores of a budget of 4 and of 16, which is all; the first is better near by and worse far away."""
    entries = [
        {"params": {**OWN, "evict": name, "budget": budget, "when": "always"}, "test": test, "stderr": 0.01, "reason": None, "by_distance": far(test + 0.1, test - 0.1)}
        for name, both in scores.items()
        for budget, test in zip((4.0, 16.0), both, strict=True)
    ]
    return probe_rows.cell("full", task, exact, seed=seed, params=OWN, by_params=entries, by_distance=far(exact, exact), **more)


class Evicted(unittest.TestCase):
    def page(self, *cells: dict[str, Any], command: str = "evicted") -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            path.write_text("\n".join(json.dumps(line) for line in [fixture.header(), *cells]) + "\n", encoding="utf-8")
            return TABLES[command](str(path))

    def test_means_shares_and_the_best(self) -> None:
        page = self.page(
            cell(0, {"recent": (0.1, 0.9), "h2o": (0.4, 0.9), "tova": (0.46, 0.9)}),
            cell(1, {"recent": (0.1, 0.8), "h2o": (0.5, 0.8), "tova": (0.44, 0.8)}, 0.8),
            cell(2, {"recent": (0.1, 0.85), "h2o": (0.45, 0.85), "tova": (0.45, 0.85)}, 0.85),
        )
        self.assertIn("`mqar`, 64 positions, test accuracy: exact attention scores 0.850 ± 0.124 (3 seeds); the best shortcut, last, 0.140.", page)
        self.assertIn("| method | 4 kept | 16 kept |", page)
        self.assertIn("| `recent` | 0.100 ± 0.000 (12%) | 0.850 ± 0.124 (100%) |", page)
        self.assertIn("| `h2o` | **0.450 ± 0.124** (53%) | 0.850 ± 0.124 (100%) |", page, "not told apart from the best")
        self.assertIn("| `tova` | **0.450 ± 0.025** (53%) | 0.850 ± 0.124 (100%) |", page)

    def test_what_a_budget_sorts_surely_has_one_best(self) -> None:
        apart = {"h2o": {0: 0.5, 1: 0.51, 2: 0.52}, "norm": {0: 0.1, 1: 0.11, 2: 0.12}}
        self.assertEqual(evicted.leaders(apart, False), {"h2o"})
        self.assertEqual(evicted.leaders(apart, True), {"norm"}, "of errors the least")
        self.assertEqual(evicted.leaders({"h2o": {0: 0.5, 1: 0.5}, "norm": {0: 0.5, 1: 0.5}}, False), set(), "all are equal")
        self.assertEqual(evicted.leaders({"h2o": {0: 0.5}, "norm": {0: 0.1}}, False), set(), "one seed tells no difference")

    def test_differences_are_of_the_same_seed(self) -> None:
        """`tova` lacks the seed on which all do well; of the two others it is surely worse."""
        tests = {"h2o": {0: 0.9, 1: 0.5, 2: 0.51}, "tova": {1: 0.4, 2: 0.41}}
        self.assertEqual(evicted.leaders(tests, False), {"h2o"})
        self.assertEqual(evicted.leaders({**tests, "tova": {0: 0.9, 1: 0.5}}, False), {"h2o", "tova"}, "equal on the seeds that both have")
        self.assertAlmostEqual(evicted.share_of_exact({1: 0.4, 2: 0.4}, {0: 0.2, 1: 0.8, 2: 0.8}), 0.5)

    def test_a_method_without_a_score_of_a_seed_says_so(self) -> None:
        both = {"recent": (0.1, 0.9), "h2o": (0.4, 0.9)}
        page = self.page(cell(0, both, 0.8), cell(1, {"recent": (0.1, 0.9)}, 0.6))
        self.assertIn("| `h2o` | 0.400 (50%, 1 of 2 seeds) |", page, "half of exact attention's 0.8 with the seed that it has")

    def test_an_interval_that_leaves_what_a_score_can_be_is_the_range_of_the_seeds(self) -> None:
        given = {"recent": (0.1, 0.9), "h2o": (0.4, 0.9)}
        page = self.page(cell(0, given, 0.9), cell(1, {**given, "h2o": (0.6, 0.9)}, 0.98))
        self.assertIn("exact attention scores 0.940 (0.900 to 0.980) (2 seeds)", page)
        self.assertIn("0.500 (0.400 to 0.600)", page, "half of the interval is over 1")

    def test_a_training_that_was_cut_off_is_marked_and_has_no_best(self) -> None:
        given = {"recent": (0.1, 0.9), "h2o": (0.4, 0.9)}
        page = self.page(cell(0, given), cell(1, given, ended_by="steps"))
        self.assertIn("| `h2o` | 0.400 ± 0.000† (44%) | 0.900 ± 0.000† (100%) |", page)
        self.assertIn("scores 0.900 ± 0.000† (2 seeds)", page)
        self.assertNotIn("**", page)

    def test_of_bits_the_least_is_the_best(self) -> None:
        given = {"recent": (2.0, 1.0), "h2o": (3.0, 1.0)}
        page = self.page(*(cell(s, given, 1.0, "lm", **BITS) for s in (0, 1)))
        self.assertIn("| `recent` | **2.000 ± 0.000** (200%) |", page)
        self.assertIn("| `h2o` | 3.000 ± 0.000 (300%) |", page)

    def test_distances_at_a_quarter_of_the_length(self) -> None:
        given = {"recent": (0.1, 0.9), "h2o": (0.4, 0.9)}
        page = self.page(cell(0, given), cell(1, given), command="evicted_far")
        self.assertIn("`mqar`, 4 positions kept:", page)
        self.assertIn("| method | nearest half | farthest half |", page)
        self.assertIn("whose borders differ: nearest half 1 to 15; farthest half 17 to 61.", page)
        self.assertIn("| `recent` | 0.200 ± 0.000 | 0.000 ± 0.000 |", page)
        self.assertIn("| `full` | 0.900 ± 0.000 | 0.900 ± 0.000 |", page)

    def test_rows_without_eviction_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "no scores under eviction"):
            self.page(probe_rows.cell("full", "mqar", 0.9))


if __name__ == "__main__":
    unittest.main()
