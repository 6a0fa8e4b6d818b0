"""The rule of "faster than full from": pictures answer the tables' cases, see tests/data."""

from __future__ import annotations

import json
import unittest
from pathlib import Path

from attnplot.faster import faster_from

CASES = Path(__file__).resolve().parents[2] / "tests" / "data" / "faster_from.json"


class FasterFrom(unittest.TestCase):
    def test_the_shared_cases(self) -> None:
        cases = json.loads(CASES.read_text(encoding="utf-8"))["cases"]
        self.assertGreaterEqual(len(cases), 8)
        for case in cases:
            with self.subTest(case["name"]):
                times = [
                    {int(n): (low, high) for n, (low, high) in case[of].items()}
                    for of in ("variant", "full")
                ]
                self.assertEqual(faster_from(case["lengths"], *times), case["answer"])


if __name__ == "__main__":
    unittest.main()
