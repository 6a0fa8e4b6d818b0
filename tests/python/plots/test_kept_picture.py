"""The picture of scores against what decoding keeps, and the bytes that a setting of eviction keeps."""

from __future__ import annotations

import csv
import subprocess
import unittest
from dataclasses import replace
from typing import Any

from PIL import Image

from attnbench.plots.kinds.kept import FORGETS, OTHERS, looks_of, panels_of
from attnbench.plots.rows.kept import evicted_bytes, kept_text, scored, share_of, slots
from attnbench.plots.rows.read import Cell, canonical, read_rows
from attnbench.plots.rows.settings import marks_of

from .. import decoding_rows as made
from ..faults import BUILT, PROGRAM
from .test_plots import InFolder, sketch


class InRows(InFolder):
    def read(self, cells: list[dict[str, Any]]) -> list[Cell]:
        return read_rows([made.written(self.folder / "rows.jsonl", cells)]).cells


class Bytes(InRows):
    def exact(self) -> Cell:
        return self.read(made.score_cells())[0]  # 2 layers, 4 heads of 16, 64 positions: 65,536 bytes

    def kept(self, method: str, budget: float) -> int | None:
        return evicted_bytes(self.exact(), canonical({"evict": method, "budget": budget}))

    def test_a_budget_keeps_so_many_positions_and_the_steps_own(self) -> None:
        self.assertEqual([slots(b, 64) for b in (4, 63, 64, 100, 0.25, 0.001)], [5, 64, 64, 64, 17, 2])

    def test_each_position_has_key_value_place_and_what_it_is_ranked_by(self) -> None:
        self.assertEqual(self.kept("recent", 16), 17 * 8 * (2 * 16 * 4 + 4))
        self.assertEqual(self.kept("tova", 16), 17 * 8 * (2 * 16 * 4 + 4 + 4))
        self.assertEqual(self.kept("norm", 0.25), 17 * 8 * (2 * 16 * 4 + 4 + 8))
        self.assertEqual(self.kept("h2o", 4), 5 * 8 * (2 * 16 * 4 + 4 + 8 + 4))

    def test_quest_keeps_all_and_the_bounds_of_pages_of_16(self) -> None:
        self.assertEqual(self.kept("quest", 4), 65536 // 64 * (64 + 4))

    @BUILT
    def test_the_program_keeps_as_many(self) -> None:
        specs = ("full[evict=[recent,random,sinks,h2o,norm,quest],budget=[4,0.25]]", "full[evict=tova,budget=4]")
        path = self.folder / "of_program.jsonl"
        shape = ("--mode", "decode", "--length", "64", "--batch", "2", "--heads", "4", "--head-dim", "16")
        variants = [word for spec in specs for word in ("-v", spec)]
        subprocess.run([PROGRAM, "run", *variants, "--measure", "memory", *shape, "-o", path, "-q", "-y"], check=True, capture_output=True)
        cells = [c for c in read_rows([path]).cells if c.ok]
        self.assertEqual(len(cells), 13)
        exact = self.exact()
        for cell in cells:  # a batch of two is as two layers
            self.assertEqual(cell.metric("state_bytes"), evicted_bytes(exact, cell.params), kept_text(cell))


class Scores(InRows):
    def test_each_other_cache_is_a_score_of_the_same_weights(self) -> None:
        cells = scored(self.read(made.score_cells())[:1])
        told = [(dict(c.params).get("evict"), dict(c.params).get("budget"), c.metric("test")) for c in cells]
        self.assertEqual(told, [(None, None, 1.0), ("recent", "4.0", 0.53125), ("h2o", "4.0", 0.6), ("recent", "16.0", 0.625), ("h2o", "16.0", 0.98)])
        self.assertEqual({c.id for c in cells}, {cells[0].id})

    def test_a_score_that_the_row_has_a_reason_for_is_left_out(self) -> None:
        (cell,) = self.read(made.score_cells())[:1]
        entries = [{**e, "test": None, "stderr": None, "reason": "no"} if e["params"]["evict"] == "h2o" else e for e in cell.metrics["by_params"]]
        kept = scored([replace(cell, metrics={**cell.metrics, "by_params": entries})])
        self.assertEqual([dict(c.params).get("evict") for c in kept], [None, "recent", "recent"])

    def test_quest_has_no_score_below_a_page(self) -> None:
        (cell,) = self.read(made.score_cells())[:1]
        entries = [{"params": {"evict": "quest", "budget": b}, "test": 0.5, "stderr": 0.01, "reason": None} for b in (4.0, 15.0, 16.0, 0.1, 0.25)]
        kept = scored([replace(cell, metrics={**cell.metrics, "by_params": entries})])
        self.assertEqual([dict(c.params).get("budget") for c in kept], [None, "16.0", "0.25"], "a tenth of 64 positions is no page, a quarter is one")

    def test_a_score_in_which_another_parameter_changed_is_left_out(self) -> None:
        (cell,) = self.read(made.score_cells())[:1]
        entries = [{"params": made.FULL | {"evict": "h2o", "budget": 16.0, "when": when}, "test": 0.5, "stderr": 0.01, "reason": None} for when in ("always", "prompt")]
        kept = scored([replace(cell, metrics={**cell.metrics, "by_params": entries})])
        self.assertEqual([dict(c.params).get("when") for c in kept], [None, "always"])

    def test_a_training_that_failed_marks_each_cache(self) -> None:
        cells = self.read(made.score_cells())
        (first, second, *_) = (c for c in cells if c.task == "mqar" and c.variant == "full" and not c.training["kv_heads"])
        kept = scored([first, replace(second, status="diverged", reason="no", metrics={})])
        h2o = [c for c in kept if dict(c.params).get("evict") == "h2o" and dict(c.params)["budget"] == "16.0"]
        self.assertEqual(([c.ok for c in h2o], marks_of(h2o)), ([True, False], "!"))

    def test_a_share_is_of_the_positions(self) -> None:
        cells = self.read(made.time_cells())
        shares = {kept_text(c): share_of(c) for c in cells if c.length == 4096 and c.axes["threads"] == 2}
        self.assertEqual(shares["`full[evict=h2o]`, 1/16 of the positions"], 0.0625)
        self.assertEqual((shares["`truncated`, a window of 1/8"], shares["`linear`"]), (0.125, None))


class Pictures(InRows):
    def drawn(self, cells: list[dict[str, Any]]) -> list[dict[str, str]]:
        path = made.written(self.folder / "rows.jsonl", cells)
        done = sketch(path, "-o", self.folder / "out", "--kind", "kept")
        self.assertEqual((done[0], done[2]), (0, ""))
        with (self.folder / "out" / "accuracy-kept.csv").open(newline="") as stream:
            return list(csv.DictReader(stream))

    def test_a_task_has_a_panel_of_what_forgets_and_one_of_the_others(self) -> None:
        lines = self.drawn(made.score_cells())
        mqar = [line for line in lines if line["task"] == "mqar"]
        places = {(line["panel"], line["line"], line["point"]): (int(line["state_bytes"]), float(line["test"])) for line in mqar}
        self.assertEqual(places[FORGETS, "full", ""], (65536, 1.0))
        self.assertEqual(places[FORGETS, "recent", "budget=16"], (17 * 8 * 132, 0.625))
        self.assertEqual(places[OTHERS, "full", "kv_heads=1"], (16384, 0.99))
        self.assertEqual(places[OTHERS, "truncated", "window=8"], (8192, 0.4))
        self.assertNotIn((FORGETS, "full", "kv_heads=1"), places)
        with Image.open(self.folder / "out" / "accuracy-kept.png") as picture:
            self.assertLess(picture.width, 720, "a phone shows the width whole")
            self.assertIn("mqar: exact attention that forgets (bytes kept of one sequence; test accuracy)", picture.text["Description"])

    def test_what_was_cut_off_carries_its_mark(self) -> None:
        lines = self.drawn(made.score_cells(("linear",)))
        self.assertEqual({line["marks"] for line in lines if line["line"] == "linear"}, {"†"})
        self.assertEqual({line["marks"] for line in lines if line["line"] != "linear"}, {""})

    def test_no_two_lines_look_alike(self) -> None:
        rows = read_rows([made.written(self.folder / "rows.jsonl", made.score_cells())])
        looks = looks_of(panels_of(rows))
        self.assertEqual(list(looks)[0], "full")
        self.assertEqual(len({(look.marker, look.dash) for look in looks.values()}), len(looks))

    def test_rows_scored_under_one_cache_have_no_such_picture(self) -> None:
        cells = made.score_cells()
        for row in cells:
            row["metrics"].pop("by_params", None)
            row.pop("test_with", None)
        rows = read_rows([made.written(self.folder / "rows.jsonl", cells)])
        self.assertEqual(panels_of(rows), [])


if __name__ == "__main__":
    unittest.main()
