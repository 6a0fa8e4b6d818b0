"""How surely, how soon and at which learning rates a variant learns."""

from __future__ import annotations

from typing import Any

from attnbench.plots.rows.learning import Learning, clopper_pearson, learning_of
from attnbench.plots.rows.settings import winners
from attnbench.reports.document import document

from .probe_rows import cell
from .test_overview import InOverview

FIRST = 0.914  # nine tenths of the way from the best shortcut of `cell`, 0.14, to 1
RATES = {"tuned": ("learning_rate",)}


def curve(**scores: float) -> list[dict[str, Any]]:
    """Validation by step: `curve(s100=0.2)`."""
    return [{"step": int(s[1:]), "train_loss": 1.0, "validation": v, "seconds": 1.0} for s, v in scores.items()]


def trained(test: float, samples: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return cell("linear", "copy", test, **more) | {"samples": samples}


def rate(value: float) -> dict[str, Any]:
    return {"training": {"learning_rate": value}, **RATES}


class Learnings(InOverview):
    def learning(self, *rows: dict[str, Any]) -> Learning:
        read = self.rows(list(rows))
        cells = read.of("accuracy")
        found = learning_of(winners(cells), [*cells, *read.trials])
        assert found is not None
        return found

    def test_the_step_is_the_first_at_nine_tenths_of_the_way(self) -> None:
        found = self.learning(
            trained(0.95, curve(s100=0.5, s200=FIRST + 0.001, s300=0.8), seed=0),
            trained(0.95, curve(s100=FIRST - 0.001, s200=0.5, s300=0.99), seed=1),
            trained(0.95, curve(s100=0.99), seed=2),
        )
        self.assertEqual(found.steps, (100, 200, 300))
        self.assertEqual(found.steps_text, "200 (100 to 300)")
        self.assertEqual(found.share_text, "3 of 3 (0.29 to 1.00)")

    def test_a_seed_that_never_came_so_far_is_censored_and_one_that_failed_counts(self) -> None:
        failed = trained(0.0, [], seed=2) | {"status": "diverged", "reason": "not finite", "metrics": None, "samples": None}
        found = self.learning(trained(0.95, curve(s100=0.95), seed=0), trained(0.3, curve(s100=0.2, s400=0.3), seed=1), failed)
        self.assertEqual((found.learned, found.seeds), (1, 3))
        self.assertEqual(found.steps_text, "> 100 (100 to > 100)", "100 steps are those of the settings")

    def test_of_errors_less_is_learned_and_bits_tell_no_steps(self) -> None:
        error = trained(0.01, curve(s100=0.02, s200=0.016), metric="mean_squared_error")
        self.assertEqual(self.learning(error).steps, (200,), "a tenth of the least error of a shortcut is 0.017")
        bits = trained(2.0, curve(s100=2.0), metric="bits_per_token", chance=8.0, shortcuts={"n-gram of 2": 2.5})
        found = self.learning(bits)
        self.assertEqual((found.learned, found.steps_text), (1, ""))

    def test_rates_are_those_of_results_and_of_trials(self) -> None:
        short = trained(0.9, curve(s100=0.95), **rate(0.004)) | {"trial": {"round": 1, "choices": 3}}
        lost = trained(0.9, curve(s100=0.4), **rate(0.008)) | {"trial": {"round": 1, "choices": 3}}
        found = self.learning(trained(0.95, curve(s100=0.95), **rate(0.002)), short, lost)
        self.assertEqual(found.tried, (0.002, 0.004, 0.008))
        self.assertEqual(found.rates_text, "0.002 to 0.004 (2 of 3)")
        self.assertEqual(found.seeds, 1, "a trial is no result")
        self.assertEqual(self.learning(trained(0.95, curve(s100=0.95))).rates_text, "", "nothing was tuned")

    def test_of_bits_no_rates_are_told_and_other_settings_are_another_search(self) -> None:
        bits = {"metric": "bits_per_token", "chance": 8.0, "shortcuts": {"n-gram of 2": 2.5}}
        found = self.learning(trained(2.0, curve(s100=2.0), **bits, **rate(0.002)), trained(2.1, curve(s100=2.1), **bits, **rate(0.004)))
        self.assertEqual(found.rates_text, "")
        alibi = {"training": {"learning_rate": 0.004, "positions": "alibi"}, **RATES}
        read = self.rows([trained(0.95, curve(s100=0.95), **rate(0.002)), trained(0.9, curve(s100=0.95), **alibi)])
        cells = read.of("accuracy")
        one = learning_of([c for c in cells if c.training["positions"] != "alibi"], cells)
        assert one is not None
        self.assertEqual(one.tried, (0.002,))

    def test_of_another_variant_or_task_nothing_counts(self) -> None:
        other = cell("performer", "copy", 0.9, **rate(0.008)) | {"samples": curve(s100=0.95)}
        read = self.rows([trained(0.95, curve(s100=0.95), **rate(0.002)), other, cell("linear", "sort", 0.9, **rate(0.016)) | {"samples": curve(s100=0.95)}])
        own = [c for c in read.of("accuracy") if (c.variant, c.task) == ("linear", "copy")]
        found = learning_of(own, read.of("accuracy"))
        assert found is not None
        self.assertEqual(found.tried, (0.002,))

    def test_intervals_of_a_probability(self) -> None:
        for hits, trials, low, high in ((0, 3, 0.0, 0.7076), (3, 3, 0.2924, 1.0), (5, 8, 0.2449, 0.9148)):
            found = clopper_pearson(hits, trials)
            self.assertAlmostEqual(found[0], low, 4)
            self.assertAlmostEqual(found[1], high, 4)

    def test_the_report_has_the_table(self) -> None:
        rows = [cell("full", "copy", 0.99, seed=s) | {"samples": curve(s100=0.5, s200=0.99)} for s in range(2)]
        page = document(self.rows([*rows, trained(0.5, curve(s100=0.2, s200=0.5))]))
        self.assertIn("How surely, how soon and at which rates", page)
        self.assertIn("2 of 2 (0.16 to 1.00)", page)
