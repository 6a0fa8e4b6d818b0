"""The tables of scores behind a prompt, on made-up rows."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from dev.pages.documents import TABLES

from .. import fixture
from ..plots import probe_rows
from .test_evicted_page import OWN

ALWAYS = {**OWN, "evict": "h2o", "budget": 4.0, "when": "always"}


def entry(params: dict[str, Any], test: float | None) -> dict[str, Any]:
    return {"params": params, "test": test, "stderr": None if test is None else 0.01, "reason": "a label stands in it" if test is None else None}


def behind(prompt: int, method: str, budget: float, test: float | None) -> dict[str, Any]:
    """As rows hold them: snapkv has no `when`, which is then as in all rows that name none."""
    when = "always" if method == "snapkv" else "prompt"
    return entry({**OWN, "evict": method, "budget": budget, "when": when, "prompt": prompt}, test)


def cell(seed: int, *entries: dict[str, Any], exact: float = 0.9, task: str = "mqar", **more: Any) -> dict[str, Any]:
    return probe_rows.cell("full", task, exact, seed=seed, params=OWN, by_params=list(entries), **more)


class Prompted(unittest.TestCase):
    def page(self, *cells: dict[str, Any], command: str = "evicted_prompts") -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            path.write_text("\n".join(json.dumps(line) for line in [fixture.header(), *cells]) + "\n", encoding="utf-8")
            return TABLES[command](str(path))

    def test_a_line_a_method_and_a_column_a_budget(self) -> None:
        page = self.page(
            cell(0, behind(8, "snapkv", 2.0, 0.2), behind(8, "snapkv", 4.0, 0.4), behind(8, "recent", 2.0, 0.3), behind(8, "recent", 4.0, 0.4)),
            cell(1, behind(8, "snapkv", 2.0, 0.2), behind(8, "snapkv", 4.0, 0.6), behind(8, "recent", 2.0, 0.3), behind(8, "recent", 4.0, 0.4)),
        )
        self.assertIn("exact attention scores 0.900 ± 0.000 (2 seeds)", page)
        self.assertIn("The prompt is the first 8 positions.", page)
        self.assertIn("| method | 2 kept | 4 kept |", page)
        self.assertIn("| `snapkv` | 0.200 ± 0.000 (22%) | **0.500 (0.400 to 0.600)** (56%) |", page)
        self.assertIn("| `recent` | **0.300 ± 0.000** (33%) | **0.400 ± 0.000** (44%) |", page, "of 4 kept the seeds do not tell")

    def test_scores_without_a_prompt_and_of_caches_that_go_on_to_forget_are_others(self) -> None:
        """Of one method and budget: step by step, behind a prompt and then step by step, of all, of another prompt."""
        others = (entry(ALWAYS, 0.111), entry({**ALWAYS, "prompt": 8}, 0.222), entry({**OWN, "evict": "none", "prompt": 8, "kv_dtype": "int8"}, 0.333))
        page = self.page(cell(0, *others, behind(8, "h2o", 4.0, 0.5), behind(20, "h2o", 4.0, 0.7)))
        for score in ("0.111", "0.222", "0.333"):
            self.assertNotIn(score, page)
        short, long = page.split("The prompt is the first 20 positions.")
        self.assertIn("The prompt is the first 8 positions.", short)
        self.assertIn("| `h2o` | 0.500 (56%) |", short)
        self.assertIn("| `h2o` | 0.700 (78%) |", long)

    def test_other_tables_leave_scores_behind_a_prompt_out(self) -> None:
        rows = [cell(0, entry(ALWAYS, 0.3), behind(8, "snapkv", 4.0, 0.555), behind(8, "h2o", 4.0, 0.666), entry({**ALWAYS, "prompt": 8}, 0.777))]
        page = self.page(*rows, command="evicted")
        self.assertIn("| `h2o` | 0.300 (33%) |", page)
        for score in ("0.555", "0.666", "0.777", "snapkv"):
            self.assertNotIn(score, page)

    def test_a_prompt_that_holds_labels_has_no_score(self) -> None:
        page = self.page(cell(0, behind(8, "h2o", 4.0, 0.5), behind(9, "h2o", 4.0, None)))
        self.assertNotIn("first 9 positions", page)

    def test_a_training_that_was_cut_off_is_marked_and_tasks_keep_the_order_of_the_rows(self) -> None:
        page = self.page(cell(0, behind(62, "h2o", 4.0, 0.5), task="needle", ended_by="steps"), cell(0, behind(8, "h2o", 4.0, 0.4)))
        self.assertIn("| `h2o` | 0.500† (56%) |", page)
        self.assertLess(page.index("`needle`"), page.index("`mqar`"), "first in the rows")

    def test_rows_without_such_scores_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "no scores behind a prompt"):
            self.page(cell(0, entry(ALWAYS, 0.3)))


if __name__ == "__main__":
    unittest.main()
