"""What rows hold of a plan: the state of each unit, and its interval."""

from __future__ import annotations

import math
import unittest
from dataclasses import replace
from typing import Any

from attnbench.coverage.asked import Unit, units_of
from attnbench.coverage.held import (
    CANNOT,
    FAILED,
    MISSING,
    NOISY,
    OUTDATED,
    UNCOMPARED,
    UNFINISHED,
    VERIFIED,
    held_by,
    interval_of,
)
from attnbench.coverage.table import totals_text
from attnbench.coverage.worth import Survey
from attnbench.plots.rows.read import Cell, Rows

from .planted import FAMILIES, planned_cell, unit

SPEED = {"time_s": {"median": 0.01, "ci_low": 0.009, "ci_high": 0.011}}
REFERENCE = {"by": "reference"}
TASK = {"name": "copy", "params": {"length": 64}}


def row(of: Unit, *, seed: int = 0, run: str = "a", **more: Any) -> Cell:
    """A row of the unit's cell, measured well."""
    cell = Cell(
        id=f"{of.variant}-{seed}-{run}",
        status="ok",
        reason=None,
        measure=of.setting.measure,
        variant=of.variant,
        params=of.params,
        task=of.setting.task,
        task_params=of.setting.task_params,
        axes=of.axes | ({"seed": seed} if "seed" in of.axes else {}),
        metrics=SPEED,
        samples=None,
        run=run,
        training=dict(of.training),
        tuned=of.tuned,
        verified=REFERENCE,
    )
    return replace(cell, **more)


def rows(*cells: Cell, cpus: dict[str, str] | None = None) -> Rows:
    heads = [{"run": run, "environment": {"cpu_model": cpu}} for run, cpu in (cpus or {"a": "one"}).items()]
    return Rows((), heads, list(cells))


def trained(variant: str, *, rate: float = 1e-3, seed: int = 0, trial: bool = False, share_s: float = 60.0) -> dict[str, Any]:
    """A planned cell of a training whose learning rate is searched by halving."""
    training = {"steps": 50 if trial else 200, "stretch": 1, "learning_rate": rate}
    cell = planned_cell(variant, 64, measure="accuracy", task=TASK, training=training, tuned=["learning_rate"], share_s=share_s)
    cell["axes"] = {"length": 64, "causal": True, "threads": 1, "seed": seed}
    return cell | ({"trial": 1} if trial else {})


def searched(variant: str) -> Unit:
    """Two choices tried for short, then three seeds."""
    trials = [trained(variant, rate=rate, trial=True, share_s=5.0) for rate in (1e-3, 3e-3)]
    (found,) = units_of([*trials, *(trained(variant, seed=s) for s in range(3))], FAMILIES)
    return found


def scores(of: Unit, tests: list[float], rate: float = 3e-3, **more: Any) -> list[Cell]:
    return [
        replace(
            row(of, seed=seed, **more),
            metrics={"metric": "accuracy", "test": test, "validation": test, "ended_by": "plateau"},
            training={**of.training, "learning_rate": rate},
        )
        for seed, test in enumerate(tests)
    ]


class Gathered(unittest.TestCase):
    def test_seeds_and_the_search_before_them_are_one_unit(self) -> None:
        found = searched("gla")
        self.assertEqual(found.seeds, (0, 1, 2))
        self.assertEqual(found.choices, {"learning_rate": [1e-3, 3e-3]})
        self.assertTrue(found.is_halved)
        self.assertEqual(found.price, 3 * 60.0 + 2 * 5.0)

    def test_a_grid_is_paid_for_each_choice(self) -> None:
        cells = [trained("gla", rate=rate, seed=seed) for rate in (1e-3, 3e-3) for seed in (0, 1)]
        (found,) = units_of(cells, FAMILIES)
        self.assertEqual((found.price, found.seeds, found.is_halved), (240.0, (0, 1), False))

    def test_a_cell_that_two_sweeps_have_is_paid_once(self) -> None:
        again = planned_cell("gla")
        again["axes"] = again["axes"] | {"repetitions": 3}
        (found,) = units_of([planned_cell("gla"), again], FAMILIES)
        self.assertEqual(found.price, 10.0)

    def test_lengths_and_variants_are_units_of_their_own(self) -> None:
        cells = [planned_cell(v, n) for v in ("full", "gla") for n in (64, 128)]
        self.assertEqual(len(units_of(cells, FAMILIES)), 4)


class States(unittest.TestCase):
    def state(self, *cells: Cell, of: Unit | None = None) -> str:
        held, _ = held_by([of or unit("gla")], rows(*cells))
        return held[0].state

    def test_a_row_of_the_setting_counts(self) -> None:
        gla = unit("gla")
        self.assertEqual(self.state(row(gla)), VERIFIED)
        self.assertEqual(self.state(), MISSING)
        self.assertEqual(self.state(row(unit("gla", 1024))), MISSING)
        self.assertEqual(self.state(row(unit("kda"))), MISSING)
        self.assertEqual(self.state(row(gla, params=(("decay", "2"),))), MISSING)
        self.assertEqual(self.state(row(gla, axes=gla.axes | {"repetitions": 36})), VERIFIED)

    def test_what_is_wrong_with_a_row_is_its_state(self) -> None:
        gla = unit("gla")
        self.assertEqual(self.state(row(gla, noisy=("load",))), NOISY)
        self.assertEqual(self.state(row(gla, verified={})), UNCOMPARED)
        self.assertEqual(self.state(row(gla, status="timeout")), FAILED)
        self.assertEqual(self.state(row(gla, status="skipped")), CANNOT)
        self.assertEqual(self.state(row(gla), of=replace(gla, skip="cannot be causal")), CANNOT)

    def test_a_row_of_other_sources_is_told(self) -> None:
        gla = unit("gla")
        self.assertEqual(self.state(row(gla, sources={"variant": "bbbb"})), OUTDATED)
        self.assertEqual(self.state(row(gla, sources={"variant": "aaaa"})), VERIFIED)
        self.assertEqual(self.state(row(gla, sources={"variant": "aaaa"}, is_gated=True)), FAILED)
        self.assertEqual(self.state(row(gla, sources={"variant": "bbbb"}, is_gated=True)), OUTDATED)

    def test_of_two_rows_the_better_counts(self) -> None:
        gla = unit("gla")
        good = row(gla, run="b", axes=gla.axes | {"repetitions": 36})
        for pair in ((row(gla, noisy=("load",)), good), (good, row(gla, noisy=("load",)))):
            held, _ = held_by([gla], rows(*pair, cpus={"a": "one", "b": "one"}))
            self.assertEqual(held[0].state, VERIFIED)

    def test_a_training_cut_off_is_unfinished_and_a_lacking_seed_is_missing(self) -> None:
        gla = searched("gla")
        whole = scores(gla, [0.5, 0.6, 0.7])
        self.assertEqual(self.state(*whole, of=gla), VERIFIED)
        self.assertEqual(self.state(*whole[:2], of=gla), MISSING)
        cut = replace(whole[2], metrics=whole[2].metrics | {"ended_by": "steps"})
        self.assertEqual(self.state(*whole[:2], cut, of=gla), UNFINISHED)

    def test_the_choice_that_won_is_kept(self) -> None:
        gla = searched("gla")
        lost = scores(gla, [0.2], rate=1e-3)
        held, _ = held_by([gla], rows(*scores(gla, [0.5, 0.6, 0.7]), *lost))
        self.assertEqual(held[0].choice, {"learning_rate": 3e-3})
        assert held[0].interval
        self.assertAlmostEqual(held[0].interval.middle, 0.6)

    def test_a_setting_that_exact_attention_has_not_learned_is_told(self) -> None:
        units = [searched("full"), searched("gla"), searched("kda")]
        low, high = scores(units[0], [0.1, 0.1, 0.1]), scores(units[0], [0.9, 0.9, 0.9])
        for control, learned in ((low, False), (high, True)):
            held, _ = held_by(units, rows(*control, *scores(units[1], [0.5, 0.5, 0.5])))
            self.assertEqual([one.is_learned for one in held], [learned] * 3)  # of the one without rows too
            told = totals_text(Survey(held, "full"))
            self.assertEqual("3 are trainings of copy, which exact attention has not learned there" in told, not learned)

    def test_times_are_of_one_machine(self) -> None:
        units = [unit("gla"), unit("full"), unit("kda")]
        cells = [row(units[0]), row(units[1]), row(units[2], run="b")]
        held, left_out = held_by(units, rows(*cells, cpus={"a": "one", "b": "two"}))
        self.assertEqual(([one.state for one in held], left_out), ([VERIFIED, VERIFIED, MISSING], 1))
        bytes_of = [row(unit(name, measure="memory"), run="b", metrics={"peak_bytes": 9}) for name in ("full", "gla", "kda")]
        held, left_out = held_by(units, rows(*cells, *bytes_of, cpus={"a": "one", "b": "two"}))
        self.assertEqual(([one.state for one in held], left_out), ([VERIFIED, VERIFIED, MISSING], 1), "bytes are of no machine")


class Intervals(unittest.TestCase):
    def test_of_a_time_it_is_the_rows_in_factors_of_ten(self) -> None:
        found = interval_of([row(unit("gla"))])
        assert found and found.half
        self.assertAlmostEqual(found.middle, -2.0)
        self.assertAlmostEqual(found.half, math.log10(0.011 / 0.009) / 2)

    def test_of_a_score_it_is_students_over_seeds(self) -> None:
        found = interval_of(scores(searched("gla"), [0.5, 0.6, 0.7]))
        assert found and found.half
        self.assertAlmostEqual(found.middle, 0.6)
        self.assertAlmostEqual(found.half, 4.3026527 * 0.1 / math.sqrt(3))

    def test_memory_is_counted(self) -> None:
        found = interval_of([row(unit("gla", measure="memory"), metrics={"peak_bytes": 1000})])
        assert found
        self.assertAlmostEqual(found.middle, 3.0)
        self.assertEqual(found.half, 0.0)

    def test_of_one_seed_nothing_is_known(self) -> None:
        found = interval_of([row(unit("gla", measure="fidelity"), metrics={"relative_error": 0.1})])
        assert found
        self.assertAlmostEqual(found.middle, -1.0)
        self.assertIsNone(found.half)
        self.assertIsNone(interval_of([]))


if __name__ == "__main__":
    unittest.main()
