"""Crossings of curves whose crossing is known on paper."""

from __future__ import annotations

import math
import unittest

import numpy as np

from attnbench.plots.rows.crossing import draws, find_crossing

LENGTHS = (256, 512, 1024, 2048, 4096)


def curve(scale: float, power: float) -> dict[int, float]:
    return {n: scale * n**power for n in LENGTHS}


def spread(medians: dict[int, float], relative: float, seed: int) -> dict[int, list[list[float]]]:
    """Samples of one visit about a curve."""
    rng = np.random.default_rng(seed)
    return {n: [list(t * (1 + relative * rng.standard_normal(15)))] for n, t in medians.items()}


def visited(
    medians: dict[int, float], between: float, within: float, rng: np.random.Generator
) -> dict[int, list[list[float]]]:
    """Three visits of nine samples about a curve, each visit off by a deviation `between`."""

    def visit(t: float) -> list[float]:
        off = between * rng.standard_normal()
        return list(t * np.exp(off + within * rng.standard_normal(9)))

    return {n: [visit(t) for _ in range(3)] for n, t in medians.items()}


def median(samples: dict[int, list[list[float]]]) -> dict[int, float]:
    return {n: float(np.median(np.concatenate(v))) for n, v in samples.items()}


def cross(variant: dict[int, float], full: dict[int, float], relative: float = 0.01):
    return find_crossing(spread(variant, relative, 1), spread(full, relative, 2), (variant, full))


class Crossings(unittest.TestCase):
    def test_power_laws_cross_where_algebra_says(self) -> None:
        # a n^2 = b n at n = b / a; in log-log both are straight lines, so interpolation is exact.
        found = cross(curve(7e-6, 1), curve(7e-9, 2))
        self.assertAlmostEqual(found.length, 1000, places=6)
        self.assertLess(found.low, 1000)
        self.assertGreater(found.high, 1000)
        self.assertGreater(found.low, 950)
        self.assertLess(found.high, 1050)
        self.assertRegex(found.text(), r"^1,000 \(9\d\d\u20131,0\d\d\)$")

    def test_wider_noise_widens_the_interval(self) -> None:
        narrow, wide = (cross(curve(7e-6, 1), curve(7e-9, 2), r) for r in (0.005, 0.05))
        self.assertGreater(wide.high - wide.low, 3 * (narrow.high - narrow.low))

    def test_visits_that_differ_are_not_samples_that_differ(self) -> None:
        """95 % intervals of a crossing at 1000 hold it in 99 of 100 simulated pairs (the curves are
        drawn apart at every length, which is on the wide side); in 65 with the visits' samples taken
        as independent."""
        rng = np.random.default_rng(1)
        held = {True: 0, False: 0}
        for _ in range(300):
            both = [visited(c, 0.03, 0.01, rng) for c in (curve(7e-6, 1), curve(7e-9, 2))]
            for apart in held:
                given = both
                if not apart:
                    given = [{n: [sum(v, [])] for n, v in s.items()} for s in both]
                found = find_crossing(*given, (median(both[0]), median(both[1])))
                held[apart] += found.low <= 1000 <= found.high
        self.assertGreaterEqual(held[True], 0.93 * 300)
        self.assertLess(held[False], 0.75 * 300)

    def test_draws_of_visits_have_the_row_s_own_interval(self) -> None:
        visits = [[1.0, 0.9, 1.5], [math.exp(0.1)], [math.exp(0.2), math.exp(0.2)]]
        drawn = np.log(draws(visits, np.random.default_rng(1), 400_000))
        reach = 4.302653 * 0.1 / math.sqrt(3)  # t of 2 degrees
        low, high = np.percentile(drawn, [2.5, 97.5])
        self.assertAlmostEqual(low, 0.1 - reach, delta=0.005)
        self.assertAlmostEqual(high, 0.1 + reach, delta=0.005)

    def test_too_few_repetitions_have_no_interval(self) -> None:
        line, square = curve(7e-6, 1), curve(7e-9, 2)
        for visits, has in (
            ([[1.0, 1.1]], False),
            ([[1.0, 1.1, 1.2]], True),
            ([[1.0], [1.1]], True),
        ):
            pair = [
                {n: [[s * t for s in v] for v in visits] for n, t in c.items()}
                for c in (line, square)
            ]
            self.assertEqual(find_crossing(*pair, (line, square)).low is not None, has)

    def test_seeded(self) -> None:
        one, two = (cross(curve(7e-6, 1), curve(7e-9, 2)) for _ in range(2))
        self.assertEqual((one.low, one.high), (two.low, two.high))

    def test_outside_the_measured_range(self) -> None:
        never = cross(curve(1e-3, 1), curve(7e-9, 2))
        self.assertEqual((never.length, never.within), (math.inf, False))
        self.assertEqual(never.text(), "beyond 4k")
        always = cross(curve(1e-7, 1), curve(7e-9, 2))
        self.assertEqual((always.length, always.within), (-math.inf, False))
        self.assertEqual(always.text(), "before 256")

    def test_interval_open_where_the_edge_is_near(self) -> None:
        found = cross(curve(7e-9 * 4000, 1), curve(7e-9, 2), 0.1)
        self.assertTrue(found.within)
        self.assertEqual(found.high, math.inf)
        self.assertIn(">4k", found.text())

    def test_an_interval_of_all_lengths_says_nothing(self) -> None:
        same = {n: t for n, t in curve(7e-6, 1).items() if n in (256, 4096)}
        found = cross(same, same, 0.2)
        self.assertTrue(found.unclear)
        self.assertEqual(found.text(), "unclear (<256 to >4k)")
        self.assertFalse(cross(curve(7e-6, 1), curve(7e-9, 2)).unclear)

    def test_last_of_several_crossings_counts(self) -> None:
        full = dict.fromkeys(LENGTHS, 1.0)
        variant = dict(zip(LENGTHS, (0.5, 2.0, 0.5, 2.0, 0.5), strict=True))
        found = find_crossing({}, {}, (variant, full))
        self.assertAlmostEqual(found.length, math.sqrt(2048 * 4096))
        self.assertIsNone(found.low)

    def test_a_variant_that_falls_back_behind_is_not_faster(self) -> None:
        full = dict.fromkeys(LENGTHS, 1.0)
        variant = dict(zip(LENGTHS, (2.0, 0.5, 0.5, 0.5, 2.0), strict=True))
        self.assertEqual(find_crossing({}, {}, (variant, full)).length, math.inf)

    def test_only_common_lengths_count(self) -> None:
        full = {n: t for n, t in curve(7e-9, 2).items() if n < 4096}
        found = find_crossing({}, {}, (curve(7e-6, 1), full))
        self.assertEqual((found.first, found.last), (256, 2048))
        self.assertIsNone(find_crossing({}, {}, ({256: 1.0}, full)))


if __name__ == "__main__":
    unittest.main()
