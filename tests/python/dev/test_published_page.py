"""The pages of published orders and of distances of evidence, on made-up rows and examples."""

from __future__ import annotations

import json
import tempfile
import tomllib
import unittest
from pathlib import Path
from typing import Any

import numpy as np

from attnbench._place import ROOT
from attnbench.plots.rows.agreement import LEAST, tau_interval
from dev.pages import locality, published

from ..faults import BUILT
from .test_documents import trained

TABLES = """
[[table]]
name = "a table"
source = "a paper, table 1"
unit = "%"
tasks = { "Recall" = "mqar", "Compress" = "compression" }

[table.scores]
"full" = [90, 99]
"deltanet[block=paper]" = [80, 98]
"mamba[block=paper]" = [70, 97]
"gla[block=paper]" = [60, 96]
"hyena[block=paper]" = [50, 95]
"mlstm[block=paper]" = [40, 94]
"rwkv7[block=paper]" = [30, 93]
"mesa[block=paper]" = [30, 92]
"""
# In the published order, each surely better than the next but for the last two, which tie on both sides.
SCORES = {"full": 0.98, "deltanet[block=paper]": 0.9, "mamba[block=paper]": 0.8, "gla[block=paper]": 0.7, "hyena[block=paper]": 0.6,
          "mlstm[block=paper]": 0.5, "rwkv7[block=paper]": 0.4, "mesa[block=paper]": 0.4}  # fmt: skip


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
        recall, compress = self.lines(self.seeds())
        low, high = tau_interval(1.0, 8)
        self.assertEqual(recall[:4], ["a table", "Recall", "`mqar length=64, causal`", "rows.jsonl"])
        self.assertEqual(recall[4], ", ".join(f"`{name}`" for name in SCORES))
        self.assertEqual(recall[5:], ["27", "0", "0", "1", f"1.00 [{low:.2f}, {high:.2f}]", "—"])
        self.assertEqual(compress, ["a table", "Compress", "`compression`", "no rows", *["—"] * 7])

    def test_another_order_has_a_lower_one(self) -> None:
        swapped = self.seeds(**{"hyena[block=paper]": 0.75})  # above gla alone
        self.assertEqual(self.lines(swapped)[0][5:9], ["26", "1", "0", "1"])
        self.assertTrue(self.lines(swapped)[0][9].startswith("0.93 ["), "25 of 27")

    def test_what_is_not_surely_better_is_not_told_apart(self) -> None:
        wide = self.seeds() | {"hyena[block=paper]": [0.3, 0.9]}  # its interval holds all others
        self.assertEqual(self.lines(wide)[0][5:9], ["20", "0", "7", "1"])
        self.assertTrue(self.lines(wide)[0][9].startswith("0.86 ["), "20 / sqrt(20 * 27): below 1, though no pair is in the opposite order")

    def test_fewer_variants_than_an_interval_needs_have_counts_alone(self) -> None:
        seven = self.seeds()
        del seven["mesa[block=paper]"]
        self.assertEqual(LEAST, 8)
        self.assertEqual(self.lines(seven)[0][5:], ["21", "0", "0", "0", "fewer than 8 variants", "—"])

    def test_a_training_that_stays_at_the_shortcut_decides_nothing(self) -> None:
        for test in (0.1, 0.2505):  # the best shortcut has 0.25, and an example more is no order
            low = self.seeds() | {"gla[block=paper]": [0.9, test]}
            recall = self.lines(low)[0]
            self.assertNotIn("gla", recall[4])
            self.assertEqual(recall[5:9], ["20", "0", "0", "1"])
            self.assertEqual(recall[10], "`gla[block=paper]` (1 of 2 at the shortcut)")

    def test_trainings_that_were_cut_off_do_not_count(self) -> None:
        recall, _ = self.lines(self.seeds(), ("gla[block=paper]",))
        self.assertNotIn("gla", recall[4])
        self.assertEqual(recall[9:], ["fewer than 8 variants", "`gla[block=paper]` (cut off)"])

    def test_a_mixer_alone_is_another_variant(self) -> None:
        alone = self.seeds()
        alone["gla"] = alone.pop("gla[block=paper]")
        self.assertEqual(self.lines(alone)[0][9:], ["fewer than 8 variants", "—"])

    def test_a_setting_that_was_not_learned_does_not_count(self) -> None:
        self.assertEqual(self.lines(self.seeds(full=0.3))[0][3], "no rows")
        alone = self.seeds()
        del alone["full"]
        self.assertEqual(self.lines(alone)[0][3], "no rows", "nothing is known of the setting")

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
            self.assertLessEqual({name.partition("[")[0] for name in column.scores}, variants)

    def test_a_repository_is_named_with_its_commit_and_each_table_has_every_task_of_mad(self) -> None:
        tables = tomllib.loads((ROOT / "results" / "reference" / "published.toml").read_text(encoding="utf-8"))["table"]
        for table in tables:
            if table["source"].startswith("github.com/"):
                self.assertRegex(table["source"], "commit [0-9a-f]{40}")
            if table["name"].startswith("MAD"):
                self.assertEqual(sorted(table["tasks"].values()), ["compression", "fuzzy_recall", "memorization", "mqar", "noisy_recall", "selective_copy"])


class Locality(unittest.TestCase):
    def line(self, *examples: dict[str, Any]) -> list[str]:
        return locality.line_of(examples, {"length": 40})

    def test_an_example_needs_its_farthest_label(self) -> None:
        near = {"tokens": [1] * 40, "evidence": [0], "distances": [-1, 3, 4]}
        far = {"tokens": [1] * 40, "evidence": [0], "distances": [-1, 30, 2]}
        self.assertEqual(self.line(near, far), ["position", "40", "all", "4", "30", "30", "75%"])

    def test_a_label_of_a_sequence_has_one_distance(self) -> None:
        one = {"values": [0.5] * 80, "evidence": [1, 9], "distances": [8]}
        none = {"values": [0.5] * 80, "evidence": [], "distances": []}
        self.assertEqual(self.line(one, none), ["sequence", "40", "1 of 2", "8", "8", "8", "0%"])
        self.assertEqual(self.line(none), ["unknown", "40", *["—"] * 5])

    def test_an_input_that_does_not_fill_the_length_says_so(self) -> None:
        one = {"tokens": [1] * 25, "evidence": [0], "distances": [2]}
        self.assertEqual(self.line(one)[1:], ["25 of 40", "all", "2", "2", "2", "100%"], "a tenth of 25, not of 40")
        self.assertEqual(locality.line_of([one | {"distances": [3]}], {"length": 40})[-1], "0%")
        self.assertEqual(locality.line_of([one], {})[1], "25")

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
        specs = ["b[length=9]", "b[length=30]", "a[preset=small]", "a[length=2]", "b[length=30,kind=x]"]
        more = [("b[length=30]", {"length": 30}), ("b[length=30,kind=x]", {"length": 30, "kind": "x"})]
        self.assertEqual(list(locality.settings(listed, specs)), [*found, *more], "what a preset or the defaults are is not told twice")

    def test_every_task_of_the_sweep_is_a_line(self) -> None:
        specs = locality.trained(ROOT / "results" / "reference" / "locality.toml")
        page = (ROOT / "results" / "locality.md").read_text(encoding="utf-8")
        self.assertEqual(len(specs), 9)
        for spec in specs:
            self.assertIn(f"\n| `{'induction' if spec == 'induction[length=32]' else spec}` |", page)  # 32 is its default
