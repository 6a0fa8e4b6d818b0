"""A time between two measured lengths: the truth lies within the bend, whatever the law."""

from __future__ import annotations

import math
import unittest

from attnbench.advice.deciding import Estimate, holm, sign_of
from attnbench.advice.times import ByLength, at_length

from .planted import Law, power, square

LAWS: dict[str, Law] = {
    "square": square(1e-9, 2e-7),
    "line": power(1e-7, 1.0),
    "constant, then a square": lambda n: 1e-5 + 1e-9 * n * n,
    "constant, then a line": lambda n: 1e-4 + 1e-7 * n,
    "a cache that is left at 4096": lambda n: 1e-8 * n * (2.0 if n > 4096 else 1.0) * n**0.5,
}


def measured(law: Law, lengths: tuple[int, ...]) -> ByLength:
    return {n: (Estimate(math.log(law(n)), 1e-9, 10.0), None) for n in lengths}  # type: ignore[misc]


class Between(unittest.TestCase):
    def test_the_truth_lies_within_the_bend(self) -> None:
        for name, law in LAWS.items():
            for lengths in ((256, 16384), (256, 1024, 4096, 16384), (512, 2048, 8192)):
                for length in (600, 1000, 3000, 5000, 8000):
                    with self.subTest(name, lengths=lengths, length=length):
                        timed = at_length(measured(law, lengths), length)
                        assert timed is not None
                        low, high = timed.estimate.interval()
                        slack = math.log(2) if "cache" in name and len(lengths) > 2 else 0.0  # a step, which no curve foretells
                        self.assertLessEqual(low - slack, math.log(law(length)))
                        self.assertGreaterEqual(high + slack, math.log(law(length)))

    def test_of_two_lengths_both_sides_are_open(self) -> None:
        timed = at_length(measured(power(1e-7, 1.0), (256, 16384)), 2048)
        assert timed is not None
        self.assertGreater(timed.estimate.bend, 1.0)
        flat = at_length(measured(lambda n: 1e-5 + 1e-9 * n * n, (256, 16384)), 2048)
        assert flat is not None
        self.assertLess(flat.estimate.interval()[0], math.log(1e-5 + 1e-9 * 2048**2))

    def test_a_measured_length_has_no_bend_and_what_lies_outside_has_no_time(self) -> None:
        known = measured(power(1e-7, 1.0), (256, 1024))
        at = at_length(known, 1024)
        assert at is not None
        self.assertEqual((at.estimate.bend, at.lengths), (0.0, (1024,)))
        self.assertIsNone(at_length(known, 255))
        self.assertIsNone(at_length(known, 1025))


class Deciding(unittest.TestCase):
    def test_holm(self) -> None:
        self.assertEqual(holm({"a": 0.01, "b": 0.02, "c": 0.04, "d": 0.5}), {"a"})  # 0.02 > 0.05 / 3
        self.assertEqual(holm({"a": 0.01, "b": 0.016, "c": 0.024, "d": 0.05}), {"a", "b", "c", "d"})
        self.assertEqual(holm({}), set())

    def test_a_claim_holds_on_every_machine_or_not_at_all(self) -> None:
        fast, slow, near = (Estimate(v, 0.01, 10.0) for v in (-0.5, 0.5, 0.0))
        self.assertEqual(sign_of([fast, fast])[0], -1)
        self.assertEqual(sign_of([slow])[0], 1)
        self.assertLess(sign_of([fast, fast])[1], 1e-6)
        self.assertEqual(sign_of([fast, slow]), (0, 1.0))
        self.assertGreater(sign_of([fast, near])[1], 0.5)

    def test_a_bend_is_no_chance(self) -> None:
        self.assertEqual(Estimate(-0.5, 1e-6, 10.0, bend=0.6).chance_below(), 1.0)
        low, high = Estimate(-0.5, 1e-6, 10.0, bend=0.6).interval()
        self.assertTrue(low < -1.09 and high > 0.09, (low, high))


if __name__ == "__main__":
    unittest.main()
