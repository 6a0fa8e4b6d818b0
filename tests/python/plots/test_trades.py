"""Scores: the trade-off (costs of the score's parameters and length, or the difference written down),
settings chosen by validation and never by test, learning curves, and kinds of pictures without a caption that
show scores along an axis."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np

from attnbench.plots.kinds.length import distance
from attnbench.plots.kinds.panel_kinds import numbered, panels_of
from attnbench.plots.kinds.tradeoff import trade_words
from attnbench.plots.kinds.trades import Trade, front, trade_panels
from attnbench.plots.kinds.training import effort, learning, spread, while_training
from attnbench.plots.rows.joined import pareto_front
from attnbench.plots.rows.read import Rows, _cell, read_rows
from attnbench.plots.rows.settings import choice_of, chosen_on_validation, tuning_note
from attnbench.plots.rows.style import Styles
from attnbench.reports import scores
from attnbench.reports.book import Book

from .. import fixture
from . import many, probe_rows
from .probe_rows import cell
from .test_plots import InFolder, sketch


class Choice(InFolder):
    def chosen(self, cells: list) -> list:
        return chosen_on_validation(read_rows([self.rows(cells)]).cells)

    def test_validation_decides_and_not_test(self) -> None:
        kept = self.chosen(probe_rows.cells())
        found = {(c.variant, choice_of(c), c.axes["seed"]) for c in kept}
        rates = {"full": 0.001, "linear": 0.003}
        self.assertEqual(
            found,
            {(v, f"learning_rate={rates[v]}", seed) for v in rates for seed in (0, 1)},
        )
        self.assertIn("learning rate", tuning_note(kept))

    def test_a_failure_counts_against_its_choice(self) -> None:
        cells = probe_rows.cells()
        for row in cells:  # one of the two seeds of the better rate of `full`
            if (row["variant"]["name"], row["training"]["learning_rate"]) == ("full", 0.001):
                row.update(status="diverged", reason="loss", metrics=None)
                break
        kept = [c for c in self.chosen(cells) if c.variant == "full"]
        self.assertEqual({c.training["learning_rate"] for c in kept}, {0.003})

    def test_a_choice_that_lacks_a_seed_loses(self) -> None:
        cells = probe_rows.cells()
        cells = [c for c in cells if c is not cells[0]]  # of full, the better rate, seed 0
        kept = [c for c in self.chosen(cells) if c.variant == "full"]
        self.assertEqual({c.training["learning_rate"] for c in kept}, {0.003})

    def test_a_tie_goes_to_the_smaller_value_in_whatever_order_rows_come(self) -> None:
        cells = probe_rows.cells()
        for row in cells:
            row["metrics"]["validation"] = 0.5
        for order in (cells, cells[::-1]):
            rates = {c.training["learning_rate"] for c in self.chosen(order)}
            self.assertEqual(rates, {0.001})

    def test_seeds_of_two_files_are_one_contest(self) -> None:
        cells = probe_rows.cells()
        cells[0]["metrics"]["validation"] = 0.1  # full at the better rate: seed 0 alone would lose
        cells[1]["metrics"]["validation"] = 1.0
        cells[2]["metrics"]["validation"] = cells[3]["metrics"]["validation"] = 0.5
        halves = [[c for c in cells if c["axes"]["seed"] == seed] for seed in (0, 1)]
        files = [self.rows(half, name) for half, name in zip(halves, ("a.jsonl", "b.jsonl"))]
        kept = [c for c in chosen_on_validation(read_rows(files).cells) if c.variant == "full"]
        self.assertEqual([c.training["learning_rate"] for c in kept], [0.001, 0.001])

    def test_what_is_not_tuned_is_kept(self) -> None:
        cells = [{**row, "tuned": []} for row in probe_rows.cells()]
        kept = self.chosen(cells)
        self.assertEqual(len(kept), len(cells))
        self.assertEqual(tuning_note(kept), "Trained with different learning rate.")
        alike = [c for c in kept if c.training["learning_rate"] == probe_rows.RATES[0]]
        self.assertEqual(tuning_note(alike), "")


class Distance(InFolder):
    def test_drawn_of_the_chosen_cells_alone(self) -> None:
        code, out, err = sketch(self.rows(probe_rows.cells()))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("accuracy-distance.png", out)
        lines = (self.folder / "rows-plots" / "accuracy-distance.csv").read_text().splitlines()
        self.assertEqual(len(lines), 1 + 2 * 2 * 3)  # variants, seeds, bins
        wanted = ["full", "1", "16", "32", "300"]
        self.assertTrue(any(line.split(",")[3:8] == wanted for line in lines))

    def test_one_bin_is_no_line(self) -> None:
        cells = probe_rows.cells()
        for row in cells:
            row["metrics"]["by_distance"] = row["metrics"]["by_distance"][:1]
        code, out, _ = sketch(self.rows(cells))
        self.assertEqual(code, 0)
        self.assertNotIn("accuracy-distance", out)


def trained(seed: int, curve: dict[int, float], **more: Any) -> dict[str, Any]:
    row = probe_rows.cell("linear", "mqar", list(curve.values())[-1], seed=seed, **more)
    samples = [{"step": s, "train_loss": 1.0, "validation": v, "seconds": 1.0} for s, v in curve.items()]
    return {**row, "samples": samples}


def rows(*cells: dict[str, Any]) -> Rows:
    return Rows((), [], [_cell(c) for c in cells])


class Curves(unittest.TestCase):
    def test_a_seed_that_ended_keeps_its_last_score(self) -> None:
        both = rows(trained(0, {100: 0.2, 200: 1.0}), trained(1, {100: 0.4, 200: 0.5, 300: 0.8}))
        told = [tuple(round(v, 6) for v in p) for p in spread(both.cells)]
        self.assertEqual(told, [(100, 0.3, 0.2, 0.4), (200, 0.75, 0.5, 1.0), (300, 0.9, 0.8, 1.0)])

    def test_a_line_begins_where_every_seed_has_a_score(self) -> None:
        late = rows(trained(0, {100: 0.2, 200: 1.0}), trained(1, {200: 0.5}))
        self.assertEqual(spread(late.cells), [(200, 0.75, 0.5, 1.0)])

    def test_of_tuned_settings_the_choice_is_drawn(self) -> None:
        worse = trained(0, {100: 0.2, 200: 0.1}, tuned=("learning_rate",), training={"learning_rate": 0.1})
        better = trained(0, {100: 0.6, 200: 0.7}, tuned=("learning_rate",), training={"learning_rate": 0.01})
        (group,) = while_training(rows(worse, better))
        self.assertEqual(spread(group.cells), [(100, 0.6, 0.6, 0.6), (200, 0.7, 0.7, 0.7)])
        self.assertEqual(group.label, "validation accuracy")

    def test_one_score_is_no_curve(self) -> None:
        self.assertEqual(while_training(rows(trained(0, {100: 0.2}))), [])


class Panels(unittest.TestCase):
    def names(self, kind: str, of: Rows) -> list[str]:
        return [p.name for p in panels_of(kind, of, Styles(of))]

    def test_scores_along_distance_length_and_steps(self) -> None:
        few, taught = many.rows(5), rows(*fixture.accuracy_cells())
        self.assertEqual(self.names("distance", few), ["accuracy-distance-image"])
        self.assertEqual(self.names("length", few), ["accuracy-length-image"])
        self.assertEqual(self.names("learning", taught), [f"accuracy-learning-{t}" for t in fixture.TASKS])
        panel = panels_of("learning", taught, Styles(taught))[0]
        curves = {c.id: c for c in taught.cells}
        for _, points in panel.lines:
            held = [(s["step"], s["validation"]) for s in curves[points[0].cell].samples]
            self.assertEqual([(p.x, p.y) for p in points], held)

    def test_the_best_shortcut_is_drawn_beside_chance_where_the_rows_have_it(self) -> None:
        """Beyond the length of training nobody scored it."""
        bins = [{"from": 16 * i, "to": 16 * i + 15, "accuracy": 0.5, "stderr": 0.01, "labels": 99} for i in (1, 2, 3)]
        cells = [c | {"metrics": c["metrics"] and c["metrics"] | {"by_distance": bins, "flops": 1e9}} for c in fixture.accuracy_cells()]
        levels = {"chance": 0.1, "best shortcut": 0.29}  # of listops
        found = rows(*cells)
        for kind, draw in (("learning", learning), ("distance", distance), ("effort", effort)):
            (picture,) = draw(found, Styles(found))
            axes = picture.figure.axes[0]
            drawn = {x.get_ydata()[0] for x in axes.lines if len(set(x.get_ydata())) == 1 and list(x.get_xdata()) == [0, 1]}
            self.assertEqual(drawn, set(levels.values()), kind)
            said = [t.get_text() for legend in picture.figure.legends for t in legend.get_texts()]
            self.assertEqual(said, list(levels), kind)
            if kind != "effort":
                self.assertEqual(panels_of(kind, found, Styles(found))[0].levels, levels)
        few = many.rows(5)
        self.assertEqual(list(panels_of("length", few, Styles(few))[0].levels), ["chance"])
        book = Book(found, Styles(found))
        for told in (scores.while_training, scores.by_distance, scores.against_effort):
            panel = told(scores.Tasks(book))["panels"][0]
            self.assertEqual({level: value for level, _, value in panel["levels"]}, levels)

    def test_the_overview_is_three_panels_of_other_kinds(self) -> None:
        few = many.rows(5)
        self.assertEqual(self.names("overview", few), ["overview-speed", "overview-memory", "overview-tradeoff"])
        every = [p.name for p in panels_of(None, few, Styles(few))]
        self.assertEqual([n for n in every if n.startswith("overview")], [])
        self.assertEqual(len(set(every)), len(every))

    def test_two_levels_of_a_task_have_names_of_their_own(self) -> None:
        self.assertEqual(numbered(["a", "b", "a", "a"]), ["a", "b", "a-2", "a-3"])


def costs(name: str, params: dict[str, Any], n: int, scale: float = 1) -> list[dict[str, Any]]:
    axes = fixture.shape(n, "forward", "attention", False)
    time = {"median": 1e-5 * n * scale, "ci_low": 1e-5 * n, "ci_high": 1e-5 * n, "n": 3}
    speed = {"time_s": time, "tokens_per_s": 1e5 / scale}
    return [
        fixture.cell("speed", name, params, axes, metrics=speed, samples=[1.0] * 3),
        fixture.cell("memory", name, params, axes, metrics={"peak_bytes": 1000 * n}),
    ]


class Costs(InFolder):
    def trade(self, cells: list[dict[str, Any]]) -> Trade:
        rows = read_rows([self.rows(cells)])
        (trade,) = trade_panels(rows, Styles(rows))
        return trade

    def test_a_cost_of_other_parameters_is_named_and_not_drawn(self) -> None:
        cells = [cell("performer", "image", 0.5, params={"features": 64}, causal=False)]
        cells += [cell("linear", "image", 0.4, causal=False)]
        wide = {**dict(fixture.VARIANTS)["performer"], "features": 256}
        trade = self.trade([*cells, *costs("performer", wide, 64), *costs("linear", {}, 64)])
        self.assertEqual([d.series.label for d in trade.dots if d.whole], ["linear"])
        self.assertEqual(trade.dots[0].status, "cost at features=256 alone")
        self.assertEqual(trade.unjoined, {"performer": "features=256"})
        self.assertIn("costs have other parameters than the score: performer (features=256).", trade_words([trade]))
        self.assertNotIn("scores:", trade.axis)
        self.assertIsNone(trade.front)

    def test_no_circle_without_memory_of_these_parameters(self) -> None:
        own = dict(fixture.VARIANTS)["performer"]
        cells = [cell(name, "image", 0.5, causal=False) for name in ("performer", "linear")]
        cells += [costs("performer", own, 64)[0], *costs("linear", {}, 64)]
        cells += [costs("performer", {**own, "features": 256}, 64)[1]]
        peaks = {d.series.variant: d.peak for d in self.trade(cells).dots}
        self.assertEqual(peaks, {"performer": None, "linear": 64000.0})

    def test_the_cost_is_of_the_length_nearest_to_the_task_s(self) -> None:
        cells = [cell(name, "image", 0.5, causal=False) for name in ("full", "linear")]
        for name in ("full", "linear"):
            for n in (32, 128, 1024):
                cells += costs(name, dict(fixture.VARIANTS)[name], n)
        trade = self.trade(cells)  # the task's length is 64
        self.assertEqual(trade.speed.context[3], 128)
        self.assertEqual(trade.memory.context[3], 128)
        self.assertIn("scores: length 64", trade.axis)

    def test_memory_of_another_shape_is_no_part_of_the_record(self) -> None:
        cells = [cell("linear", "image", 0.5, causal=False), costs("linear", {}, 64)[0], costs("linear", {}, 128)[1]]
        trade = self.trade(cells)
        self.assertEqual((trade.speed.context[3], trade.memory), (64, None))
        # Where both were measured at one length, that is the record's, though speed came nearer to the task's length.
        cells += [costs("linear", {}, 128)[0]]
        trade = self.trade(cells)
        self.assertEqual((trade.speed.context[3], trade.memory.context[3]), (128, 128))

    def test_other_shapes_of_scores_are_told(self) -> None:
        cells = [cell("linear", "image", 0.5, causal=False, training={"width": 64, "heads": 2}), *costs("linear", {}, 64)]
        told = self.trade(cells).shapes
        axes = fixture.shape(64, "forward", "attention", False)
        self.assertIn("scores at length 64, 2 heads of 32; costs at length 64", told)
        same = {"width": axes["heads"] * axes["head_dim"], "heads": axes["heads"]}
        self.assertEqual(self.trade([cell("linear", "image", 0.5, causal=False, training=same), *costs("linear", {}, 64)]).shapes, "")

    def test_a_line_holds_the_cells_of_its_figures(self) -> None:
        axes = fixture.shape(64, "forward", "attention", False)
        exactness = fixture.cell("fidelity", "linear", {}, axes, metrics={"relative_error": 0.25})
        score, (speed, memory) = cell("linear", "image", 0.5, causal=False), costs("linear", {}, 64)
        (dot,) = self.trade([score, speed, memory, exactness]).dots
        names = ("score_cell", "speed_cell", "memory_cell", "fidelity_cell")
        self.assertEqual([dot.costs[n] for n in names], [row["cell"] for row in (score, speed, memory, exactness)])
        self.assertEqual(dot.costs["relative_error"], 0.25)

    def test_of_many_those_are_named_that_no_other_beats(self) -> None:
        rows = many.rows(19)
        styles = Styles(rows)
        trade = next(t for t in trade_panels(rows, styles) if t.groups[0].cells[0].task == "image")
        named = {key[0] for key in front(trade, styles)}
        self.assertIn("full", named)
        self.assertLess(len(named), 12)
        best = max((d for d in trade.dots if d.speed), key=lambda d: d.score.mean)
        fastest = max((d for d in trade.dots if d.score and d.speed), key=lambda d: d.speed)
        self.assertTrue({best.series.variant, fastest.series.variant} <= named)
        few = trade_panels(many.rows(5), Styles(many.rows(5)))[0]
        self.assertEqual(len(front(few, Styles(many.rows(5)))), len(few.dots))


class Fronts(InFolder):
    def front(self, *of: tuple[str, float, float, float], samples: float = 0.0, error: bool = False):
        """The front of variants given as name, score, its standard error, and time."""
        cells = []
        for name, test, stderr, time in of:
            cells += [cell(name, "image", test, causal=False, test_stderr=stderr)]
            row = costs(name, dict(fixture.VARIANTS)[name], 64, time)[0]
            row["samples"] = [time * 1e-5 * 64 * (1 + samples * k) for k in (-1, 0, 1)]
            row["visits"] = [1, 1, 1]
            cells.append(row)
        rows = read_rows([self.rows(cells)])
        (trade,) = trade_panels(rows, Styles(rows))
        found = pareto_front(trade.dots, fewer_is_better=error)
        return found, {key[0]: chance for key, chance in found.chance.items()}

    def test_without_noise_a_variant_is_on_the_front_or_not(self) -> None:
        found, chance = self.front(("full", 0.9, 0, 4), ("linear", 0.5, 0, 1), ("performer", 0.4, 0, 2))
        self.assertEqual(chance, {"full": 1, "linear": 1, "performer": 0})
        for speed, best in ((2e4, 0.9), (2.6e4, 0.5), (9e4, 0.5)):
            at = np.searchsorted(found.speeds, speed)
            self.assertEqual((found.low[at], found.best[at], found.high[at]), (best, best, best))
        self.assertFalse(np.isfinite(found.best[np.searchsorted(found.speeds, 1.1e5)]))

    def test_of_errors_the_least_is_best(self) -> None:
        found, chance = self.front(("full", 0.1, 0, 4), ("linear", 0.3, 0, 1), ("performer", 0.4, 0, 2), error=True)
        self.assertEqual(chance, {"full": 1, "linear": 1, "performer": 0})
        self.assertAlmostEqual(found.best[0], 0.1)

    def test_a_tie_within_the_noise_is_on_the_front_in_half_of_the_draws(self) -> None:
        found, chance = self.front(("full", 0.7, 0.02, 2), ("linear", 0.7, 0.02, 1))
        self.assertEqual(chance["linear"], 1)
        self.assertAlmostEqual(chance["full"], 0.5, delta=0.1)
        # The best of two, each normal with a deviation of 0.02: its mean lies 0.0113 above theirs.
        self.assertGreater(found.high[0], 0.73)
        self.assertLess(found.low[0], 0.7)

    def test_two_speeds_that_agree_leave_both_variants_a_chance(self) -> None:
        _, chance = self.front(("full", 0.7, 0, 1.02), ("linear", 0.6, 0, 1), samples=0.05)
        self.assertEqual(chance["full"], 1)
        self.assertTrue(0.3 < chance["linear"] < 0.9, chance)
