"""Scores, memory and fidelity by machine, from planted rows."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
from attnbench.plots.rows.settings import LOST
from attnbench.pooling.answer import answer
from attnbench.pooling.figures import Figure, Group, of_machine
from attnbench.pooling.machines import Fleet, Place
from attnbench.pooling.scores import cut_off, differences, fidelity, memory
from attnbench.pooling.seeds import Seeds, together

from .planted import Planted, PlantedCase, Row, cell, flat, hash_number


def scored(variant: str, seed: int, test: float, **more: Any) -> Row:
    row = cell("accuracy", variant)
    row["axes"]["seed"] = seed
    row["cell"] = f"{hash_number(f'{variant} {seed}'):016x}"
    row["metrics"] |= {"test": test, **more}
    return row


def scores(of_full: list[float], of_linear: list[float], **more: Any) -> list[Row]:
    rows = [scored("full", i, t) for i, t in enumerate(of_full)]
    linear = [scored("linear", i, t, **more) for i, t in enumerate(of_linear)]
    for row in linear:  # on the task of the others
        row["task"], row["training"] = copy.deepcopy(rows[0]["task"]), copy.deepcopy(rows[0]["training"])
        row["axes"] = copy.deepcopy(rows[0]["axes"]) | {"seed": row["axes"]["seed"]}
        row["source"]["task"] = rows[0]["source"]["task"]
    return [*rows, *linear]


NOWHERE = Place("accuracy", "linear", (), "", ())


def hash_of_seed(row: Row) -> str:
    name, seed = row["variant"]["name"], row["axes"]["seed"]
    return f"{hash_number(f'{name} {seed}'):016x}"


class Scores(PlantedCase):
    def machines(self, *own: list[Row]) -> Fleet:
        return self.fleet(*(Planted(n, flat(0.5), lengths=(512,), more=rows) for n, rows in zip("ABCD", own, strict=False)))

    def test_differences_to_exact_attention_are_pooled(self) -> None:
        fleet = self.machines(scores([0.99, 0.98, 0.97], [0.91, 0.88, 0.91]), scores([0.98, 0.98, 0.99], [0.90, 0.89, 0.88]))
        (group,) = differences(fleet)
        self.assertAlmostEqual(group.figures[0].value, 0.90 - 0.98)
        error = math.sqrt(np.var([0.99, 0.98, 0.97], ddof=1) / 3 + np.var([0.91, 0.88, 0.91], ddof=1) / 3)
        self.assertAlmostEqual(group.figures[0].error, error)
        parts = [np.var(scores, ddof=1) / 3 for scores in ([0.99, 0.98, 0.97], [0.91, 0.88, 0.91])]
        self.assertAlmostEqual(group.figures[0].degrees, sum(parts) ** 2 / sum(part**2 / 2 for part in parts))
        self.assertEqual(group.on(-1), [1, 2])
        self.assertEqual(group.pooled.machines, 2)

    def test_machines_with_the_same_seeds_add_no_seed(self) -> None:
        rows = scores([0.99, 0.98, 0.97], [0.91, 0.88, 0.91])
        nearly = scores([0.991, 0.981, 0.971], [0.911, 0.881, 0.911])  # the same trainings, rounded elsewhere
        (one,) = differences(self.machines(rows))
        (group,) = differences(self.machines(rows, nearly, rows))
        self.assertEqual((len(group.figures), group.pooled.machines), (3, 3))
        self.assertAlmostEqual(group.pooled.low, one.figures[0].interval[0], places=9)
        self.assertTrue(math.isnan(group.pooled.tau))
        (line,) = [x for x in answer(self.machines(rows, nearly, rows), []).lines if x.measure == "accuracy"]
        self.assertIn("machines 1 and 3 trained alike", line.says)
        (line,) = [x for x in answer(self.machines(rows, rows), []).lines if x.measure == "accuracy"]
        self.assertIsNone(line.pooled)  # there is one training of each seed, not two

    def test_machines_with_other_seeds_add_theirs(self) -> None:
        rows = scores([0.99, 0.98, 0.97], [0.91, 0.88, 0.91])
        others = copy.deepcopy(rows)
        for row in others:
            row["axes"]["seed"] += 3
            row["cell"] = hash_of_seed(row)
        (group,) = differences(self.machines(rows, others))
        (one,) = differences(self.machines(rows))
        self.assertEqual([seed for seed, _ in together([f.seeds for f in group.figures]).own], [0, 1, 2, 3, 4, 5])
        self.assertLess(group.pooled.high - group.pooled.low, one.figures[0].interval[1] - one.figures[0].interval[0])

    def test_runs_of_one_machine_with_the_same_seeds_are_no_more_seeds(self) -> None:
        figure = differences(self.machines(scores([0.99, 0.98, 0.97], [0.91, 0.88, 0.91])))[0].figures[0]
        again = of_machine([figure, figure])
        self.assertAlmostEqual(again.error, figure.error)
        self.assertEqual(again.runs, 2)

    def test_trainings_of_other_settings_are_never_pooled(self) -> None:
        rows = scores([0.99, 0.98, 0.97], [0.91, 0.88, 0.91])
        others = copy.deepcopy(rows)
        for row in others:
            row["training"]["width"] = 999
        self.assertEqual([len(group.figures) for group in differences(self.machines(rows, others))], [1, 1])
        for row in others:
            row["training"]["width"] = 999 if row["variant"]["name"] == "full" else rows[0]["training"]["width"]
        self.assertEqual(differences(self.machines(others)), [])

    def test_a_seed_that_one_run_trained_twice_is_one(self) -> None:
        rows = scores([0.99, 0.98, 0.97], [0.91, 0.88, 0.91])
        again = copy.deepcopy(rows)
        for row in again:  # as with other parameters to be tested with, which are part of its id
            row["cell"] = f"{hash_number(row['cell']):016x}"
        (once,), (twice,) = differences(self.machines(rows)), differences(self.machines([*rows, *again]))
        self.assertEqual(once.figures[0].interval, twice.figures[0].interval)

    def test_the_interval_holds_where_machines_share_seeds(self) -> None:
        """Random effects over machines would take the agreement of a seed with itself for certainty."""
        rng = np.random.default_rng(2)
        held = by_machine = 0
        draws = 2000
        for _ in range(draws):
            of_seed = rng.normal(size=(2, 4))
            machines = of_seed + 0.1 * rng.normal(size=(3, 2, 4))
            seeds = [Seeds(*(tuple(enumerate(map(float, side))) for side in sides), 0.0, 0.0) for sides in machines]
            figures = tuple(Figure(i, *s.difference, seeds=s) for i, s in enumerate(seeds))
            pooled = Group(NOWHERE, figures).pooled
            held += pooled.low <= 0 <= pooled.high
            naive = Group(NOWHERE, tuple(replace(f, seeds=None) for f in figures)).pooled
            by_machine += naive.low <= 0 <= naive.high
        self.assertGreater(held / draws, 0.93)
        self.assertLess(held / draws, 0.97)
        self.assertLess(by_machine / draws, 0.5)

    def test_a_training_that_was_cut_off_is_left_out_and_named(self) -> None:
        fleet = self.machines(scores([0.99, 0.98], [0.91, 0.88], ended_by="steps"), scores([0.99, 0.98], [0.90, 0.88]))
        (group,) = differences(fleet)
        self.assertEqual([f.machine for f in group.figures], [2])
        self.assertEqual([machine for _, machine in cut_off(fleet)], [1])
        self.assertIn("machine 1's scores of linear", " ".join(answer(fleet, []).left_out))

    def test_a_single_seed_has_the_error_of_its_examples(self) -> None:
        (group,) = differences(self.machines(scores([0.99], [0.90], test_stderr=0.03)))
        self.assertAlmostEqual(group.figures[0].error, math.hypot(0.03, scores([0.99], [0.9])[0]["metrics"]["test_stderr"]))

    def test_a_single_seed_without_an_error_leaves_no_interval(self) -> None:
        """A row may tell no error over the test examples. The other side has two seeds, whose scatter is its error."""
        seeds = Seeds(((1, 0.5),), ((1, 0.6), (2, 0.7)), math.nan, 0.01)
        value, error, degrees = seeds.difference
        self.assertAlmostEqual(value, -0.15)
        self.assertTrue(math.isnan(error))
        pooled = Group(NOWHERE, tuple(Figure(i, value, error, degrees, seeds=seeds) for i in (1, 2))).pooled
        self.assertAlmostEqual(pooled.estimate, -0.15)
        self.assertTrue(math.isnan(pooled.low) and math.isnan(pooled.high))

    def test_memory_is_equal_or_not_and_never_pooled(self) -> None:
        held = [cell("memory", v, length=512, mode="forward") for v in ("full", "linear")]
        more = copy.deepcopy(held)
        more[1]["metrics"]["peak_bytes"] *= 2
        alike = self.machines(held, held)
        self.assertEqual(len(memory(alike)), 1)
        (line,) = [x for x in answer(alike, []).lines if x.measure == "memory"]
        self.assertEqual(line.says, "less on 2 of 2 machines; equal on 2 machines")
        self.assertIsNone(line.pooled)
        (line,) = [x for x in answer(self.machines(held, more), []).lines if x.measure == "memory"]
        self.assertIn("differs by x2 between 2 machines", line.says)

    def test_fidelity_is_equal_but_for_rounding(self) -> None:
        one = cell("fidelity", "linear")
        rounded, other = copy.deepcopy(one), copy.deepcopy(one)
        rounded["metrics"]["relative_error"] *= 1 + 1e-5
        other["metrics"]["relative_error"] *= 1.1
        self.assertEqual(len(fidelity(self.machines([one]))), 1)
        for rows, words in ((rounded, "equal on 2 machines"), (other, "differs by x1.1 between 2 machines")):
            (line,) = [x for x in answer(self.machines([one], [rows]), []).lines if x.measure == "fidelity"]
            self.assertEqual(line.says, words)

    def test_an_error_of_nothing_is_named(self) -> None:
        none = cell("fidelity", "linear")
        none["metrics"]["relative_error"] = 0.0
        fleet = self.machines([none], [none])
        self.assertEqual(fidelity(fleet), [])
        said = "left out: relative errors of linear on machines 1 and 2, which are 0 and have no logarithm"
        self.assertIn(said, answer(fleet, [], measure="fidelity").left_out)

    def test_scores_have_the_marks_of_their_trainings(self) -> None:
        """Rows of earlier versions say `stopped_by` of a training that was cut off."""
        rows = scores([0.99, 0.98, 0.97], [0.91, 0.88, 0.91])
        for row in rows:
            row["metrics"].pop("ended_by", None)
        rows[-1]["metrics"]["stopped_by"] = "steps"
        self.assertEqual(differences(self.machines(rows)), [])
        self.assertEqual(len(cut_off(self.machines(rows))), 1)
        rows[-1] |= {"status": "diverged", "metrics": None}
        self.assertEqual(differences(self.machines(rows))[0].marks, LOST)
