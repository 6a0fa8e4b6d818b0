"""The trade-off: costs of the score's parameters and length, or the difference written down."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np

from attnbench.plots.kinds.tradeoff import trade_words
from attnbench.plots.kinds.trades import Trade, front, trade_panels
from attnbench.plots.rows.joined import pareto_front
from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.style import Styles

from .. import fixture
from . import many
from .probe_rows import cell
from .test_plots import InFolder


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


if __name__ == "__main__":
    unittest.main()
