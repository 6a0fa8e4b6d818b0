"""The rule of "faster than full from": pictures answer the tables' cases, see tests/data."""

from __future__ import annotations

import json
import unittest
from pathlib import Path

from attnbench.plots.layout.caption import Floors
from attnbench.plots.rows.crossing import Floor, faster_from
from attnbench.plots.rows.read import Cell

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


if __name__ == "__main__":
    unittest.main()
