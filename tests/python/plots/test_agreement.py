"""Kendall's tau between tasks: by hand, its interval by simulation, and which scores count."""

from __future__ import annotations

import json
import math

import numpy as np

from attnbench.plots.rows.agreement import LEAST, agreements, kendall_tau, tau_interval
from attnbench.plots.rows.scores import task_groups
from attnbench.reports.document import document

from ..faults import ROOT
from .probe_rows import cell
from .test_overview import InOverview

NAMES = [f"variant{i}" for i in range(LEAST)]


def on(task: str, scores: dict[str, float], **more) -> list[dict]:
    return [cell(name, task, test, **more) for name, test in scores.items()]


def in_bits(scores: dict[str, float], **more) -> list[dict]:
    return on("lm", scores, metric="bits_per_token", chance=8.0, shortcuts={"n-gram of 2": 9.0}, **more)


class Agreements(InOverview):
    def of(self, *rows: list[dict]):
        return agreements(task_groups(self.rows([row for own in rows for row in own]).of("accuracy")))

    def test_tau_counts_pairs(self) -> None:
        self.assertEqual(kendall_tau([1, 2, 3, 4], [1, 2, 3, 4]), 1)
        self.assertAlmostEqual(kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]), 4 / 6)
        self.assertEqual(kendall_tau([1, 2, 3], [3, 2, 1]), -1)
        self.assertAlmostEqual(kendall_tau([1, 1, 2, 3], [1, 2, 3, 4]), 5 / math.sqrt(5 * 6), msg="tau-b of one tie")
        self.assertTrue(math.isnan(kendall_tau([1, 1, 1], [1, 2, 3])))

    def test_both_languages_give_the_tau_of_scipy(self) -> None:
        """The cases that tests/harness/compare/agreement_test.cc reads too: ties on one side and on both, and few variants."""
        cases = json.loads((ROOT / "tests" / "data" / "kendall_tau.json").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(cases), 14)
        for case in cases:
            tau = kendall_tau(case["x"], case["y"])
            self.assertEqual(math.isnan(tau), case["tau"] is None, case)
            if case["tau"] is not None:
                self.assertAlmostEqual(tau, case["tau"], places=12, msg=str(case))

    def test_ties_count_for_neither_and_fewer_than_three_variants_make_no_order(self) -> None:
        (found,) = self.of(on("copy", dict(zip(NAMES, (0.9, 0.9, 0.8, 0.7), strict=False))), in_bits(dict(zip(NAMES, (2.0, 2.1, 2.2, 2.2), strict=False))))
        self.assertAlmostEqual(found.tau, 4 / 5)
        scores = dict(zip(NAMES, (0.9, 0.8, 0.7), strict=False))
        for shared, pairs in ((1, 0), (2, 0), (3, 1)):
            bits = in_bits(dict(zip(NAMES[:shared], (2.0, 2.1, 2.2), strict=False)))
            self.assertEqual(len(self.of(on("copy", scores), bits)), pairs, shared)

    def test_less_bits_are_better(self) -> None:
        good = {name: 0.1 * i for i, name in enumerate(NAMES)}
        (found,) = self.of(on("copy", good), in_bits({name: 3 - 0.1 * i for i, name in enumerate(NAMES)}))
        self.assertEqual((found.tau, found.variants), (1, LEAST))
        assert found.interval is not None
        self.assertLess(found.interval[0], 1)
        (other,) = self.of(on("copy", good), in_bits({name: 1 + 0.1 * i for i, name in enumerate(NAMES)}))
        self.assertEqual(other.tau, -1)

    def test_variants_that_both_have_count_and_what_was_cut_off_does_not(self) -> None:
        short = dict(zip(NAMES, (0.1, 0.2, 0.3, 0.4), strict=False))
        bits = in_bits({**{name: 3 - v for name, v in short.items()}, "else": 1.0})
        (found,) = self.of(on("copy", short), bits)
        self.assertEqual((found.variants, found.interval), (4, None))
        cut = in_bits({NAMES[0]: 2.0}, ended_by="steps")
        (fewer,) = self.of(on("copy", short), [*cut, *bits[1:]])
        self.assertEqual(fewer.variants, 3)
        self.assertEqual(self.of(on("copy", short), bits[:2]), [], "two variants make no order")
        self.assertEqual(self.of(on("copy", short), on("sort", short)), [], "nothing is scored in bits")

    def test_what_scores_all_alike_has_no_order_and_no_pair_stands_twice(self) -> None:
        bits = {name: 3 - 0.1 * i for i, name in enumerate(NAMES)}
        rows = [*on("copy", dict.fromkeys(NAMES, 1.0)), *in_bits(bits)]
        self.assertEqual(self.of(rows), [])
        document(self.rows(rows))
        other = [row | {"task": {"name": "other", "params": {}}} for row in in_bits({k: v + 1 for k, v in bits.items()}, seed=1)]
        self.assertEqual([(a.task.split()[0], a.with_task.split()[0]) for a in self.of(in_bits(bits), other)], [("lm", "other")])

    def test_the_interval_holds_tau_as_often_as_it_says(self) -> None:
        """Of normal numbers with correlation r, tau is 2/pi·asin(r)."""
        rng, draws = np.random.default_rng(4), 2000
        for count in (8, 16, 40):
            for correlation in (0.0, 0.6, 0.9):
                tau = 2 / math.pi * math.asin(correlation)
                held = 0
                for _ in range(draws):
                    x = rng.normal(size=count)
                    y = correlation * x + math.sqrt(1 - correlation**2) * rng.normal(size=count)
                    low, high = tau_interval(kendall_tau(x, y), count)
                    held += low <= tau <= high
                self.assertTrue(0.93 <= held / draws <= 0.99, f"{count} variants, r {correlation}: {held / draws}")

    def test_the_report_has_the_table(self) -> None:
        good = {name: 0.5 + 0.05 * i for i, name in enumerate(("full", *NAMES))}
        page = document(self.rows([*on("copy", good), *in_bits({name: 3 - v for name, v in good.items()})]))
        self.assertIn("Does it carry over?", page)
        self.assertNotIn("Does it carry over?", document(self.rows(on("copy", good))))
