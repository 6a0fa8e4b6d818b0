"""Ratios to exact attention by machine, from planted rows of several machines; and what their intervals hold."""

from __future__ import annotations

import math
import unittest
from dataclasses import replace

import numpy as np
from attnbench.plots.rows.read import Cell, read_rows
from attnbench.pooling.answer import answer
from attnbench.pooling.figures import Figure, Group, of_machine
from attnbench.pooling.machines import Place, fleet_of
from attnbench.pooling.ratios import log_times, ratios
from attnbench.pooling.variances import Variance, steadied

from .planted import Planted, PlantedCase, Row, flat, write


class Ratios(PlantedCase):
    def test_each_machine_is_held_against_its_own_exact_attention(self) -> None:
        fleet = self.fleet(*(Planted(n, flat(0.5), slowness=s, seed=i) for i, (n, s) in enumerate((("A", 1), ("B", 7), ("C", 0.1)))))
        group = self.of(ratios(fleet), "linear", 512)
        self.assertEqual([f.machine for f in group.figures], [1, 2, 3])
        for figure in group.figures:  # three machines of very different speed
            self.assertAlmostEqual(math.exp(figure.value), 0.5, delta=0.03)
        self.assertEqual(group.on(-1), [1, 2, 3])
        self.assertAlmostEqual(math.exp(group.pooled.estimate), 0.5, delta=0.02)
        self.assertEqual(self.of(ratios(fleet), "truncated", 512).on(1), [1, 2, 3])

    def test_rows_of_other_axes_are_never_compared(self) -> None:
        """An axis of one side alone leaves no ratio; of one machine alone it leaves nothing to pool."""
        others = {"dtype": "bfloat16", "kv_dtype": "int8", "threads": 2, "batch": 3, "heads": 7, "head_dim": 48, "kv_heads": 1, "scope": "layer",
                  "mode": "train", "causal": True, "layers": 3, "equal": "parameters", "never_seen": 1}  # fmt: skip
        for name, value in others.items():

            def exact_alone(row: Row, name: str = name, value: object = value) -> None:
                if row["variant"]["name"] == "full":
                    row["axes"][name] = value

            def both(row: Row, name: str = name, value: object = value) -> None:
                row["axes"][name] = value

            with self.subTest(axis=name):
                fleet = self.fleet(Planted("A", flat(0.5), changes=exact_alone, lengths=(512,)))
                self.assertEqual(ratios(fleet), [])
                fleet = self.fleet(Planted("A", flat(0.5), lengths=(512,)), Planted("B", flat(0.5), changes=both, lengths=(512,)))
                self.assertEqual({(len(group.figures), group.others) for group in ratios(fleet)}, {(1, ())})

    def test_a_red_contract_check_leaves_no_figure(self) -> None:
        def red(row: Row) -> None:
            if row["variant"]["name"] == "linear":
                row["gate"] = "red"

        fleet = self.fleet(Planted("A", flat(0.5), changes=red), Planted("B", flat(0.5)))
        self.assertEqual([f.machine for f in self.of(ratios(fleet), "linear", 512).figures], [2])
        self.assertIn("left out: linear on machine 1: a contract check is red", answer(fleet, []).notes)
        self.assertEqual([n for n in answer(fleet, [], measure="memory").notes if "red" in n], [])
        fleet = self.fleet(Planted("A", flat(0.5), changes=red, variants=("linear",)))
        self.assertEqual(answer(fleet, [], variants=["linear"]).left_out, ("left out: linear on machine 1: a contract check is red",))

    def test_a_machine_without_exact_attention_is_named(self) -> None:
        def other(row: Row) -> None:
            if row["variant"]["name"] == "full":
                row["axes"]["batch"] = 9

        fleet = self.fleet(Planted("A", flat(0.5)), Planted("B", flat(0.5), changes=other), Planted("C", flat(0.5), changes=other))
        said = "left out: times of linear and truncated on machines 2 and 3 where the run has none of exact attention on the same axes"
        self.assertIn(said, answer(fleet, []).left_out)

    def test_a_ratio_of_one_is_undecided(self) -> None:
        group = self.of(ratios(self.fleet(Planted("A", flat(1.0), seed=4))), "linear", 512)
        self.assertEqual(group.on(0), [1])

    def test_a_noise_floor_hides_a_small_difference(self) -> None:
        floor = [{"mode": "forward", "threads": 1, "length": 512, "share": 0.2, "measured_at": "2026-01-01T00:00:00Z"}]
        for ratio, side in ((0.9, -1), (1.1, 1)):
            plain = self.of(ratios(self.fleet(Planted("A", flat(ratio), noise=0.001))), "linear", 512)
            hidden = self.of(ratios(self.fleet(Planted("A", flat(ratio), noise=0.001, head_changes={"noise_floor": floor}))), "linear", 512)
            self.assertEqual((plain.on(side), hidden.on(side)), ([1], []))

    def test_two_files_of_one_machine_are_one(self) -> None:
        one = Planted("A", flat(0.5), seed=1, noise=0.001)
        again = Planted("again", flat(0.6), seed=2, noise=0.001, environment={"cpu_model": "Example A"})
        fleet = self.fleet(one, again)
        self.assertEqual(len(fleet.machines), 1)
        self.assertEqual([f.name for f in fleet.machines[0].files], ["A.jsonl", "again.jsonl"])
        figure = self.of(ratios(fleet), "linear", 512).figures[0]
        self.assertEqual(figure.runs, 2)
        self.assertAlmostEqual(figure.value, (math.log(0.5) + math.log(0.6)) / 2, delta=0.01)
        self.assertAlmostEqual(figure.error, math.log(1.2) / 2, delta=0.01)  # the scatter between the runs

    def test_a_row_in_two_files_counts_once(self) -> None:
        machine = Planted("A", flat(0.5), seed=1)
        copied = write(self.folder / "copy.jsonl", machine.rows())
        fleet = fleet_of([read_rows([machine.write(self.folder)]), read_rows([copied])])
        self.assertEqual(self.of(ratios(fleet), "linear", 512).figures[0].runs, 1)

    def test_one_run_id_on_two_machines_is_two_runs(self) -> None:
        files = []
        for i, (name, ratio) in enumerate((("A", 0.5), ("B", 2.0))):
            rows = Planted(name, flat(ratio), slowness=1 + 9 * i).rows()
            for row in rows:
                row["run"] = "0123456789abcdef"
            files.append(read_rows([write(self.folder / f"{name}.jsonl", rows)]))
        group = self.of(ratios(fleet_of(files)), "linear", 512)
        self.assertEqual((group.on(-1), group.on(1)), ([1], [2]))
        self.assertAlmostEqual(math.exp(group.figures[1].value), 2.0, delta=0.1)

    def test_what_sets_a_machine_apart(self) -> None:
        for fact, value in (("cores", 64), ("threads", 1), ("caches", "L3 1M"), ("instruction_set", "avx2")):
            with self.subTest(fact=fact):
                other = Planted("B", flat(0.5), environment={"cpu_model": "Example A", fact: value})
                fleet = self.fleet(Planted("A", flat(0.5)), other)
                self.assertEqual(len(fleet.machines), 2)
                self.assertEqual(len(fleet.notes), 0 if fact == "caches" else 1)

    def test_what_does_not(self) -> None:
        more = {"kernel": "Linux 9", "memory_bytes": 1, "load_before": 9.0}
        fleet = self.fleet(Planted("A", flat(0.5)), Planted("B", flat(0.5), environment={"cpu_model": "Example A", **more}))
        self.assertEqual(len(fleet.machines), 1)

    def test_other_sources_and_protocols_are_not_pooled(self) -> None:
        def other_sources(row: Row) -> None:
            if row["variant"]["name"] == "linear":
                row["source"]["variant"] = "feedfeedfeedfeed"

        def other_exact(row: Row) -> None:
            if row["variant"]["name"] == "full":
                row["source"]["variant"] = "feedfeedfeedfeed"

        protocol = {"protocol": {"name": "attnbench-9", "hash": "0123456789abcdef", "departs": []}}
        alike = [Planted(n, flat(0.5), seed=i) for i, n in enumerate("AB")]
        for planted, variants in (
            (Planted("C", flat(0.9), changes=other_sources), ("linear",)),
            (Planted("C", flat(0.9), changes=other_exact), ("linear", "truncated")),
            (Planted("C", flat(0.9), head_changes=protocol), ("linear", "truncated")),
        ):
            with self.subTest(variants=variants, protocol=planted.head_changes):
                groups = ratios(self.fleet(*alike, planted))
                for group in groups:
                    expected = [1, 2] if group.place.variant in variants else [1, 2, 3]
                    self.assertEqual([f.machine for f in group.figures], expected)
                    self.assertEqual([machine for machine, _ in group.others], [3] if group.place.variant in variants else [])

    def test_another_shape_and_other_parameters_are_other_places(self) -> None:
        def wider(row: Row) -> None:
            row["axes"]["heads"] = 8

        groups = ratios(self.fleet(Planted("A", flat(0.5)), Planted("B", flat(0.5), changes=wider)))
        self.assertTrue(all(len(g.figures) == 1 for g in groups))

        def window(row: Row) -> None:
            if row["variant"]["name"] == "truncated":
                row["variant"]["params"]["window"] = 8

        groups = ratios(self.fleet(Planted("A", flat(0.5)), Planted("B", flat(0.5), changes=window)))
        self.assertEqual({len(g.figures) for g in groups if g.place.variant == "truncated"}, {1})
        self.assertEqual({len(g.figures) for g in groups if g.place.variant == "linear"}, {2})

    def test_repetitions_are_no_place(self) -> None:
        def more(row: Row) -> None:
            row["axes"]["repetitions"] = 12

        groups = ratios(self.fleet(Planted("A", flat(0.5)), Planted("B", flat(0.5), changes=more)))
        self.assertTrue(all(len(g.figures) == 2 for g in groups))

    def test_marks_go_with_the_ratio(self) -> None:
        def disturbed(row: Row) -> None:
            if row["variant"]["name"] == "full":  # the ratio rests on exact attention's time as much
                row["noisy"] = ["witness"]

        def unverified(row: Row) -> None:
            if row["variant"]["name"] == "linear":
                row.pop("verified", None)

        groups = ratios(self.fleet(Planted("A", flat(0.5), changes=disturbed), Planted("B", flat(0.5), changes=unverified)))
        self.assertEqual([f.marks for f in self.of(groups, "linear", 512).figures], ["*", "?"])
        self.assertEqual([f.marks for f in self.of(groups, "truncated", 512).figures], ["*", ""])
        self.assertEqual(self.of(groups, "linear", 512).marks, "?*")

    def test_a_single_visit_has_no_interval_and_is_no_witness(self) -> None:
        fleet = self.fleet(*(Planted(n, flat(0.5), seed=i) for i, n in enumerate("AB")), Planted("C", flat(0.5), visits=1))
        group = self.of(ratios(fleet), "linear", 512)
        self.assertTrue(math.isnan(group.figures[2].interval[0]))
        self.assertEqual((group.on(-1), group.on(0)), ([1, 2], [3]))
        self.assertEqual(group.pooled.machines, 3)

    def test_without_exact_attention_there_is_no_ratio(self) -> None:
        planted = Planted("A", flat(0.5))
        rows = [r for r in planted.rows() if r["kind"] == "run" or r["variant"]["name"] != "full"]
        fleet = fleet_of([read_rows([write(self.folder / "A.jsonl", rows)])])
        self.assertEqual(ratios(fleet), [])
        self.assertIn("linear and truncated", " ".join(answer(fleet, []).left_out))


class Covered(unittest.TestCase):
    """From samples of visits to the pooled interval: planted machines differ by tau, cells by their visits. 1000 draws are off by 0.7 % in two of
    three cases."""

    DRAWS = 1000

    def figures(self, count: int, seed: int) -> list[Figure]:
        """Ratios whose truth is 1, of runs of 24 cells: the cells of a run steady each other's variances."""
        rng = np.random.default_rng(seed)
        found: list[Figure] = []
        while len(found) < count:
            times = log_times([_timed(1.0, rng) for _ in range(24)])
            for own, rival in zip(times[::2], times[1::2], strict=True):
                variances = [own.of_mean, rival.of_mean]
                total = sum(v.value for v in variances)
                degrees = total**2 / sum(v.value**2 / v.degrees for v in variances)
                found.append(Figure(1, own.mean - rival.mean, math.sqrt(total), degrees))
        return found[:count]

    def test_the_interval_holds_the_planted_ratio(self) -> None:
        rng = np.random.default_rng(1)
        for machines in (2, 3, 5):
            ratios_of_one = rng.permutation(np.array(self.figures(machines * self.DRAWS, machines), dtype=object)).reshape(self.DRAWS, machines)
            for tau in (0.0, 0.05):
                with self.subTest(machines=machines, tau=tau):
                    held = 0
                    for row in ratios_of_one:
                        apart = tau * rng.normal(size=machines)
                        own = tuple(replace(f, machine=i, value=f.value + apart[i]) for i, f in enumerate(row))
                        pooled = Group(NOWHERE, own).pooled
                        held += pooled.low <= 0 <= pooled.high
                    self.assertGreater(held / self.DRAWS, 0.93)
                    self.assertLess(held / self.DRAWS, 0.97)

    def test_a_machines_own_interval_holds_its_ratio(self) -> None:
        held = [low <= 0 <= high for low, high in (f.interval for f in self.figures(3000, 7))]
        self.assertGreater(np.mean(held), 0.93)
        self.assertLess(np.mean(held), 0.97)


NOWHERE = Place("speed", "linear", (), "", ())


def _timed(seconds: float, rng: np.random.Generator) -> Cell:
    between = np.repeat(0.02 * rng.normal(size=3), 3)
    samples = [float(s) for s in seconds * np.exp(between + 0.002 * rng.normal(size=9))]
    return Cell("", "ok", None, "speed", "linear", (), None, (), {}, {}, samples, visits=(3, 3, 3))


class Variances(unittest.TestCase):
    def test_alike_cells_share_what_is_usual(self) -> None:
        rng = np.random.default_rng(1)
        own = [Variance(float(v), 2.0) for v in rng.chisquare(2, size=60) / 2]
        told = steadied(own)
        self.assertAlmostEqual(steadied([Variance(1.0, 2.0)] * 60)[0].degrees, 12.0, places=9)  # two of its own and ten of the others
        self.assertLess(np.std([v.value for v in told]), 0.3 * np.std([v.value for v in own]))
        self.assertAlmostEqual(np.mean([v.value for v in told]), 1.0, delta=0.15)

    def test_figures_of_the_program(self) -> None:
        # What harness/compare/variances.cc says of these, printed by a program of a few lines.
        values = (1, 2, 0.5, 4, 0.25, 3, 1.5, 0.75, 0, 6, 0.1, 2.5)
        told = steadied([Variance(float(v), 2.0 + i % 3) for i, v in enumerate(values)])
        expected = (1.16902866919, 1.79528131801, 0.745505458117, 2.87333494809, 0.633903818167, 2.55693755656)
        for variance, value in zip(told, expected, strict=False):
            self.assertAlmostEqual(variance.value, value, places=9)
        self.assertAlmostEqual(told[8].value, 0.383219038429, places=9)  # a variance of 0 is steadied too
        self.assertAlmostEqual(told[0].degrees, 3.52049398296, places=9)

    def test_cells_that_differ_keep_their_own(self) -> None:
        rng = np.random.default_rng(1)
        own = [Variance(float(s * v), 8.0) for s, v in zip(10.0 ** rng.uniform(-4, 4, size=60), rng.chisquare(8, size=60) / 8, strict=True)]
        told = steadied(own)
        self.assertLess(told[0].degrees, 8.5)

    def test_few_cells_and_single_visits_keep_their_own(self) -> None:
        few = [Variance(1.0, 2.0)] * 7
        self.assertEqual(steadied(few), few)
        own = [*[Variance(1.0, 2.0)] * 8, Variance(math.nan, 0.0), Variance(0.0, 2.0)]
        told = steadied(own)
        self.assertEqual(told[8].degrees, 0.0)
        self.assertGreater(told[9].value, 0.0)


class OfMachine(unittest.TestCase):
    def test_runs_that_agree_keep_the_errors_of_their_visits(self) -> None:
        figure = of_machine([Figure(1, 0.5, 0.1, 4), Figure(1, 0.5, 0.1, 4)])
        self.assertAlmostEqual(figure.error, 0.1 / math.sqrt(2))
        self.assertAlmostEqual(figure.degrees, 8.0)

    def test_runs_that_differ_show_it(self) -> None:
        figure = of_machine([Figure(1, 0.4, 0.01, 4), Figure(1, 0.6, 0.01, 4)])
        self.assertAlmostEqual(figure.value, 0.5)
        self.assertAlmostEqual(figure.error, 0.1)
        self.assertEqual(figure.degrees, 1.0)
