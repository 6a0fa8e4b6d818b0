"""Tuned settings: chosen by validation, never by test; accuracy by distance is drawn of them."""

from __future__ import annotations

from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.settings import choice_of, chosen_on_validation, tuning_note

from . import tuned_rows
from .test_plots import InFolder, sketch


class Choice(InFolder):
    def chosen(self, cells: list) -> list:
        return chosen_on_validation(read_rows([self.rows(cells)]).cells)

    def test_validation_decides_and_not_test(self) -> None:
        kept = self.chosen(tuned_rows.cells())
        found = {(c.variant, choice_of(c), c.axes["seed"]) for c in kept}
        rates = {"full": 0.001, "linear": 0.003}
        self.assertEqual(
            found,
            {(v, f"learning_rate={rates[v]}", seed) for v in rates for seed in (0, 1)},
        )
        self.assertIn("learning rate", tuning_note(kept))

    def test_a_failure_counts_against_its_choice(self) -> None:
        cells = tuned_rows.cells()
        for row in cells:  # one of the two seeds of the better rate of `full`
            if (row["variant"]["name"], row["training"]["learning_rate"]) == ("full", 0.001):
                row.update(status="diverged", reason="loss", metrics=None)
                break
        kept = [c for c in self.chosen(cells) if c.variant == "full"]
        self.assertEqual({c.training["learning_rate"] for c in kept}, {0.003})

    def test_a_choice_that_lacks_a_seed_loses(self) -> None:
        cells = tuned_rows.cells()
        cells = [c for c in cells if c is not cells[0]]  # of full, the better rate, seed 0
        kept = [c for c in self.chosen(cells) if c.variant == "full"]
        self.assertEqual({c.training["learning_rate"] for c in kept}, {0.003})

    def test_a_tie_goes_to_the_smaller_value_in_whatever_order_rows_come(self) -> None:
        cells = tuned_rows.cells()
        for row in cells:
            row["metrics"]["validation"] = 0.5
        for order in (cells, cells[::-1]):
            rates = {c.training["learning_rate"] for c in self.chosen(order)}
            self.assertEqual(rates, {0.001})

    def test_seeds_of_two_files_are_one_contest(self) -> None:
        cells = tuned_rows.cells()
        cells[0]["metrics"]["validation"] = 0.1  # full at the better rate: seed 0 alone would lose
        cells[1]["metrics"]["validation"] = 1.0
        cells[2]["metrics"]["validation"] = cells[3]["metrics"]["validation"] = 0.5
        halves = [[c for c in cells if c["axes"]["seed"] == seed] for seed in (0, 1)]
        files = [self.rows(half, name) for half, name in zip(halves, ("a.jsonl", "b.jsonl"))]
        kept = [c for c in chosen_on_validation(read_rows(files).cells) if c.variant == "full"]
        self.assertEqual([c.training["learning_rate"] for c in kept], [0.001, 0.001])

    def test_what_is_not_tuned_is_kept(self) -> None:
        cells = [{**row, "tuned": []} for row in tuned_rows.cells()]
        kept = self.chosen(cells)
        self.assertEqual(len(kept), len(cells))
        self.assertEqual(tuning_note(kept), "Trained with different learning rate.")
        alike = [c for c in kept if c.training["learning_rate"] == tuned_rows.RATES[0]]
        self.assertEqual(tuning_note(alike), "")


class Distance(InFolder):
    def test_drawn_of_the_chosen_cells_alone(self) -> None:
        code, out, err = sketch(self.rows(tuned_rows.cells()))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("accuracy-distance.png", out)
        lines = (self.folder / "rows-plots" / "accuracy-distance.csv").read_text().splitlines()
        self.assertEqual(len(lines), 1 + 2 * 2 * 3)  # variants, seeds, bins
        wanted = ["full", "1", "16", "32", "300"]
        self.assertTrue(any(line.split(",")[3:8] == wanted for line in lines))

    def test_one_bin_is_no_line(self) -> None:
        cells = tuned_rows.cells()
        for row in cells:
            row["metrics"]["by_distance"] = row["metrics"]["by_distance"][:1]
        code, out, _ = sketch(self.rows(cells))
        self.assertEqual(code, 0)
        self.assertNotIn("accuracy-distance", out)
