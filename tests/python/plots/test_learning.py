"""Learning curves, and the kinds of pictures without a caption that show scores along an axis."""

from __future__ import annotations

import unittest
from typing import Any

from attnbench.plots.kinds.panel_kinds import numbered, panels_of
from attnbench.plots.kinds.training import spread, while_training
from attnbench.plots.rows.read import Rows, _cell
from attnbench.plots.rows.style import Styles

from .. import fixture
from . import many, probe_rows


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

    def test_the_overview_is_three_panels_of_other_kinds(self) -> None:
        few = many.rows(5)
        self.assertEqual(self.names("overview", few), ["overview-speed", "overview-memory", "overview-tradeoff"])
        every = [p.name for p in panels_of(None, few, Styles(few))]
        self.assertEqual([n for n in every if n.startswith("overview")], [])
        self.assertEqual(len(set(every)), len(every))

    def test_two_levels_of_a_task_have_names_of_their_own(self) -> None:
        self.assertEqual(numbered(["a", "b", "a", "a"]), ["a", "b", "a-2", "a-3"])


if __name__ == "__main__":
    unittest.main()
