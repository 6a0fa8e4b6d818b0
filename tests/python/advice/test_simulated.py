"""Over planted noise the answers are wrong in at most 5 of 100 cases, and say something where there is something to say."""

from __future__ import annotations

import unittest

from .simulated import alike, apart, crossing, scores, times

MOST = 0.05


class Simulated(unittest.TestCase):
    def test_times(self) -> None:
        for draw, trials in ((alike, 40), (crossing, 50), (apart, 50)):
            with self.subTest(draw.__name__):
                tally = times(draw, trials, seed=7)
                print(f"{draw.__name__}: wrong {tally.wrong} of {tally.answers}, claimed {tally.claimed} of {tally.clear}")
                self.assertLessEqual(tally.share, MOST)
                self.assertGreaterEqual(tally.covered / tally.intervals, 0.93)
                if tally.clear:
                    self.assertGreater(tally.claimed / tally.clear, 0.6)

    def test_scores(self) -> None:
        for is_bimodal, least in ((False, 0.7), (True, 0.3)):
            with self.subTest(is_bimodal=is_bimodal):
                tally = scores(40, seed=8, is_bimodal=is_bimodal)
                print(f"scores: wrong {tally.wrong} of {tally.answers}, claimed {tally.claimed} of {tally.clear}")
                self.assertLessEqual(tally.share, MOST)
                self.assertGreater(tally.claimed / tally.clear, least)


if __name__ == "__main__":
    unittest.main()
