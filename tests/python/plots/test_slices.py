"""Scores by slice: what is pooled over seeds, which slices are shown, and their marks in pictures and in the report."""

from __future__ import annotations

import unittest
from typing import Any

from attnbench.plots.kinds.panel_kinds import panels_of
from attnbench.plots.kinds.slices import by_slice, points_by_slice, slices
from attnbench.plots.rows.style import Styles
from attnbench.reports import scores
from attnbench.reports.book import Book

from . import probe_rows
from .test_trades import rows

BITS = {"metric": "bits_per_token", "chance": 8.0, "shortcuts": {"n-gram of 2": 3.0}}


def one_bin(low: float, test: float, labels: int = 100, high: float | None = None) -> dict[str, Any]:
    return {"from": low, "to": low if high is None else high, "labels": labels, "examples": 9, "test": test, "stderr": 0.02}


def on_lm(name: str, test: float, seed: int = 0, **more: Any) -> dict[str, Any]:
    """Bytes that repeat take `test`, the others twice as many bits."""
    found = {"repeats": [one_bin(0, 2 * test), one_bin(1, test, 50)], "people": [one_bin(2, test)]}
    return probe_rows.cell(name, "lm", test, seed=seed, slices=found, **BITS, **more)


class Points(unittest.TestCase):
    def test_seeds_are_pooled_value_by_value(self) -> None:
        held = rows(on_lm("full", 1.0), on_lm("full", 1.2, 1)).cells
        first, second = points_by_slice(held, "repeats")
        self.assertEqual((first[0], round(first[1], 9)), (0, 2.2))
        self.assertEqual((second[0], round(second[1], 9)), (1, 1.1))
        self.assertAlmostEqual(second[2], 12.7062 * 0.1, places=3, msg="Student's t of two seeds")
        (alone, _) = points_by_slice(held[:1], "repeats")
        self.assertAlmostEqual(alone[2], 1.96 * 0.02)

    def test_bins_of_several_values_are_pooled_by_powers_of_two(self) -> None:
        wide = {"gap": [one_bin(0, 1.0), one_bin(1, 0.9), one_bin(2, 0.8, high=3), one_bin(9, 0.5, high=14)]}
        fine = {"gap": [one_bin(2, 0.6, 30), one_bin(3, 0.4, 10), one_bin(8, 0.3, high=15), one_bin(-2, 0.1), one_bin(-9, 0.2)]}
        cells = [probe_rows.cell("full", "mqar", 0.5, seed=s, slices=found) for s, found in enumerate((wide, fine))]
        found = [(round(at, 6), round(mean, 6)) for at, mean, _ in points_by_slice(rows(*cells).cells, "gap")]
        # 2 to 3: 0.8 of one seed, (30·0.6 + 10·0.4) / 40 of the other; in the middle (100·2.5 + 30·2 + 10·3) / 140.
        middle = round(340 / 140, 6)
        self.assertEqual(found, [(-9, 0.2), (-2, 0.1), (0, 1.0), (1, 0.9), (middle, 0.675), (11.5, 0.4)])

    def test_single_values_between_powers_of_two_stay_apart(self) -> None:
        hops = {"hops": [one_bin(h, 1 / h) for h in (1, 2, 3)]}
        held = rows(probe_rows.cell("full", "compose", 0.5, slices=hops)).cells
        self.assertEqual([at for at, _, _ in points_by_slice(held, "hops")], [1, 2, 3])

    def test_a_cell_that_failed_has_no_points(self) -> None:
        failed = on_lm("full", 1.0) | {"status": "failed", "reason": "planted", "metrics": None, "samples": None}
        self.assertEqual(points_by_slice(rows(failed).cells, "repeats"), [])


class Slices(unittest.TestCase):
    def test_slices_that_part_the_labels_are_shown(self) -> None:
        found = by_slice(rows(on_lm("full", 1.0), on_lm("linear", 1.5)))
        self.assertEqual([(g.name, g.slug) for g in found], [("repeats", "lm-repeats")])
        self.assertIn("by repeats", found[0].title)
        self.assertEqual(by_slice(rows(probe_rows.cell("full", "lm", 1.0, **BITS))), [], "rows from before")

    def test_picture_table_and_panel(self) -> None:
        held = rows(on_lm("full", 1.0), on_lm("linear", 1.5, ended_by="steps"))
        (picture,) = slices(held, Styles(held))
        self.assertEqual(picture.name, "accuracy-slices")
        table = picture.data.to_dict("records")
        self.assertEqual([(r["variant"], r["slice"], r["from"], r["test"], r["labels"]) for r in table[:2]], [("full", "repeats", 0, 2.0, 100), ("full", "repeats", 1, 1.0, 50)])
        self.assertEqual({r["metric"] for r in table}, {"bits_per_token"})
        (axes,) = [a for a in picture.figure.axes if a.axison]
        self.assertEqual(axes.get_xlabel(), "repeats")
        self.assertTrue(any("\u2020" in t.get_text() for t in axes.texts), "the mark of a training that was cut off")
        (panel,) = panels_of("slices", held, Styles(held))
        self.assertEqual(panel.name, "accuracy-slices-lm-repeats")
        hollow = {s.variant: {p.is_hollow for p in points} for s, points in panel.lines}
        self.assertEqual(hollow, {"full": {False}, "linear": {True}})

    def test_two_tasks_of_one_name_have_pictures_of_their_own(self) -> None:
        longer = on_lm("full", 0.9)
        longer["task"]["params"]["length"] = 128
        held = rows(on_lm("full", 1.0), longer)
        self.assertEqual([p.name for p in panels_of("slices", held, Styles(held))], ["accuracy-slices-lm-repeats", "accuracy-slices-lm-repeats-2"])

    def test_the_report_has_a_section(self) -> None:
        held = rows(on_lm("full", 1.0), on_lm("linear", 1.5, ended_by="steps"))
        found = scores.by_slice(scores.Tasks(Book(held, Styles(held))))
        assert found is not None
        (panel,) = found["panels"]
        self.assertEqual((panel["x"]["title"], [p[:2] for p in panel["lines"][0]["points"]]), ("repeats", [[0, 2], [1, 1]]))
        self.assertEqual([(line["mark"], line.get("hollow")) for line in panel["lines"]], [("", None), ("\u2020", True)])
        without = rows(probe_rows.cell("full", "lm", 1.0, **BITS))
        self.assertIsNone(scores.by_slice(scores.Tasks(Book(without, Styles(without)))))


if __name__ == "__main__":
    unittest.main()
