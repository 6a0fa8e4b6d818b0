"""Crossings by machine and on all, from planted rows and ratios."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
from attnbench.plots.rows.crossing import Crossing
from attnbench.pooling import crossings as crossing_room
from attnbench.pooling.answer import answer
from attnbench.pooling.crossings import OfMachine, Pair, crossings
from attnbench.pooling.figures import Figure, Group
from attnbench.pooling.lines import of_crossings
from attnbench.pooling.machines import Place
from attnbench.pooling.ratios import ratios
from scipy.special import stdtrit

from .planted import Planted, PlantedCase, crossing_at, flat


class Crossings(PlantedCase):
    def test_planted_crossings_are_found_and_pooled(self) -> None:
        at = (400.0, 500.0, 625.0)
        fleet = self.fleet(*(Planted(n, crossing_at(x), noise=0.002, seed=i) for i, (n, x) in enumerate(zip("ABC", at, strict=True))))
        pair = next(p for p in crossings(ratios(fleet), fleet) if p.place.variant == "linear")
        self.assertEqual(pair.on("within"), [1, 2, 3])
        for one, planted in zip(pair.machines, at, strict=True):
            self.assertAlmostEqual(one.crossing.length, planted, delta=0.01 * planted)
        pooled = pair.pooled
        self.assertAlmostEqual(2**pooled.estimate, 500, delta=10)
        reach = stdtrit(2, 0.975) * math.log2(1.25) / math.sqrt(3)  # logarithms that are evenly apart
        self.assertAlmostEqual(pooled.high - pooled.estimate, reach, delta=0.03)

    def test_censored_crossings_are_told(self) -> None:
        fleet = self.fleet(
            *(Planted(n, crossing_at(x), noise=0.002, seed=i) for i, (n, x) in enumerate((("A", 500), ("B", 520), ("C", 4000), ("D", 30))))
        )
        pair = next(p for p in crossings(ratios(fleet), fleet) if p.place.variant == "linear")
        self.assertEqual((pair.on("within"), pair.on("beyond"), pair.on("before")), ([1, 2], [3], [4]))
        self.assertEqual(pair.pooled.machines, 2)
        line = next(x for x in answer(fleet, []).lines if x.measure == "crossing" and x.place.variant == "linear")
        self.assertIn("on 2 of 4 machines", line.says)
        self.assertIn("not faster up to the longest of machine 3", line.says)
        self.assertIn("faster at every length of machine 4", line.says)

    def test_the_bias_of_what_is_censored_is_told(self) -> None:
        machines = [Planted(n, crossing_at(x), noise=0.002, seed=i) for i, (n, x) in enumerate((("A", 500), ("B", 520), ("C", 4000)))]
        fleet = self.fleet(*machines)
        line = next(x for x in answer(fleet, []).lines if x.measure == "crossing" and x.place.variant == "linear")
        self.assertIn("the pooled length is too low", line.says)

    def test_an_interval_that_leaves_the_lengths_is_cut_there(self) -> None:
        one = OfMachine(1, Crossing(1000.0, 800.0, math.inf, 128, 2048))
        self.assertTrue(one.is_open)
        self.assertAlmostEqual(one.error, math.log2(2048 / 800) / 2 / 1.959964)
        other = OfMachine(2, Crossing(300.0, -math.inf, 500.0, 128, 2048))
        self.assertEqual((other.is_open, other.ends), (True, (128, 500.0)))
        line = of_crossings([Pair(Place("speed", "linear", (), "", ()), (one,))])[0]
        self.assertIn("the interval of machine 1 leaves the measured lengths", line.says)

    def test_one_length_has_no_crossing(self) -> None:
        fleet = self.fleet(Planted("A", flat(0.5), lengths=(512,)))
        self.assertEqual(crossings(ratios(fleet), fleet), [])

    def test_a_search_is_believed_before_interpolation(self) -> None:
        fleet = self.fleet(Planted("A", crossing_at(500), noise=0.002))
        found = crossing_room.Crossing(777.0, 700.0, 800.0, 128, 2048)
        searches = {fleet.cells[0].run: mock.Mock(crossing=lambda own, rival: found if own and rival else None)}
        pair = crossings(ratios(fleet), fleet, searches)[0]
        self.assertEqual(pair.machines[0].crossing.length, 777.0)

    def test_the_pooled_interval_holds_the_planted_length(self) -> None:
        rng = np.random.default_rng(11)
        places = [Place("speed", "linear", (), "", (("length", n),)) for n in (256, 512, 1024)]
        draws, held = 400, 0
        fleet = mock.Mock(of=lambda measure: [])
        for _ in range(draws):
            shift = math.log(500) + 0.15 * rng.normal(size=3)
            groups = [
                Group(p, tuple(Figure(m, shift[m] - math.log(p.length) + 0.02 * rng.normal(), 0.02, 12) for m in range(3))) for p in places
            ]
            with mock.patch.object(crossing_room, "DRAWS", 100):
                pooled = crossings(groups, fleet)[0].pooled
            held += pooled.low <= math.log2(500) <= pooled.high
        self.assertGreater(held / draws, 0.93)
        self.assertLess(held / draws, 0.97)
