"""The pages of published orders and of distances of evidence, on made-up rows and examples."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np

from attnbench._place import ROOT
from attnbench.plots.rows.agreement import tau_interval
from dev.pages import locality, published

from ..faults import BUILT
from .test_documents import trained

TABLES = """
[[table]]
name = "a table"
source = "a paper, table 1"
unit = "%"
tasks = { "Recall" = "mqar", "Copy" = "selective_copy" }

[table.scores]
"full" = [90, 99]
"deltanet[block=paper]" = [80, 98]
"mamba[block=paper]" = [70, 97]
"gla[block=paper]" = [60, 96]
"hyena[block=paper]" = [50, 95]
"""
# In the published order, each surely better than the next.
SCORES = {"full": 0.98, "deltanet[block=paper]": 0.9, "mamba[block=paper]": 0.8, "gla[block=paper]": 0.7, "hyena[block=paper]": 0.6}


class Published(unittest.TestCase):
    def lines(self, scores: dict[str, list[float]], cut: tuple[str, ...] = (), tables: str = TABLES) -> list[list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            rows, held = Path(folder, "rows.jsonl"), Path(folder, "published.toml")
            rows.write_text(trained(scores, cut), encoding="utf-8")
            held.write_text(tables, encoding="utf-8")
            return [[word.strip() for word in line.strip("|").split("|")] for line in published.table(held, rows).splitlines()[2:]]

    def seeds(self, **changed: float) -> dict[str, list[float]]:
        return {name: [test, test + 0.001] for name, test in (SCORES | changed).items()}

    def test_the_same_order_has_a_tau_of_one_and_its_interval(self) -> None:
        recall, copy = self.lines(self.seeds())
        low, high = tau_interval(1.0, 5)
        self.assertEqual(recall[:4], ["a table", "Recall", "`mqar length=64, causal`", "rows.jsonl"])
        self.assertEqual(recall[4], ", ".join(f"`{name}`" for name in SCORES))
        self.assertEqual(recall[5], f"1.00 [{low:.2f}, {high:.2f}]")
        self.assertEqual(copy, ["a table", "Copy", "`selective_copy`", "—", "—", "no rows"])

    def test_another_order_has_a_lower_one(self) -> None:
        swapped = self.seeds(**{"hyena[block=paper]": 0.75})  # above gla alone: one pair of ten
        self.assertTrue(self.lines(swapped)[0][5].startswith("0.80 ["))

    def test_what_is_not_surely_better_ties(self) -> None:
        wide = self.seeds() | {"hyena[block=paper]": [0.3, 0.9]}  # its interval holds all others
        self.assertTrue(self.lines(wide)[0][5].startswith("0.77 ["), "6 pairs of 10 agree: 6 / sqrt(10 * 6)")

    def test_what_does_not_exceed_a_shortcut_ties(self) -> None:
        low = self.seeds(**{"gla[block=paper]": 0.2, "hyena[block=paper]": 0.1})  # the best shortcut has 0.25
        self.assertTrue(self.lines(low)[0][5].startswith("0.95 ["), "9 pairs of 10 agree: 9 / sqrt(10 * 9)")

    def test_trainings_that_were_cut_off_do_not_count(self) -> None:
        recall, _ = self.lines(self.seeds(), ("gla[block=paper]",))
        self.assertNotIn("gla", recall[4])
        self.assertEqual(recall[5], "not enough rows: 4 of 5 variants, 5 needed; 1 more did not train to its end")

    def test_a_mixer_alone_is_another_variant(self) -> None:
        alone = self.seeds()
        alone["gla"] = alone.pop("gla[block=paper]")
        self.assertEqual(self.lines(alone)[0][5], "not enough rows: 4 of 5 variants, 5 needed")

    def test_a_setting_that_was_not_learned_does_not_count(self) -> None:
        self.assertEqual(self.lines(self.seeds(full=0.3))[0][5], "no rows")
        alone = self.seeds()
        del alone["full"]
        self.assertEqual(self.lines(alone)[0][5], "no rows", "nothing is known of the setting")

    def test_a_table_that_is_not_whole_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "a table: full has 1 scores; expected 2"):
            self.lines(self.seeds(), tables=TABLES.replace("[90, 99]", "[90]"))
        with self.assertRaisesRegex(ValueError, "a table has the keys"):
            self.lines(self.seeds(), tables=TABLES.replace("unit", "units"))

    @BUILT
    def test_the_file_names_variants_and_tasks_that_are_here(self) -> None:
        listed = [json.loads(locality._printed("list", kind, "--json"))[kind] for kind in ("variants", "tasks")]
        variants, tasks = ({one["name"] for one in own} for own in listed)
        for column in published.columns(ROOT / "results" / "reference" / "published.toml"):
            self.assertIn(column.task, tasks)
            self.assertGreaterEqual(len(column.scores), published.FEWEST, "fewer never have a tau")
            self.assertLessEqual({name.partition("[")[0] for name in column.scores}, variants)


class Locality(unittest.TestCase):
    def line(self, *examples: dict[str, Any]) -> list[str]:
        return locality.line_of(examples, {"length": 40})

    def test_an_example_needs_its_farthest_label(self) -> None:
        near = {"tokens": [1] * 40, "evidence": [0], "distances": [-1, 3, 4]}
        far = {"tokens": [1] * 40, "evidence": [0], "distances": [-1, 30, 2]}
        self.assertEqual(self.line(near, far), ["position", "40", "4", "30", "30", "75%"])

    def test_a_label_of_a_sequence_has_one_distance(self) -> None:
        one = {"values": [0.5] * 80, "evidence": [1, 9], "distances": [8]}
        none = {"values": [0.5] * 80, "evidence": [], "distances": []}
        self.assertEqual(self.line(one, none), ["sequence", "40", "8", "8", "8", "0%"])
        self.assertEqual(self.line(none), ["unknown", "40", "—", "—", "—", "—"])

    def test_the_least_distance_that_holds_a_share(self) -> None:
        self.assertEqual([locality.holding(np.arange(1, 101), share) for share in (0.5, 0.9, 0.99)], [50, 90, 99])

    def test_presets_or_else_defaults(self) -> None:
        params = [{"name": "length", "default": 9}]
        listed = [
            {"name": "a", "params": params, "presets": [{"name": n, "params": {"length": i}} for i, n in enumerate(("lra", "standard", "small"))]},
            {"name": "b", "params": params, "presets": [{"name": "mad", "params": {}}]},
        ]
        found = [("a[preset=small]", {"length": 2}), ("a[preset=standard]", {"length": 1}), ("b", {"length": 9})]
        self.assertEqual(list(locality.settings(listed)), found)
