"""Pictures of probes: score against state and length, errors beside shares, settings kept apart."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.text import Text
from PIL import Image

from attnbench.plots.kinds.accuracy import accuracy
from attnbench.plots.kinds.panel_data import LinePanel
from attnbench.plots.kinds.panel_kinds import KINDS
from attnbench.plots.kinds.reach import Depth
from attnbench.plots.kinds.state import state
from attnbench.plots.kinds.tradeoff import draw_trade
from attnbench.plots.kinds.trades import trade_panels
from attnbench.plots.kinds.training import EFFORT_NOTE, LEARNING_NOTE, effort, learning, points_by_effort, spread
from attnbench.plots.rows.read import Cell, Rows, read_rows
from attnbench.plots.rows.scores import score, shortcut_words, task_groups
from attnbench.plots.rows.settings import CUT, choice_of, chosen_on_validation, written
from attnbench.plots.rows.style import Styles
from attnbench.reports import scores
from attnbench.reports.book import Book
from attnbench.reports.curves import reach

from .. import fixture
from . import probe_rows
from .probe_rows import cell
from .test_plots import InFolder, sketch

ERROR = "mean_squared_error"


class Probes(InFolder):
    def table(self, cells: list, picture: str) -> list[dict[str, str]]:
        done = sketch(self.rows(cells), "-o", self.folder / "out")
        self.assertEqual((done[0], done[2]), (0, ""))
        with (self.folder / "out" / f"{picture}.csv").open(newline="") as stream:
            return list(csv.DictReader(stream))

    def told(self, picture: str) -> str:
        return Image.open(self.folder / "out" / f"{picture}.png").text["Description"]

    def read(self, cells: list) -> Rows:
        return read_rows([self.rows(cells)])


class State(Probes):
    def test_a_line_joins_the_settings_of_a_variant_in_order_of_state(self) -> None:
        table = self.table(probe_rows.state_cells(), "accuracy-state")
        lines: dict[str, list[tuple[str, int]]] = {}
        for row in table:
            lines.setdefault(row["line"], []).append((row["point"], int(row["state_bytes"])))
        self.assertEqual(
            lines,
            {
                "full": [("", 65536)],
                "performer features=16, 64, 256": [("16", 17408), ("64", 67584), ("256", 268288)],
                "linear heads=1, 2, 4, 8": [("8", 4352), ("4", 8704), ("2", 17408), ("1", 34816)],
            },
        )
        of_linear = next(r for r in table if r["point"] == "8")
        self.assertAlmostEqual(float(of_linear["test"]), 0.31 - 0.015)  # the mean of two seeds
        self.assertEqual((of_linear["seeds"], of_linear["best_shortcut_score"]), ("2", "0.14"))
        self.assertIn("Without a decode state: truncated.", self.told("accuracy-state"))
        self.assertIn("test accuracy", self.told("accuracy-state"))

    def test_tuned_sizes_are_all_drawn_and_other_tuned_settings_chosen(self) -> None:
        cells = []
        for heads, state in ((1, 4096), (4, 1024)):
            for rate, validation in ((0.001, 0.4), (0.003, 0.6)):
                more = {"training": {"heads": heads, "learning_rate": rate}, "state_bytes": state}
                tuned = ("heads", "learning_rate")
                test = validation + heads / 100
                cells.append(cell("linear", "mqar", test, tuned=tuned, **more))
        table = self.table(cells, "accuracy-state")
        found = [(r["line"], r["point"], float(r["test"])) for r in table]
        line = "linear heads=1, 4"
        self.assertEqual(found, [(line, "4", 0.64), (line, "1", 0.61)])

    def test_a_failed_seed_counts_as_zero_for_its_choice(self) -> None:
        self.assertEqual(self.with_a_failed_seed(0.6), ["0.4"])
        self.assertEqual(self.with_a_failed_seed(0.9), ["0.9"])

    def with_a_failed_seed(self, other: float) -> list[str]:
        """Rate 0.003 validates at `other` where it does not diverge, 0.001 at 0.4 twice."""
        cells = []
        for rate, validation in ((0.001, 0.4), (0.003, other)):
            for seed in (0, 1):
                more = {"training": {"learning_rate": rate}, "tuned": ("learning_rate",)}
                cells.append(cell("linear", "mqar", validation, seed=seed, state_bytes=64, **more))
        failed = {"status": "diverged", "reason": "loss", "metrics": None, "samples": None}
        cells[3] |= failed
        table = self.table([*cells, cell("full", "mqar", 0.9, state_bytes=128)], "accuracy-state")
        return [r["test"] for r in table if r["line"] == "linear"]

    def test_without_states_there_is_no_picture(self) -> None:
        self.assertEqual(sketch(self.rows(fixture.accuracy_cells()))[0], 0)
        self.assertFalse((self.folder / "rows-plots" / "accuracy-state.png").exists())
        self.assertFalse((self.folder / "rows-plots" / "accuracy-length.png").exists())


class Length(Probes):
    def test_a_line_a_variant_and_positions(self) -> None:
        table = self.table(probe_rows.length_cells(), "accuracy-length")
        self.assertEqual(len(table), 4 * 2 * 4)  # lines, seeds, lengths
        names = {r["series"] for r in table}
        self.assertEqual(names, {"full sinusoidal", "full none", "full learned", "linear none"})
        far = [r for r in table if r["series"] == "full none" and r["factor"] == "8"]
        self.assertEqual([(r["length"], r["test"]) for r in far], [("512", "0.7"), ("512", "0.68")])
        self.assertEqual({r["trained_at"] for r in table}, {"64"})
        words = self.told("accuracy-length")
        at = "full learned at \u00d72, \u00d74, \u00d78"
        self.assertIn(f"No score: {at} (learned positions end at 64).", words)

    def test_one_kind_of_positions_is_told_in_the_caption(self) -> None:
        cells = [c for c in probe_rows.length_cells() if c["training"]["positions"] == "none"]
        table = self.table(cells, "accuracy-length")
        self.assertEqual({r["series"] for r in table}, {"full", "linear"})
        self.assertIn("Positions: none.", self.told("accuracy-length"))


    def test_scores_on_other_lengths_of_the_task_stand_in_it_too(self) -> None:
        table = self.table(probe_rows.tested_on_cells(), "accuracy-length")
        of_full = [(r["length"], r["factor"], r["test"]) for r in table if r["series"] == "full"]
        self.assertEqual(
            of_full, [("32", "0.5", "0.95"), ("64", "1", "0.9"), ("128", "2", "0.45"), ("256", "4", "")]
        )
        self.assertEqual({r["trained_at"] for r in table}, {"64"})
        self.assertIn("No score: full, linear at \u00d74 (no such length).", self.told("accuracy-length"))

    def test_other_parameters_than_the_length_are_no_line(self) -> None:
        cells = probe_rows.tested_on_cells()
        for row in cells:
            row["metrics"]["by_task"] = row["metrics"]["by_task"][3:]
        self.assertEqual(sketch(self.rows(cells), "-o", self.folder / "out")[0], 0)
        self.assertFalse((self.folder / "out" / "accuracy-length.csv").exists())


class Effort(Probes):
    def test_steps_become_seconds_and_flops(self) -> None:
        table = self.table(probe_rows.effort_cells(), "accuracy-effort")
        found = {
            (r["effort"], r["series"], r["seed"]): [] for r in table
        }
        for r in table:
            key = r["effort"], r["series"], r["seed"]
            found[key].append((float(r["at"]), float(r["validation"])))
        # 32 examples a step at 1e6 FLOPs each.
        self.assertEqual(found["flops", "full", "1"], [(3.2e8, 0.3), (6.4e8, 0.5)])
        self.assertEqual(found["seconds", "full", "1"], [(30.0, 0.3), (60.0, 0.5)])
        self.assertEqual(found["seconds", "linear", "0"], [(20.0, 0.2), (40.0, 0.4)])
        self.assertNotIn(("flops", "linear", "0"), found)

    def test_a_seed_that_stopped_keeps_its_last_score(self) -> None:
        rows = self.read(probe_rows.effort_cells())
        full = [c for c in rows.cells if c.variant == "full"]
        of_seconds = [[round(v, 9) for v in point] for point in points_by_effort(full, "seconds")]
        # The effort is of the seeds that train on; the score of both.
        self.assertEqual(of_seconds, [[25, 0.25, 0.2, 0.3], [50, 0.45, 0.4, 0.5], [60, 0.55, 0.5, 0.6]])

    def test_a_variant_that_learned_within_its_first_validation_is_a_point(self) -> None:
        quick = cell("kda", "copy", 1.0) | {"samples": [{"step": 20, "train_loss": 0.1, "validation": 1.0, "seconds": 9.0}]}
        found = self.table([*probe_rows.effort_cells(), quick | {"task": probe_rows.effort_cells()[0]["task"]}], "accuracy-effort")
        self.assertIn(("seconds", "kda", "9", "1"), {(r["effort"], r["series"], r["at"], r["validation"]) for r in found})
        learned = self.table([*probe_rows.effort_cells(), quick | {"task": probe_rows.effort_cells()[0]["task"]}], "accuracy-learning")
        self.assertIn(("kda", "20"), {(r["series"], r["step"]) for r in learned})
        rows = self.read([*probe_rows.effort_cells(), quick | {"task": probe_rows.effort_cells()[0]["task"]}])
        for draw in (learning, effort):
            lines = draw(rows, Styles(rows))[0].figure.axes[0].lines
            self.assertEqual(sum(x.get_markersize() > 9 for x in lines), 1, "a ring about the only point")

    def test_a_training_that_was_cut_off_carries_its_mark_in_every_picture(self) -> None:
        cells = [c | {"metrics": c["metrics"] | {"stopped_by": "steps" if c["variant"]["name"] == "full" else "target", "state_bytes": size}}
                 for size, c in enumerate(probe_rows.effort_cells(), 1)]  # fmt: skip
        rows = self.read(cells)
        for draw in (accuracy, learning, effort, state):
            for picture in draw(rows, Styles(rows)):
                told = [t.get_text() for t in picture.figure.findobj(Text) if t.get_text().strip()]
                self.assertTrue(any(t.endswith(CUT) for t in told), (draw, told))
                self.assertFalse([t for t in told if "linear" in t and CUT in t], draw)
                self.assertTrue(any(t.startswith(f"{CUT} training cut off") for t in told), (draw, told))
        panels = [p for kind in ("accuracy", "learning", "state") for p in KINDS[kind](rows, Styles(rows))]
        for panel in panels:
            names = [s.label if isinstance(panel, LinePanel) else p.text for s, p in panel.lines]
            self.assertEqual([n.endswith(CUT) for n in names], [s.variant == "full" for s, _ in panel.lines], panel.name)
            self.assertIn(CUT, panel.x.label)

    def test_scores_have_three_digits_and_a_window_says_what_it_sees(self) -> None:
        self.assertEqual([written(v, "accuracy") for v in (0.13, 0.996, 1.0)], ["0.130", "0.996", "1.000"])
        self.assertEqual(shortcut_words("window of 16 (best)"), "best rule that sees 16 positions in a row")
        self.assertEqual(shortcut_words("random_context_value"), "random context value")

    def test_both_pictures_of_a_training_draw_means(self) -> None:
        rows = self.read([c | {"axes": c["axes"] | {"seed": s}, "cell": f"{s}", "samples": [
            {"step": t, "train_loss": 1.0, "validation": v * t / 10, "seconds": 2.0 * t} for t in (1, 2)]}
            for s, v in enumerate((1.0, 2.0, 6.0)) for c in [cell("full", "copy", 0.9)]])  # fmt: skip
        self.assertEqual([round(p[1], 9) for p in points_by_effort(rows.cells, "seconds")], [0.3, 0.6])
        self.assertEqual([round(p[1], 9) for p in spread(rows.cells)], [0.3, 0.6])
        for note in (LEARNING_NOTE, EFFORT_NOTE):
            self.assertIn("ines are means over the seeds", note)

    def test_one_validation_is_no_curve(self) -> None:
        self.assertEqual(sketch(self.rows([cell("full", "copy", 0.9)]), "-o", self.folder / "out")[0], 0)
        self.assertFalse((self.folder / "out" / "accuracy-effort.csv").exists())

    def test_the_report_has_the_means_and_the_ends_of_the_seeds(self) -> None:
        rows = self.read(probe_rows.effort_cells())
        found = scores.against_effort(scores.Tasks(Book(rows, Styles(rows))))
        assert found is not None
        titles = [p["x"]["title"] for p in found["panels"]]
        self.assertEqual(titles, ["seconds of training", "FLOPs of training"])
        full = next(line for line in found["panels"][1]["lines"] if len(line["points"]) == 3)
        self.assertEqual([p[:4] for p in full["points"]][2], [9.6e8, 0.55, 0.5, 0.6])


class Reach(Probes):
    def cells(self, causal: bool) -> list[dict[str, Any]]:
        out = []
        for layers in (1, 2):
            for seed in (0, 1):
                out.append(probe_rows.reach_cell("full", {"kernel": "tiled"}, layers, lambda d: 0.1, causal=causal, seed=seed))
                out.append(probe_rows.reach_cell("truncated", {"window": 8}, layers, lambda d, most=8 * layers, s=seed:
                                                 (0.2 + s / 10) / d if d <= most else 0.0, causal=causal, seed=seed))  # fmt: skip
        return out

    def test_a_panel_a_depth_and_side(self) -> None:
        self.table(self.cells(causal=False), "reach")
        words = self.told("reach")
        for panel in ("1 layer, earlier inputs", "2 layers, later inputs"):
            self.assertIn(panel, words)
        self.assertNotRegex(words, "Length [^.]*layer")  # the caption's shape is that of all panels
        self.table(self.cells(causal=True), "reach-causal")
        self.assertNotIn("later", self.told("reach-causal").partition(".")[0])

    def test_a_line_is_the_median_and_ends_at_the_floor(self) -> None:
        rows = self.read(self.cells(causal=True))
        own = [c for c in rows.cells if c.variant == "truncated" and c.axes["layers"] == 2]
        found = dict(Depth(2, 1, tuple(own), True).points(own))
        self.assertAlmostEqual(found[8], 0.25 / 8)
        drawn = [d for d, value in found.items() if value == value]
        self.assertEqual(max(drawn), 16)
        self.assertEqual(max(found), 63, "the line is drawn over all distances")
        later = dict(Depth(2, -1, tuple(own), False).points(own))
        self.assertFalse([v for v in later.values() if v == v])

    def test_the_report_draws_what_is_above_the_floor(self) -> None:
        rows = self.read(self.cells(causal=True))
        book = Book(rows, Styles(rows))
        found = reach(book)
        assert found is not None
        self.assertEqual([p["title"] for p in found["panels"]], ["1 layer, causal", "2 layers, causal"])
        far = {book.told()["series"][line["series"]]["variant"]: line["points"][-1][0] for line in found["panels"][1]["lines"]}
        self.assertEqual(far, {"full": 63, "truncated": 16})
        self.assertEqual(len(book.told()["cells"]["id"]), 8)

    def test_the_table_has_both_methods(self) -> None:
        table = self.table(self.cells(causal=False), "reach")
        self.assertEqual(len(table), 8 * 25)
        near = next(r for r in table if r["distance"] == "-1" and r["variant"] == "full")
        self.assertAlmostEqual(float(near["perturbation"]) / float(near["gradient"]), 1.4, places=6)


class Distance(Probes):
    def test_depths_of_a_needle(self) -> None:
        table = self.table(probe_rows.needle_cells(), "accuracy-distance")
        found = [
            (int(r["from"]), int(r["to"]), float(r["accuracy"]))
            for r in table
            if r["variant"] == "truncated"
        ]
        self.assertEqual(len(found), 5)
        self.assertEqual((found[0], found[2]), ((0, 24, 0.98), (51, 75, 0.2)))


class Errors(Probes):
    def test_the_least_error_is_the_best_shortcut(self) -> None:
        table = self.table(probe_rows.error_cells(), "accuracy")
        best = {(r["metric"], r["best_shortcut"], r["best_shortcut_score"]) for r in table}
        self.assertEqual(best, {(ERROR, "last_number", "0.17")})
        for picture in ("accuracy", "accuracy-distance", "accuracy-length", "accuracy-state"):
            words = self.told(picture)
            self.assertIn("test mean squared error", words, picture)
            self.assertNotIn("test accuracy", words, picture)

    def test_every_metric_has_an_axis_of_its_own(self) -> None:
        self.table(probe_rows.probe_cells(), "accuracy")
        words = self.told("accuracy")
        for panel, axis in (
            ("mqar", "test accuracy"),
            ("adding", "test mean squared error"),
            ("reverse", "test exact match"),
        ):
            self.assertIn(f"{panel} ({axis} ", words)
        self.assertIn("Exact attention stands in for linformer in the decoder's self-attention.", words)

    def test_validation_chooses_the_least_error_and_a_failure_loses(self) -> None:
        def chosen(cells: list) -> set[str]:
            return {choice_of(c) for c in chosen_on_validation(self.read(cells).cells) if c.ok}

        cells = []
        for rate, test in ((0.001, 0.01), (0.002, 0.05), (0.003, 0.2)):
            more = {"training": {"learning_rate": rate}, "tuned": ("learning_rate",)}
            cells.append(cell("full", "adding", test, metric=ERROR, **more))
        self.assertEqual(chosen(cells), {"learning_rate=0.001"})
        cells[0] |= {"status": "failed", "reason": "planted", "metrics": None, "samples": None}
        self.assertEqual(chosen(cells), {"learning_rate=0.002"})

    def test_no_mean_holds_an_error_or_an_exact_match(self) -> None:
        rows = self.read(self.with_speed(shares=("listops", "image")))
        means = [t for t in trade_panels(rows, Styles(rows)) if len(t.groups) > 1]
        self.assertEqual([t.title for t in means], ["mean of listops and image"])
        dot = next(d for d in means[0].dots if d.series.variant == "full")
        self.assertAlmostEqual(dot.score.mean, 0.5)
        rows = self.read(self.with_speed(shares=("listops",)))
        self.assertFalse([t for t in trade_panels(rows, Styles(rows)) if len(t.groups) > 1])

    def test_up_is_better_in_every_trade(self) -> None:
        rows = self.read(self.with_speed(shares=("listops",)))
        for trade in trade_panels(rows, Styles(rows)):
            figure, axes = plt.subplots()
            self.addCleanup(plt.close, figure)
            draw_trade(axes, trade, None)
            self.assertEqual(axes.yaxis_inverted(), trade.metric == ERROR)
            low, high = sorted(axes.get_ylim())
            self.assertTrue(all(low < d.score.mean < high for d in trade.dots))

    @staticmethod
    def with_speed(shares: tuple[str, ...]) -> list[dict[str, Any]]:
        cells = [c for c in fixture.quick_cells() if c["measure"] == "speed"]
        for name in ("full", "linear"):
            cells += [cell(name, task, 0.5, causal=False) for task in shares]
            cells.append(cell(name, "adding", 0.01, metric=ERROR, causal=False))
            cells.append(cell(name, "reverse", 0.9, metric="exact_match", causal=False))
        return cells


class Settings(Probes):
    def scores(self, cells: list[Cell]) -> dict[str, float]:
        (group,) = task_groups(cells)
        series = Styles(self.read(probe_rows.state_cells())).series(list(group.cells))
        return {s.label: score(s.cells).mean for s in series}

    def test_cells_of_other_training_are_never_averaged(self) -> None:
        cells = [
            cell("full", "mqar", test, seed=seed, training={"heads": heads})
            for heads, test in ((1, 0.4), (4, 0.8))
            for seed in (0, 1)
        ]
        found = self.scores(chosen_on_validation(self.read(cells).cells))
        self.assertEqual(found, {"full heads=1": 0.4, "full heads=4": 0.8})

    def test_nor_are_they_a_second_measurement_in_another_file(self) -> None:
        files: list[Path] = []
        for heads, test in ((1, 0.4), (4, 0.8)):
            rows = [cell("full", "mqar", test, training={"heads": heads})]
            files.append(self.rows(rows, f"{heads}.jsonl"))
        found = self.scores(chosen_on_validation(read_rows(files).cells))
        self.assertEqual(found, {"full heads=1": 0.4, "full heads=4": 0.8})
