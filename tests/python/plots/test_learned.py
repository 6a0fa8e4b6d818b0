"""Pictures and pages hold no score of a setting that its control has not learned."""

from __future__ import annotations

import json
import re
from typing import Any

from attnbench.plots.kinds.accuracy import accuracy
from attnbench.plots.kinds.training import learning
from attnbench.plots.rows.learned import bar_of, published, setting_of
from attnbench.plots.rows.read import Rows
from attnbench.plots.rows.style import Styles
from attnbench.reports.document import document

from .. import fixture
from .probe_rows import cell
from .test_overview import InOverview
from .test_plots import plot

BAR = 0.57  # half way from the best shortcut of `cell`, 0.14, to 1
CURVE = [{"step": s, "train_loss": 1.0, "validation": 0.2, "seconds": 1.0 * s} for s in (100, 200)]


def seeds(name: str, task: str, *tests: float, **more: Any) -> list[dict[str, Any]]:
    return [cell(name, task, test, seed=seed, **more) for seed, test in enumerate(tests)]


class Learned(InOverview):
    def of(self, *cells: list[dict[str, Any]]) -> Rows:
        return self.rows([row for own in cells for row in own])

    def test_the_bar_is_half_way_from_the_best_shortcut_to_a_perfect_score(self) -> None:
        (one,) = self.of(seeds("full", "copy", 0.9)).cells
        self.assertAlmostEqual(bar_of(one), BAR)
        (error,) = self.of(seeds("full", "adding", 0.1, metric="mean_squared_error")).cells
        self.assertAlmostEqual(bar_of(error), 0.085, msg="0.17 is the least error of a shortcut")
        shortcuts = {"label frequencies": 4.5, "n-gram of 2": 2.5, "n-gram of 3": 3.0}
        (bits,) = self.of(seeds("full", "lm", 2.1, metric="bits_per_token", chance=8.0, shortcuts=shortcuts)).cells
        self.assertAlmostEqual(bar_of(bits), 2.5, msg="the best shortcut")

    def test_every_seed_of_the_control_must_reach_it(self) -> None:
        found = setting_of(self.of(seeds("full", "copy", 0.9, 0.5), seeds("linear", "copy", 0.99, 0.99)).cells)
        self.assertEqual((found.control, found.learned, found.reached, found.seeds), ("full", False, 1, 2))
        self.assertEqual(found.words, "copy: full scores 0.700, and reached the bar of 0.570 in 1 of 2 seeds")
        self.assertTrue(setting_of(self.of(seeds("full", "copy", 0.9, 0.58)).cells).learned)

    def test_without_its_control_a_setting_is_not_judged(self) -> None:
        rows = self.of(seeds("linear", "copy", 0.99))
        self.assertIsNone(setting_of(rows.cells).learned)
        self.assertEqual(len(published(rows).cells), 1)

    def test_the_rows_may_name_another_solver(self) -> None:
        rows = self.of(seeds("full", "parity", 0.9, solver="recurrent"), seeds("recurrent", "parity", 0.3, solver="recurrent"))
        found = setting_of(rows.cells)
        self.assertEqual((found.control, found.learned), ("recurrent", False))

    def test_a_training_that_failed_has_not_reached_it(self) -> None:
        rows = seeds("full", "copy", 0.9, 0.9)
        rows[1] |= {"status": "timeout", "reason": "20 minutes", "metrics": None, "samples": None}
        self.assertFalse(setting_of(self.of(rows).cells).learned)

    def test_what_a_shortcut_solves_is_not_judged(self) -> None:
        self.assertTrue(setting_of(self.of(seeds("full", "majority", 0.2, control="a bag")).cells).learned)

    def test_the_same_recipe_alone_counts(self) -> None:
        long = seeds("full", "copy", 0.9, training={"steps": 900})
        rows = published(self.of(seeds("full", "copy", 0.2), long, seeds("linear", "copy", 0.99)))
        self.assertEqual([(c.variant, c.training["steps"]) for c in rows.cells], [("full", 900)])

    def test_pictures_and_the_report_leave_it_out_and_say_so(self) -> None:
        cut = [row | {"samples": CURVE} for row in seeds("full", "copy", 0.3)]
        rows = published(self.of(cut, seeds("linear", "copy", 0.987), seeds("full", "reverse", 0.9), seeds("linear", "reverse", 0.8)))
        words = "copy: full scores 0.300, and reached the bar of 0.570 in 0 of 1 seed"
        self.assertEqual(rows.left_out, (words,))
        (picture,) = accuracy(rows, Styles(rows))
        self.assertEqual(set(picture.data["task"]), {"reverse"})
        self.assertIn(f"Left out, for the control has not learned them: {words}.", picture.caption)
        (curves,) = learning(rows, Styles(rows))
        self.assertEqual(set(curves.data["task"]), {"copy"}, "how a training went is shown")
        page = document(rows)
        self.assertIn(words, page)
        self.assertNotIn("0.987", page)

    def test_a_report_of_no_other_score_says_why_where_the_scores_would_stand(self) -> None:
        rows = published(self.of(seeds("full", "copy", 0.3), seeds("linear", "copy", 0.987)))
        words = "copy: full scores 0.300, and reached the bar of 0.570 in 0 of 1 seed"
        page = document(rows)
        self.assertEqual(page.count(words), 2)
        told = re.search(r"<li>([^<]*)</li>", page)[1]  # in the summary
        self.assertTrue(told.startswith("Scores are left out where the control has not learned the task") and words in told, told)
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
        (scores,) = [s for s in data["sections"] if s["id"] == "accuracy"]
        self.assertIn(f"No score is shown. Left out, for the control has not learned them: {words}. ", scores["lead"])
        self.assertIn("train longer (--train steps=N)", scores["lead"])
        (sources,) = [s for s in data["sections"] if s["id"] == "sources"]
        self.assertIn("every row except those of scores that are left out", sources["lead"])
        whole = document(published(self.of(seeds("full", "copy", 0.9))))
        self.assertNotIn("left out", re.sub(r"<script>.*?</script>", "", whole, flags=re.DOTALL))

    def test_variants_whose_every_score_is_left_out_have_learning_curves(self) -> None:
        names = ("full", "linear", "performer")
        rows = published(self.of(*([row | {"samples": CURVE} for row in seeds(name, "copy", 0.3)] for name in names)))
        self.assertEqual(rows.cells, [])
        styles = Styles(rows)
        (curves,) = learning(rows, styles)
        self.assertEqual(set(curves.data["variant"]), set(names))
        self.assertEqual(len({styles.look(name).color for name in names}), len(names))

    def test_where_nothing_is_left_to_draw_plot_says_why_and_what_may_help(self) -> None:
        why = "copy: full scores 0.300, and reached the bar of 0.570 in 0 of 1 seed"
        for ended, advice in (("steps", "try --train schedule=wsd, or steps=N, N above 600"), ("plateau", "try --tune learning_rate --tune-by halving")):
            file = fixture.write(self.folder / "rows.jsonl", seeds("full", "copy", 0.3, training={"steps": 600}, stopped_by=ended))
            for more in ([], ["--kind", "accuracy"]):
                code, out, err = plot(file, "-o", self.folder / "drawn", *more)
                self.assertEqual((code, out), (4, ""), err)
                self.assertIn(f"scores left out: {why}; {advice}\n", err)
                self.assertTrue(err.endswith("; scores are left out, for the control has not learned the setting: see above\n"), err)
                self.assertNotIn("no cell is ok", err)
