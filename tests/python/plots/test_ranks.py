"""Rankings and how well they agree, on known tables."""

from __future__ import annotations

import math
import unittest

import numpy as np

from attnbench.plots.rows.agreement import kendall_tau
from attnbench.plots.rows.ranks import (
    alike_groups,
    critical_difference,
    exact_p,
    kendall_w,
    order_of,
    ranks_of,
    smallest_subset,
    sure_ranks,
    surely_better,
)


class Agreement(unittest.TestCase):
    def test_ranks_begin_at_the_best_and_ties_share(self) -> None:
        self.assertEqual(ranks_of(np.array([0.5, 0.901, 0.899, 0.1])).tolist(), [3, 1.5, 1.5, 4])

    def test_what_is_not_surely_better_ties(self) -> None:
        apart = np.array([[0.9, 0.92, 0.91], [0.5, 0.52, 0.51], [0.5, 0.9, 0.7], [0.1, 0.1, 0.1]])
        # of the third it is not known whether it is better or worse than the first two; all are better than the last
        self.assertEqual(sure_ranks(apart).tolist(), [1.5, 2.5, 2, 4])
        self.assertEqual(sure_ranks(apart, 0.6).tolist(), [1.5, 3.0, 2.5, 3.0], "the floor is 0.6")
        self.assertEqual(sure_ranks(np.full((2, 3), 0.4)).tolist(), [1.5, 1.5])
        self.assertEqual(sure_ranks(np.array([[0.901], [0.899], [0.5]])).tolist(), [1.5, 1.5, 3])
        # by hand: means 0.5 apart, errors of 0.5 both, four degrees of freedom: t = 2.776
        near = np.array([[0.0, 1.0, 0.5], [0.5, 1.5, 1.0]])
        error = np.sqrt(2 * 0.25 / 3)
        self.assertFalse(surely_better(near + [[0.0], [2.77 * error - 0.5]])[1, 0])
        self.assertTrue(surely_better(near + [[0.0], [2.78 * error - 0.5]])[1, 0])

    def test_w_of_known_tables(self) -> None:
        self.assertEqual(kendall_w(np.array([[1, 2, 3, 4]] * 3)), 1)
        self.assertEqual(kendall_w(np.array([[1, 2, 3], [3, 2, 1]])), 0)
        # by hand: sums 2, 4.5, 5.5, 8 about 5 give S = 18.5; one tie of two takes 2 * 6 off 4 * 60
        self.assertAlmostEqual(kendall_w(np.array([[1, 2.5, 2.5, 4], [1, 2, 3, 4]])), 12 * 18.5 / 228)
        self.assertTrue(math.isnan(kendall_w(np.array([[2, 2, 2], [2, 2, 2]]))))

    def test_the_exact_test_counts_orders(self) -> None:
        self.assertAlmostEqual(exact_p(np.array([[1, 2, 3]] * 3)), 1 / 36)
        self.assertEqual(exact_p(np.array([[1, 2, 3], [3, 2, 1]])), 1)
        with self.assertRaisesRegex(ValueError, "too many orders"):
            exact_p(np.tile(np.arange(1, 8), (3, 1)))

    def test_the_critical_difference_is_that_of_the_paper(self) -> None:
        # Demšar 2006, section 3.2.4: four classifiers on 14 data sets, 2.569 · sqrt(4 · 5 / (6 · 14))
        self.assertAlmostEqual(critical_difference(4, 14), 1.25, places=2)
        self.assertAlmostEqual(critical_difference(10, 1) / math.sqrt(110 / 6), 3.164, places=3)

    def test_groups_are_the_largest_that_lie_near(self) -> None:
        self.assertEqual(alike_groups(np.array([3.0, 1.0, 2.0, 6.0]), 1.5), [(1, 2), (2, 0), (3,)])
        self.assertEqual(alike_groups(np.array([1.0, 2.0, 3.0]), 2.5), [(0, 1, 2)])
        self.assertEqual(alike_groups(np.array([1.0, 3.5]), 2.5), [(0,), (1,)], "as far apart is told apart")

    def test_tau_and_order(self) -> None:
        self.assertAlmostEqual(kendall_tau([1, 2, 3], [1, 3, 2]), 1 / 3)
        self.assertEqual(order_of(np.array([[2, 1, 3], [3, 1, 2], [3, 1, 2]])), (1, 2, 0))

    def test_the_smallest_subset_is_the_cheapest_of_its_size_and_has_no_ties(self) -> None:
        table = np.array([[1, 2, 3], [1, 2, 3], [3, 2, 1], [2, 2, 2]], float)
        self.assertEqual(smallest_subset(table, [5, 4, 1, 1]), ((1,), 0.5))
