"""The table of scores from caches of fewer bits, on made-up rows."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from dev.pages.documents import TABLES

from .. import fixture
from ..plots import probe_rows
from .test_evicted_page import OWN, far

TRAINED = {"width": 64, "heads": 4}
STATE = 1024


def cell(seed: int, scores: dict[str, float | None], exact: float = 0.9, task: str = "mqar", **more: Any) -> dict[str, Any]:
    """Scores by type of cache; beside them one under eviction, of which the page has another table, and one behind a prompt."""
    entries = [
        {"params": {**OWN, "kv_dtype": name}, "test": test, "stderr": None if test is None else 0.01, "reason": "no" if test is None else None, "state_bytes": STATE // 2}
        for name, test in scores.items()
    ]
    entries.append({"params": {**OWN, "evict": "h2o", "budget": 8.0}, "test": 0.123, "stderr": 0.01, "reason": None})
    entries.append({"params": {**OWN, "kv_dtype": "int8", "prompt": 8}, "test": 0.123, "stderr": 0.01, "reason": None})
    own = {"training": TRAINED, "by_distance": far(exact, exact), "state_bytes": STATE, **more}
    return probe_rows.cell("full", task, exact, seed=seed, params=OWN, by_params=entries, **own)


class Cached(unittest.TestCase):
    def page(self, *cells: dict[str, Any]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            path.write_text("\n".join(json.dumps(line) for line in [fixture.header(), *cells]) + "\n", encoding="utf-8")
            return TABLES["cache_scores"](str(path))

    def test_a_line_a_type_and_two_columns_a_task(self) -> None:
        page = self.page(cell(0, {"int8": 0.9, "int4": 0.5}), cell(1, {"int8": 0.8, "int4": 0.42}, 0.8), cell(0, {"int8": 0.7}, task="needle"))
        self.assertIn("| cache | `mqar`, 64 positions | bytes | `needle`, 64 positions | bytes |", page)
        self.assertIn("| `float32` | 0.850 (0.800 to 0.900) | 1 KiB | 0.900 | 1 KiB |", page)
        self.assertIn("| `int8` | 0.850 (0.800 to 0.900) (the same) | 512 B (0.50) | 0.700 (−0.2000) | 512 B (0.50) |", page)
        self.assertIn("| `int4` | 0.460 (0.420 to 0.500) (−0.3900 ± 0.1271) |", page, "seed by seed: 0.4 and 0.38 less")
        self.assertIn("4 heads of width 16, 1 to 2 seeds; `float32` is the forward pass.", page)
        self.assertIn("the newest 32 positions (of bits: that have so many before them): `mqar` of 64: 0%, `needle` of 64: 0%.", page, "from 17 on is not surely")
        self.assertNotIn("0.123", page)

    def test_a_task_without_a_type_and_a_seed_without_its_score_say_so(self) -> None:
        page = self.page(cell(0, {"int8": 0.9, "int4": 0.5}), cell(1, {"int8": 0.9, "int4": None}), cell(0, {"int8": 0.9}, task="needle"))
        (line,) = (line for line in page.splitlines() if line.startswith("| `int4`"))
        self.assertIn("0.500 (1 of 2 seeds)", line.replace(" (−0.4000)", ""))
        self.assertTrue(line.endswith("| — | — |"), line)

    def test_bits_and_labels_whose_evidence_is_older_are_told(self) -> None:
        bins = [{**b, "from": start} for b, start in zip(far(0.9, 0.9), (1, 32), strict=True)]
        page = self.page(cell(0, {"bfloat16": 1.00004, "int8": 1.01}, 1.0, "lm", metric="bits_per_token", chance=8.0, shortcuts={"n-gram of 2": 3.0}, by_distance=bins))
        self.assertIn("| cache | `lm`, 64 positions, test bits a token | bytes |", page)
        self.assertIn("| `bfloat16` | 1.000 (below 0.0001) |", page)
        self.assertIn("| `int8` | 1.010 (+0.0100) | 512 B (0.50) |", page)
        self.assertIn("so many before them): `lm` of 64: 50%.", page)

    def test_differences_that_cancel_are_no_difference_with_an_interval(self) -> None:
        page = self.page(cell(0, {"int8": 0.91}), cell(1, {"int8": 0.79}, 0.8))
        self.assertIn("| `int8` | 0.850 (0.790 to 0.910) (0 ± 0.1271) |", page)

    def test_a_training_that_was_cut_off_is_marked(self) -> None:
        page = self.page(cell(0, {"int8": 0.9}), cell(1, {"int8": 0.9}, ended_by="steps"))
        self.assertIn("| `int8` | 0.900 ± 0.000† (the same) |", page)

    def test_rows_without_such_scores_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "no scores from caches of a type"):
            self.page(cell(0, {}))


if __name__ == "__main__":
    unittest.main()
