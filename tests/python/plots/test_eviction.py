"""Scores under caches that forget: which scores are of a method, what stands at a budget, and the picture."""

from __future__ import annotations

import unittest
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt

from attnbench.plots.gallery import draw_all
from attnbench.plots.kinds.eviction import budgets_of, by_method, kept_by, methods_of, points_by_budget
from attnbench.plots.kinds.panel_kinds import panels_of
from attnbench.plots.layout.page import Picture
from attnbench.plots.rows.read import NothingDrawn, Rows
from attnbench.plots.rows.style import MARKERS, Styles

from .. import fixture
from . import probe_rows
from .test_trades import rows

OWN = {"kernel": "tiled"}  # as in rows: what eviction added is left out
METHODS = {"recent": 0.2, "random": 0.25, "sinks": 0.3, "h2o": 0.5, "tova": 0.6, "norm": 0.1, "quest": 0.7}  # score of a budget of 4
EXACT = 0.96


def under(method: str, budget: float, test: float | None, **more: Any) -> dict[str, Any]:
    reason = None if test is not None else "the weights do not fit"
    return {"params": {**OWN, "evict": method, "budget": budget, "when": "always", **more}, "test": test, "stderr": None if test is None else 0.01, "reason": reason}


def scored(seed: int = 0, task: str = "mqar", budgets: tuple[float, ...] = (4.0, 16.0, 64.0), **more: Any) -> dict[str, Any]:
    """Each budget after the first gains as much; the last has what exact attention has. A seed adds a hundredth."""
    entries = []
    for name, first in METHODS.items():
        for place, budget in enumerate(budgets):
            share = place / (len(budgets) - 1)
            entries.append(under(name, budget, first + share * (EXACT - first) + 0.01 * seed))
    return probe_rows.cell("full", task, EXACT + 0.01 * seed, seed=seed, params=OWN, by_params=entries, **more)


def pictures(*lines: dict[str, Any]) -> tuple[Rows, list[Picture]]:
    """Of a catalogue in which `sinks` is a variant, and other variants follow."""
    listed = [{"name": name, "order": order, "family": "pattern", "params": {}} for order, name in enumerate(("full", "sinks", *"abcdef"))]
    held = replace(rows(*lines), runs=[{**fixture.header(), "variants": listed}])
    return held, draw_all(held, "eviction")


class Scores(unittest.TestCase):
    def test_a_method_has_the_scores_in_which_only_method_and_budget_are_others(self) -> None:
        entries = [
            under("h2o", 16, 0.5),
            under("h2o", 4, 0.3),
            under("h2o", 8, 0.4, when="prompt"),
            under("h2o", 32, 0.9, kernel="materialized"),
            under("h2o", 64, None),
            under("none", 64, 0.9),
            under("snapkv", 4, None),
        ]
        (cell,) = rows(probe_rows.cell("full", "mqar", 0.9, params=OWN, by_params=entries)).cells
        self.assertEqual(methods_of(cell), ["h2o"])
        self.assertEqual([(b, e["test"]) for b, e in kept_by(cell, "h2o").items()], [(4.0, 0.3), (16.0, 0.5)])

    def test_less_than_a_page_is_no_budget_of_what_reads_pages(self) -> None:
        entries = [under(name, budget, 0.5) for name in ("quest", "tova") for budget in (4, 16, 32)]
        (cell,) = rows(probe_rows.cell("full", "mqar", 0.9, params=OWN, by_params=entries)).cells
        self.assertEqual((list(kept_by(cell, "quest")), list(kept_by(cell, "tova"))), ([16.0, 32.0], [4.0, 16.0, 32.0]))

    def test_points_are_means_over_seeds_and_exact_attention_stands_at_every_budget(self) -> None:
        held = by_method(rows(scored(0), scored(1))).cells
        self.assertEqual(list(dict.fromkeys(c.variant for c in held)), ["full", *METHODS])
        tova = points_by_budget([c for c in held if c.variant == "tova"])
        self.assertEqual([(b, round(mean, 6)) for b, mean, _ in tova], [(4.0, 0.605), (16.0, 0.785), (64.0, 0.965)])
        self.assertAlmostEqual(tova[0][2], 12.7062 * 0.005, places=4, msg="Student's t of two seeds")
        exact = points_by_budget([c for c in held if c.variant == "full"])
        self.assertEqual([(b, round(mean, 6)) for b, mean, _ in exact], [(4.0, 0.965), (16.0, 0.965), (64.0, 0.965)])

    def test_rows_without_such_scores_and_other_variants_are_left_out(self) -> None:
        other = probe_rows.cell("linear", "mqar", 0.5)
        shared = probe_rows.cell("full", "mqar", 0.9, params=OWN, training={"kv_heads": 1})
        held = by_method(rows(scored(), other, shared))
        self.assertEqual({c.id for c in held.cells}, {scored()["cell"]})
        self.assertEqual({c.params for c in held.cells}, {()}, "settings of rows that are left out tell nothing apart")
        with self.assertRaises(NothingDrawn):
            pictures(other, shared)


class Drawn(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(plt.close, "all")

    def test_a_panel_for_each_task_and_a_line_for_each_method(self) -> None:
        _, (picture,) = pictures(scored(0), scored(1), scored(0, "needle"))
        self.assertEqual(picture.name, "accuracy-eviction")
        panels = [a for a in picture.figure.axes if a.axison]
        self.assertEqual(len(panels), 2)
        for axes in panels:
            self.assertEqual((axes.get_xscale(), axes.get_xlabel()), ("log", "positions that are kept"))
            self.assertEqual([t.get_text() for t in axes.get_xticklabels()], ["4", "16", "64"])
            drawn = [line for line in axes.lines if line.get_marker() in MARKERS and list(line.get_xdata())[-2:] == [16, 64]]
            self.assertEqual(sorted(len(line.get_xdata()) for line in drawn), [2, *[3] * len(METHODS)], "quest has no point below its page")
            looks = {(line.get_marker(), str(line._unscaled_dash_pattern)) for line in drawn}
            self.assertEqual(len(looks), len(drawn), "legible without colours")
        named = {text.get_text(): line for legend in picture.figure.legends for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)}
        self.assertEqual(set(named) - {"chance", "best shortcut"}, {"full", *METHODS})
        for look in (lambda line: line.get_marker(), lambda line: str(line._unscaled_dash_pattern)):
            self.assertEqual(len({look(named[name]) for name in METHODS}), len(METHODS), "no two methods share a marker or a dash")
        self.assertEqual(len(picture.data), 3 * (3 * (1 + len(METHODS)) - 1))
        first = picture.data.to_dict("records")[0]
        self.assertEqual((first["variant"], first["budget"], first["test"]), ("full", 4.0, EXACT))

    def test_a_training_that_was_cut_off_is_hollow_and_marked(self) -> None:
        _, (picture,) = pictures(scored(ended_by="steps"))
        (axes,) = [a for a in picture.figure.axes if a.axison]
        self.assertEqual(axes.get_title(loc="left"), "mqar\u2020")
        drawn = [line for line in axes.lines if line.get_marker() in MARKERS and list(line.get_xdata())[-2:] == [16, 64]]
        self.assertEqual(({line.get_linestyle() for line in drawn}, len(drawn)), ({"None"}, 1 + len(METHODS)))

    def test_shares_have_an_axis_of_their_own(self) -> None:
        _, (picture,) = pictures(scored(budgets=(0.0625, 0.25, 0.5)))
        (axes,) = [a for a in picture.figure.axes if a.axison]
        self.assertEqual(axes.get_xlabel(), "share of the positions that is kept")

    def test_the_panel_has_the_same_numbers(self) -> None:
        held = rows(scored(0), scored(1))
        (panel,) = panels_of("eviction", held, Styles(held))
        self.assertEqual(panel.name, "accuracy-eviction-mqar")
        told = {s.variant: [(p.x, round(p.y, 6)) for p in points] for s, points in panel.lines}
        self.assertEqual(told["h2o"], [(4.0, 0.505), (16.0, 0.735), (64.0, 0.965)])
        self.assertEqual(len(told), 1 + len(METHODS))

    def test_budgets_of_cells_are_all_that_one_has(self) -> None:
        held = by_method(rows(scored(0), scored(1, budgets=(8.0, 64.0)))).cells
        self.assertEqual(budgets_of(held), [4.0, 8.0, 16.0, 64.0])


if __name__ == "__main__":
    unittest.main()
