"""The trade-off: costs of the score's parameters and length, or the difference written down."""

from __future__ import annotations

import unittest
from typing import Any

import matplotlib.pyplot as plt

from attnplot.rows import read_rows
from attnplot.style import Styles
from attnplot.trade_panel import draw_trade
from attnplot.trades import Trade, front, trade_panels

from . import fixture, many
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

    def test_another_parameter_of_the_cost_is_written_at_the_point(self) -> None:
        cells = [cell("performer", "image", 0.5, params={"features": 64}, causal=False)]
        cells += [cell("linear", "image", 0.4, causal=False)]
        wide = {**dict(fixture.VARIANTS)["performer"], "features": 256}
        trade = self.trade([*cells, *costs("performer", wide, 64), *costs("linear", {}, 64)])
        told = {d.series.label: d.params for d in trade.dots}
        self.assertEqual(told, {"performer": "cost at features=256", "linear": ""})
        figure, axes = plt.subplots()
        self.addCleanup(plt.close, figure)
        draw_trade(axes, trade, 64000.0)
        words = [t.get_text() for t in axes.texts]
        self.assertIn("performer\ncost at features=256", words)
        self.assertNotIn("scores:", trade.axis)

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


if __name__ == "__main__":
    unittest.main()
