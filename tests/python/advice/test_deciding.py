"""What may be claimed of estimates: signs, their chances, claims together; and the least error of a score."""

from __future__ import annotations

import math
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from attnbench.advice import command
from attnbench.advice.deciding import Estimate, combined, holm, sign_of
from attnbench.advice.scoring import Score, Scored
from attnbench.advice.standing import _scores
from scipy.special import stdtr, stdtrit

from .asking import answered
from .planted import EXACT, World, power


class Deciding(unittest.TestCase):
    def test_the_chance_of_a_sign_is_two_sided(self) -> None:
        sign, p = sign_of([Estimate(-2.0, 1.0, 7.0)])
        self.assertEqual(sign, -1)
        self.assertAlmostEqual(p, 2 * float(stdtr(7.0, -2.0)))
        self.assertEqual(sign_of([Estimate(2.0, 1.0, 7.0)]), (1, p))

    def test_every_machine_must_have_the_sign(self) -> None:
        sure, weak = Estimate(-9.0, 1.0, 7.0), Estimate(-1.0, 1.0, 7.0)
        self.assertAlmostEqual(sign_of([sure, weak])[1], sign_of([weak])[1])
        self.assertEqual(sign_of([sure, Estimate(9.0, 1.0, 7.0)])[0], 0)

    def test_a_bend_is_no_chance(self) -> None:
        self.assertEqual(sign_of([Estimate(-0.5, 0.0, 7.0, bend=0.6)]), (0, 1.0))
        low, high = Estimate(1.0, 0.1, 7.0, bend=0.6).interval()
        self.assertAlmostEqual(high - low, 2 * (0.1 * float(stdtrit(7.0, 0.975)) + 0.6))

    def test_claims_together_by_holm(self) -> None:
        self.assertEqual(holm({"a": 0.012, "b": 0.02, "c": 0.04, "d": 0.9}), {"a"})
        self.assertEqual(holm({"a": 0.012, "b": 0.016, "c": 0.025, "d": 0.05}), {"a", "b", "c", "d"})
        self.assertEqual(holm({"a": 0.06}), set())
        self.assertEqual(holm({"a": math.nan}), set())

    def test_errors_of_a_sum(self) -> None:
        error, freedom = combined([(3.0, 4.0), (4.0, 8.0)])
        self.assertEqual((error, freedom), (5.0, 625 / (81 / 4 + 256 / 8)))
        self.assertEqual(combined([(0.0, 4.0), (0.0, 2.0)]), (0.0, 2.0))

    def test_to_lose_in_one_of_many_settings_is_a_claim_for_each(self) -> None:
        """A chance of 0.01 in one of ten settings is none to lose by: one of ten would be as small in one of ten tables."""
        key = ("linear", ())
        unlikely = Estimate(-float(stdtrit(9.0, 0.99)), 1.0, 9.0)
        for others, said in ((0, "loses"), (9, "undecided")):
            surpluses = [unlikely, *[Estimate(0.0, 1.0, 9.0)] * others]
            own = tuple(Score("mqar", str(i), "accuracy", 0.9, 0.01, 5, "full", 0.99, 0.1, s, "", ()) for i, s in enumerate(surpluses))
            self.assertEqual(_scores(Scored({key: own}, ("mqar",), ()))[key][0], said)

    def test_seeds_that_agree_by_luck_have_the_error_of_the_test_examples(self) -> None:
        world = World({"full": EXACT, "linear": power(4e-7, 1.0)}, tests={"mqar": {"full": [0.99] * 5, "linear": [0.99] * 5}})
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(command, "forecast", lambda _: ""):
            answer = answered(world.write(Path(folder)), "--length", "4096", "--task", "mqar")
        (score,) = answer["lines"][0]["scores"]
        self.assertAlmostEqual(score["half"], float(stdtrit(4, 0.975)) * math.sqrt(0.99 * 0.01 / 1000 / 5))


if __name__ == "__main__":
    unittest.main()
