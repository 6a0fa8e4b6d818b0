"""Crossings of curves whose crossing is known on paper; and the rule of "faster than full from": pictures
answer the tables' cases, see tests/data."""

from __future__ import annotations

import json
import math
import unittest
from pathlib import Path

import numpy as np

from attnbench.plots.layout.caption import Floors
from attnbench.plots.rows.crossing import Floor, draws, faster_from, find_crossing
from attnbench.plots.rows.read import Cell

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


CASES = Path(__file__).resolve().parents[3] / "tests" / "data" / "faster_from.json"


class FasterFrom(unittest.TestCase):
    def test_the_shared_cases(self) -> None:
        cases = json.loads(CASES.read_text(encoding="utf-8"))["cases"]
        self.assertGreaterEqual(len(cases), 15)
        for case in cases:
            with self.subTest(case["name"]):
                sides = [case[of] for of in ("variant", "full")]
                times = [{int(n): (at[0], at[1]) for n, at in side.items()} for side in sides]
                medians = [{int(n): at[2] for n, at in side.items() if len(at) > 2} for side in sides]
                shares = {int(n): share for n, share in case.get("floors", {}).items()}
                found = faster_from(case["lengths"], *times, Floor(shares, *medians))
                self.assertEqual(found, case["answer"])
                if not shares:
                    self.assertEqual(faster_from(case["lengths"], *times), case["answer"])


def cell(length: int, mode: str = "forward", threads: int = 1, run: str = "a") -> Cell:
    axes = {"length": length, "mode": mode, "threads": threads}
    return Cell(f"{length}", "ok", None, "speed", "full", (), None, (), axes, {}, None, run)


def floor(length: int, share: float, mode: str = "forward", threads: int = 1) -> dict[str, object]:
    at = {"mode": mode, "threads": threads, "length": length, "share": share}
    return {**at, "cells": 5, "measured_at": "2026-01-31T12:00:00Z", "commit": None}


class NearestFloor(unittest.TestCase):
    """As tests/harness/tables/floors_test.cc."""

    def setUp(self) -> None:
        known = [floor(64, 0.03), floor(256, 0.01), floor(64, 0.5, "train"), floor(64, 0.7, threads=2)]
        self.floors = Floors([{"run": "a", "noise_floor": known}, {"run": "b"}])

    def test_the_nearest_length_of_the_same_mode_and_threads_counts(self) -> None:
        for of, share in (
            (cell(16), 0.03),
            (cell(64), 0.03),
            (cell(100), 0.03),
            (cell(128), 0.03),  # as near to both: the higher one
            (cell(129), 0.01),
            (cell(9999), 0.01),
            (cell(256, "train"), 0.5),
            (cell(256, threads=2), 0.7),
            (cell(64, "decode"), None),
            (cell(64, threads=4), None),
            (cell(64, run="b"), None),
        ):
            self.assertEqual(self.floors.share(of), share, of.axes)
        self.assertEqual(self.floors.shares((cell(64), cell(512), cell(64, run="b"))), {64: 0.03, 512: 0.01})

    def test_captions_quote_it_where_a_run_has_one(self) -> None:
        self.assertEqual(
            self.floors.note([cell(64), cell(512)]),
            "Noise floor of this machine, forward: 3.0 % at 64, 1.0 % at 256 (attnbench noise, 2026-01-31).",
        )
        self.assertIn("No noise floor", self.floors.note([cell(64, "decode")]))
        self.assertEqual(self.floors.note([cell(64, run="b")]), "")
