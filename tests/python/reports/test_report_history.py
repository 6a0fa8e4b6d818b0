"""A history of runs: a planted step is found at its commit, noise is seldom called one, folders that make none are refused."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np

from attnbench.plots.rows.read import RowsError, read_rows
from attnbench.plots.rows.style import Styles
from attnbench.reports.book import Book
from attnbench.reports.history import LEVEL, history, read_history, steps

from .. import fixture

RUNS, SERIES, POINTS = 10, 300, 12


def simulated(rng: np.random.Generator, noise: str) -> np.ndarray:
    if noise == "heavy":
        return rng.standard_t(2, size=POINTS)
    return rng.standard_normal(POINTS)


class ChangePoints(unittest.TestCase):
    def test_the_share_of_false_alarms_is_the_level(self) -> None:
        """Of 300 series without a step; three standard errors of the share on both sides."""
        for noise in ("normal", "heavy"):
            rng = np.random.default_rng(11)
            alarms = np.mean([bool(steps(simulated(rng, noise))) for _ in range(SERIES)])
            reach = 3 * np.sqrt(LEVEL * (1 - LEVEL) / SERIES)
            self.assertTrue(abs(alarms - LEVEL) < reach, (noise, alarms))

    def test_steps_are_found_where_they_are(self) -> None:
        rng = np.random.default_rng(5)
        found = 0
        for _ in range(40):
            values = 0.01 * rng.standard_normal(18) + np.repeat([0.0, 0.2, -0.1], 6)
            found += [s.at for s in steps(values)] == [6, 12]
        self.assertGreaterEqual(found, 34)  # of 40; the inner cut at 6 of 12 is at the level's limit
        (step,) = steps([1.0, 1.01, 0.99, 1.0, 1.0, 1.3, 1.31, 1.29, 1.3, 1.3])
        self.assertEqual(step.at, 5)
        self.assertAlmostEqual(step.after - step.before, 0.3, delta=0.01)

    def test_few_values_have_no_step(self) -> None:
        self.assertEqual(steps([1.0, 1.0, 1.0, 9.0, 9.0]), [])


class History(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)

    def runs(self, factor_of: dict[str, list[float]], count: int = RUNS, noise: float = 0.01) -> None:
        """Times with noise, of 1 % by default; `factor_of` a variant by run. Names of files go against their times."""
        rng = np.random.default_rng(2)
        for number in range(count):
            head: dict[str, Any] = fixture.header(f"2026010{number // 10}T0000{number:02d}Z")
            head["environment"] = {**head["environment"], "commit": f"{number:x}" * 40}
            head["started_at"] = f"2026-01-01T00:{number:02d}:00Z"
            cells = []
            for name, factors in factor_of.items():
                params = dict(fixture.VARIANTS)[name]
                for n in (256, 512):
                    time = 1e-6 * n * factors[number] * (1 + noise * rng.standard_normal(9))
                    row = fixture.timed(name, params, fixture.shape(n, "forward", "attention", False), time, n)
                    cells.append({**row, "run": head["run"]})
            fixture.write(self.folder / f"run{count - number:02d}.jsonl", cells, head)

    def section(self) -> dict[str, Any]:
        past = read_history(self.folder)
        rows = read_rows([past[-1].file])
        found = history(past, Book(rows, Styles(rows)))
        assert found is not None
        return found

    def test_a_step_is_marked_at_its_commit(self) -> None:
        self.runs({"full": [1.0] * RUNS, "linear": [1.0] * 6 + [1.25] * 4})
        found = self.section()
        table = next(t for t in found["tables"] if t["id"] == "steps")
        told = [r for r in table["rows"] if r[1].startswith("linear")]
        self.assertEqual([r[2] for r in told], ["6" * 9] * 2)
        for row in told:
            self.assertAlmostEqual(row[5], 1.25, delta=0.02)
            self.assertLessEqual(row[6], LEVEL)
        (panel,) = found["panels"]
        marked = {line["name"]: line["steps"] for line in panel["lines"]}
        self.assertEqual(marked["linear, length 256, seed 1"], [7])
        self.assertEqual(marked["full, length 256, seed 1"], [])
        self.assertEqual(panel["x"]["names"], [f"{i:x}" * 9 for i in range(RUNS)])
        line = next(x for x in panel["lines"] if x["name"].startswith("linear"))
        self.assertAlmostEqual(line["points"][-1][1], 1.25, delta=0.03)

    def test_a_step_below_two_percent_is_not_marked(self) -> None:
        for share, wanted in ((1.015, ["commits"]), (1.03, ["steps", "commits"])):
            self.runs({"full": [1.0] * 5 + [share] * 5}, noise=1e-4)
            self.assertEqual([t["id"] for t in self.section()["tables"]], wanted)

    def test_what_makes_no_history_is_refused(self) -> None:
        with self.assertRaisesRegex(RowsError, r"needs two rows files \(\*\.jsonl\), it has 0"):
            read_history(self.folder)
        self.runs({"full": [1.0] * 2}, 2)
        both = sorted(self.folder.glob("*.jsonl"))
        lines = [line for file in both for line in file.read_text().splitlines()]
        merged = [line.replace('"kind": "run"', '"merged": true, "kind": "run"') for line in lines]
        both[0].write_text("\n".join(merged) + "\n")
        with self.assertRaisesRegex(RowsError, r"run01\.jsonl: holds 2 runs"):
            read_history(self.folder)


if __name__ == "__main__":
    unittest.main()
