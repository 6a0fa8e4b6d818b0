"""Random effects: against closed forms, a published example and simulations whose truth is known."""

from __future__ import annotations

import math
import unittest

import numpy as np
from attnbench.pooling.effects import MANY, alike, between, random_effects, shared_variances, weighted
from scipy.special import stdtrit

DRAWS = 4000
MACHINES = (2, 3, 5, 10)


def drawn(errors: list[float], count: int, tau: float, degrees: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Estimates of a mean of 0 by `count` machines with these errors in turn, and the errors as visits of so many degrees tell them."""
    own = np.tile(np.resize(np.array(errors), count), (DRAWS, 1))
    y = rng.normal(size=own.shape) * np.sqrt(own**2 + tau**2)
    told = own if degrees >= MANY else own * np.sqrt(rng.chisquare(degrees, size=own.shape) / degrees)
    return y, told, np.full(own.shape, degrees), own


def held(errors: list[float], count: int, tau: float, degrees: float, *, share: float | None = None, seed: int = 1) -> tuple[float, float]:
    """Shares of draws in which the interval held the mean, and that for a new machine what one measured likewise said."""
    rng = np.random.default_rng(seed)
    y, told, freedom, own = drawn(errors, count, tau, degrees, rng)
    variances = np.square(told) if share == 0 else shared_variances(told, freedom)
    mean, error = weighted(y, variances + between(y, variances))
    reach = stdtrit(count - 1, 0.975)
    new = rng.normal(size=DRAWS) * np.sqrt(own[np.arange(DRAWS), rng.integers(0, count, DRAWS)] ** 2 + tau**2)
    ahead = reach * np.hypot(error, y.std(-1, ddof=1))
    return float(np.mean(np.abs(mean) <= reach * error)), float(np.mean(np.abs(new - mean) <= ahead))


class Coverage(unittest.TestCase):
    """A share of 4000 draws is off by 0.35 % in two of three cases, so that 93 to 97 % is no play of chance."""

    def check(self, errors: list[float], degrees: float, least: float = 0.93, most: float = 0.97) -> None:
        for count in MACHINES:
            for tau in (0.0, 1.0, 5.0):
                with self.subTest(errors=errors, degrees=degrees, machines=count, tau=tau):
                    own, ahead = held(errors, count, tau, degrees)
                    self.assertGreater(own, least)
                    self.assertLess(own, most)
                    if count > 2:
                        self.assertGreater(ahead, 0.92)
                        self.assertLess(ahead, 0.97)

    def test_equal_errors(self) -> None:
        self.check([1.0], MANY)

    def test_unequal_errors(self) -> None:
        self.check([1.0, 2.0], MANY)

    def test_errors_of_few_visits(self) -> None:
        self.check([1.0], 2)
        self.check([1.0, 2.0], 2)

    def test_errors_of_some_visits(self) -> None:
        self.check([1.0, 2.0], 6)

    def test_errors_far_apart_are_rather_too_wide(self) -> None:
        self.check([1.0, 3.0], MANY, most=0.985)
        self.check([1.0, 4.0], MANY, most=0.99)

    def test_weights_of_the_errors_alone_would_not_do(self) -> None:
        # Why variances are drawn together, see effects.py.
        self.assertLess(held([1.0, 4.0], 2, 5.0, MANY, share=0)[0], 0.92)
        self.assertLess(held([1.0], 10, 0.0, 2, share=0)[0], 0.90)

    def test_q_rejects_what_is_alike_in_five_of_a_hundred(self) -> None:
        for degrees, most in ((MANY, 0.06), (6.0, 0.08)):
            for count in MACHINES:
                with self.subTest(degrees=degrees, machines=count):
                    y, told, freedom, _ = drawn([1.0, 2.0], count, 0.0, degrees, np.random.default_rng(5))
                    share = float(np.mean(alike(y, told, freedom)[1] < 0.05))
                    self.assertGreater(share, 0.035)
                    self.assertLess(share, most)

    def test_q_sees_what_differs(self) -> None:
        y, told, freedom, _ = drawn([1.0], 5, 5.0, 6.0, np.random.default_rng(5))
        self.assertGreater(float(np.mean(alike(y, told, freedom)[1] < 0.05)), 0.95)

    def test_tau_is_found(self) -> None:
        for errors in ([1.0], [1.0, 2.0]):
            y, told, freedom, _ = drawn(errors, 10, 3.0, MANY, np.random.default_rng(7))
            self.assertAlmostEqual(float(np.sqrt(between(y, shared_variances(told, freedom)).mean())), 3.0, delta=0.15)


class Published(unittest.TestCase):
    """Nine laboratories in Kacker (2004, Metrologia 41, 132-136), with what R's metafor says of them; `share` of 0 is the published method."""

    Y = [61.0, 61.4, 62.21, 62.3, 62.34, 62.6, 62.7, 62.84, 65.9]
    V = [0.2025, 1.21, 0.09, 0.2025, 0.3844, 0.5625, 0.0676, 0.0225, 1.8225]

    def test_paule_and_mandel(self) -> None:
        found = random_effects(self.Y, np.sqrt(self.V).tolist(), share=0)
        self.assertAlmostEqual(found.estimate, 62.4076199113, places=8)
        self.assertAlmostEqual(found.tau**2, 0.7053953092, places=8)
        self.assertAlmostEqual(found.q, 24.8018977418, places=8)
        self.assertAlmostEqual(found.q_p, 0.0016793515, places=9)
        # At this tau the weighted squares sum to machines - 1, so that the error is that of the weights: metafor's 0.33803.
        self.assertAlmostEqual((found.high - found.estimate) / stdtrit(8, 0.975), 0.3380306027, places=8)

    def test_hartung_and_knapp(self) -> None:
        # About DerSimonian and Laird's tau, the sum differs from machines - 1: metafor's test="knha".
        mean, error = weighted(np.array(self.Y), np.array(self.V) + 0.288049246973751)
        self.assertAlmostEqual(float(mean), 62.3901386045, places=8)
        self.assertAlmostEqual(float(error), 0.2947760570, places=8)

    def test_variances_drawn_together_change_little_here(self) -> None:
        own = random_effects(self.Y, np.sqrt(self.V).tolist())
        self.assertAlmostEqual(own.estimate, 62.4, delta=0.1)


class ClosedForms(unittest.TestCase):
    def test_equal_errors_give_students_interval(self) -> None:
        y = [0.1, 0.25, 0.4, 0.33]
        found = random_effects(y, [0.05] * 4)
        reach = float(stdtrit(3, 0.975)) * np.std(y, ddof=1) / 2
        self.assertAlmostEqual(found.estimate, np.mean(y), places=12)
        self.assertAlmostEqual(found.high - found.estimate, reach, places=9)
        self.assertAlmostEqual(found.estimate - found.low, reach, places=9)
        self.assertAlmostEqual(found.tau**2, np.var(y, ddof=1) - 0.05**2, places=9)  # scatter beyond the errors
        self.assertAlmostEqual(found.q, 3 * np.var(y, ddof=1) / 0.05**2, places=9)
        self.assertAlmostEqual(found.i_squared, 1 - 3 / found.q, places=12)
        ahead = float(stdtrit(3, 0.975)) * np.std(y, ddof=1) * math.sqrt(1 + 1 / 4)
        self.assertAlmostEqual(found.new_high - found.estimate, ahead, places=9)

    def test_where_nothing_differs_tau_is_nought(self) -> None:
        found = random_effects([0.10, 0.11, 0.09], [0.05, 0.05, 0.05])
        self.assertEqual(found.tau, 0.0)
        self.assertEqual(found.i_squared, 0.0)
        self.assertGreater(found.q_p, 0.9)

    def test_one_machine_has_its_own_interval_and_no_tau(self) -> None:
        found = random_effects([0.3], [0.1])
        self.assertAlmostEqual(found.high, 0.3 + 1.959964 * 0.1, places=6)
        of_few = random_effects([0.3], [0.1], degrees=[2])
        self.assertAlmostEqual(of_few.high, 0.3 + 4.302653 * 0.1, places=6)
        self.assertTrue(all(math.isnan(x) for x in (found.tau, found.q, found.q_p, found.new_low, found.i_squared)))
        self.assertTrue(math.isnan(random_effects([0.3], [math.nan]).low))

    def test_two_machines_are_told_wide(self) -> None:
        found = random_effects([0.0, 0.1], [0.001, 0.001])
        self.assertAlmostEqual(found.high - found.estimate, 12.7062 * 0.05, places=3)  # t of 1 degree times a half of the difference
        self.assertTrue(math.isnan(found.new_low))

    def test_figures_without_error_and_without_a_known_one(self) -> None:
        same = random_effects([0.2, 0.2, 0.2], [0, 0, 0])
        self.assertAlmostEqual(same.low, 0.2, places=12)
        for errors in ([0.0] * 3, [math.nan] * 3):
            found = random_effects([0.1, 0.2, 0.4], errors)
            self.assertAlmostEqual(found.estimate, 0.7 / 3, places=9)
            self.assertAlmostEqual(found.tau, np.std([0.1, 0.2, 0.4], ddof=1), places=6)
        one_unknown = random_effects([0.1, 0.2, 0.4], [0.1, math.nan, 0.1])
        self.assertAlmostEqual(one_unknown.estimate, random_effects([0.1, 0.2, 0.4], [0.1] * 3).estimate, places=9)

    def test_a_noisy_machine_counts_less_but_counts(self) -> None:
        found = random_effects([0.0, 0.0, 1.0], [0.1, 0.1, 1.0])
        self.assertLess(found.estimate, 1 / 3)
        self.assertGreater(found.estimate, 0.0)

    def test_a_level_widens(self) -> None:
        y, s = [0.1, 0.3, 0.2], [0.05, 0.05, 0.05]
        self.assertLess(random_effects(y, s, 0.99).low, random_effects(y, s).low)

    def test_what_is_no_estimate_is_refused(self) -> None:
        for estimates, errors in (([], []), ([0.1], [0.1, 0.2]), ([math.inf], [0.1]), ([0.1], [-0.1]), ([0.1], [math.inf])):
            with self.subTest(estimates=estimates, errors=errors), self.assertRaises(ValueError):
                random_effects(estimates, errors)
