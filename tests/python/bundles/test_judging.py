"""Verdicts of single cells: honest ones rarely disagree, lies are found. Simulated, with fixed seeds."""

from __future__ import annotations

import random
import unittest
from math import comb
from statistics import median

from attnbench.bundles.judging import (
    AGREE,
    DISAGREE,
    NEITHER,
    Verdict,
    judged_bytes,
    judged_error,
    judged_outcome,
    judged_score,
    judged_time,
    label_of,
    missed,
)

from .planted import Line, cell, edited

CELLS = 8  # of a sample, judged together


def timed(stream: random.Random, base: float, between: float, within: float) -> Line:
    """A cell of three visits of three samples. Noise of visits and of samples is lognormal, and one visit in ten is disturbed: slower by up to 30 %."""
    samples = []
    for _ in range(3):
        visit = base * stream.lognormvariate(0, between) * (1 + (0.3 * stream.random() if stream.random() < 0.1 else 0))
        samples += [visit * stream.lognormvariate(0, within) for _ in range(3)]
    return {"samples": samples, "visits": [3, 3, 3], "metrics": {"time_s": {"median": median(samples)}}}


def verdict(stream: random.Random, change: float, between: float, within: float = 0.005) -> Verdict:
    """Of a cell whose ratio to exact attention is now `change` times what it was."""
    pairs = tuple((timed(stream, 1e-3 * factor, between, within), timed(stream, 5e-3, between, within)) for factor in (1.0, change))
    return judged_time((pairs[0], pairs[1]), CELLS)


class Times(unittest.TestCase):
    def test_honest_samples_rarely_disagree(self) -> None:
        """Of samples of eight honest cells at most 5 in 100 hold one that disagrees, on a quiet machine, a busy one and a very busy one."""
        for between in (0.005, 0.03, 0.10):
            stream = random.Random(f"honest {between}")
            wrong = sum(any(verdict(stream, 1.0, between).state == DISAGREE for _ in range(CELLS)) for _ in range(400))
            self.assertLessEqual(wrong, 0.05 * 400, f"noise of {between}: {wrong} of 400")

    def test_intervals_hold_the_change(self) -> None:
        """The intervals are of level 1 - 0.05/8, whatever the machine: at least 99 in 100 hold the true change."""
        for between in (0.005, 0.03, 0.10):
            stream = random.Random(f"coverage {between}")
            held = 0
            for _ in range(1000):
                interval = verdict(stream, 0.8, between).interval
                assert interval is not None
                held += interval[0] <= 0.8 <= interval[1]
            self.assertGreaterEqual(held, 990, f"noise of {between}")

    def test_lies_are_found(self) -> None:
        """Half of the true time is found nearly always where the noise is 1 %, as is a tenth of it where it is 10 %."""
        for lie, between, least in ((2.0, 0.01, 95), (0.5, 0.01, 95), (10.0, 0.10, 85)):
            stream = random.Random(f"lie {lie} {between}")
            found = sum(verdict(stream, lie, between).state == DISAGREE for _ in range(100))
            self.assertGreaterEqual(found, least, f"a change of {lie} with noise of {between}: {found} of 100")

    def test_the_words_say_that_the_interval_decides(self) -> None:
        """A change of 1.6 that agrees would puzzle a reader who takes 0.91 to 1.10 for the limits of the change."""
        one = {"samples": [1.0, 1.5, 2.0], "visits": [3], "metrics": {"time_s": {"median": 1.5, "ci_low": 1.3, "ci_high": 1.8}}}
        now = {**one, "metrics": {"time_s": {"median": 1.8, "ci_low": 1.6, "ci_high": 2.0}}}
        said = judged_time(((one, one), (now, one)), 1)
        self.assertEqual(said.state, AGREE)
        self.assertIn("(change 1.2, interval ", said.words)
        self.assertIn("; one that reaches 0.91 to 1.10 agrees)", said.words)

    def test_what_is_within_the_tolerance_agrees(self) -> None:
        stream = random.Random("near")
        self.assertTrue(all(verdict(stream, 1.05, 0.002, 0.002).state != DISAGREE for _ in range(50)))

    def test_too_noisy_to_tell(self) -> None:
        stream = random.Random("noisy")
        states = [verdict(stream, 1.0, 0.8).state for _ in range(50)]
        self.assertGreater(states.count(NEITHER), 25)

    def test_times_without_noise(self) -> None:
        same = {"samples": [1.0] * 9, "visits": [3, 3, 3], "metrics": {"time_s": {"median": 1.0}}}
        twice = {**same, "samples": [2.0] * 9}
        self.assertEqual(judged_time(((same, same), (same, same)), 1).state, AGREE)
        self.assertEqual(judged_time(((same, same), (twice, same)), 1).state, DISAGREE)

    def test_one_visit_counts_by_its_own_interval(self) -> None:
        one = {"samples": [1.0, 1.1, 0.9], "visits": [3], "metrics": {"time_s": {"median": 1.0, "ci_low": 0.9, "ci_high": 1.1}}}
        found = judged_time(((one, one), (one, one)), 1)
        assert found.interval is not None
        self.assertLess(found.interval[0], 0.9)


class Others(unittest.TestCase):
    def test_scores(self) -> None:
        then = cell("accuracy", "linear", 64)
        self.assertEqual(judged_score(then, then, [], CELLS, is_same_build=False).state, AGREE)
        worse = cell("accuracy", "linear", 64, factor=0.8)
        self.assertEqual(judged_score(then, worse, [], CELLS, is_same_build=False).state, DISAGREE)
        little = cell("accuracy", "linear", 64, factor=0.9)
        self.assertEqual(judged_score(then, little, [], CELLS, is_same_build=False).state, DISAGREE)
        self.assertEqual(judged_score(then, little, [0.9, 0.96], CELLS, is_same_build=False).state, AGREE, "other seeds lie as far apart")
        self.assertEqual(judged_score(then, worse, [0.6, 0.95], CELLS, is_same_build=False).state, NEITHER, "so far that all would agree")
        unsure = edited(then, "metrics.test_stderr", 0.5)
        self.assertEqual(judged_score(unsure, worse, [], CELLS, is_same_build=False).state, NEITHER, "an error that hides every lie")
        near = cell("accuracy", "linear", 64, factor=0.98)
        self.assertEqual(judged_score(then, near, [], CELLS, is_same_build=False).state, AGREE)
        self.assertEqual(judged_score(then, near, [], CELLS, is_same_build=True).state, DISAGREE)
        self.assertEqual(judged_score(then, then, [], CELLS, is_same_build=True).state, AGREE)
        unfinished = edited(then, "metrics.ended_by", "steps")
        self.assertEqual(judged_score(then, unfinished, [], CELLS, is_same_build=False).state, DISAGREE)

    def test_errors_and_bytes(self) -> None:
        then = cell("fidelity", "linear")
        for factor, same, fresh in ((1.0, AGREE, AGREE), (1.01, AGREE, AGREE), (1.5, DISAGREE, AGREE), (0.5, DISAGREE, AGREE),
                                    (3.0, DISAGREE, DISAGREE), (0.3, DISAGREE, DISAGREE)):  # fmt: skip
            now = cell("fidelity", "linear", factor=factor)
            self.assertEqual((judged_error(then, now, is_fresh=False).state, judged_error(then, now, is_fresh=True).state), (same, fresh), factor)
        self.assertEqual(judged_error(cell("fidelity", "full"), cell("fidelity", "full", factor=50), is_fresh=False).state, AGREE, "rounding")
        then = cell("memory", "linear")
        for factor, same, other in ((1.01, AGREE, AGREE), (1.05, DISAGREE, AGREE), (1.5, DISAGREE, DISAGREE), (0.5, DISAGREE, DISAGREE)):
            now = cell("memory", "linear", factor=factor)
            states = tuple(judged_bytes(then, now, is_same_machine=is_same).state for is_same in (True, False))
            self.assertEqual(states, (same, other), factor)

    def test_a_cell_that_does_not_run_here(self) -> None:
        for status, state in (("timeout", NEITHER), ("oom", NEITHER), ("skipped", NEITHER), ("failed", DISAGREE), ("diverged", DISAGREE)):
            found = judged_outcome(cell("fidelity", "linear", status=status, reason="\x1b[2Jwhy"))
            assert found is not None
            self.assertEqual(found.state, state)
            self.assertNotIn("\x1b", found.words)
        self.assertIsNone(judged_outcome(cell("fidelity", "linear")))

    def test_the_chance_to_miss_every_false_cell(self) -> None:
        for cells, sampled in ((100, 8), (18, 4), (5, 5), (20, 1)):
            false = -(-cells // 10)
            self.assertAlmostEqual(missed(cells, sampled), comb(cells - false, sampled) / comb(cells, sampled))
        self.assertEqual(missed(0, 0), 1.0)

    def test_labels_are_plain(self) -> None:
        self.assertEqual(label_of(cell("speed", "truncated")), "speed truncated[window=16] length=256 heads=2 seed=0 mode=forward scope=attention")
