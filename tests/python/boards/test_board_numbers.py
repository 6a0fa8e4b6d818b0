"""The numbers of the board, on rows whose answers are known: ratios, scores, bytes, groups, intervals."""

from __future__ import annotations

import json
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from attnbench.boards.data import Labels, data_of
from attnbench.boards.groups import Block, blocks_of, by_machine, by_task, complete, over_machines, told_apart
from attnbench.boards.numbers import MEMORY, SCORES, SPEED, Number, numbers_of, ratio
from attnbench.boards.submissions import Submission, read_folder
from attnbench.plots.rows.read import Cell
from attnbench.pooling.machines import fleet_of
from attnbench.pooling.ratios import log_times, ratios

from . import planted


def cell(times: list[float], visits: tuple[int, ...]) -> Cell:
    metrics = {"time_s": {"median": float(np.median(times))}}
    return Cell("1" * 16, "ok", None, "speed", "linear", (), None, (), {"length": 8}, metrics, times, visits=visits)


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def one(self, cells: list[dict[str, Any]], name: str = "a", said: str = "", **others: Any) -> Submission:
        path = self.folder / f"{name}.attnbundle"
        digest = planted.archive(path, cells, **others)
        if said:
            planted.verdict(path, digest, said, cells[:1])
        found, left_out = read_folder(self.folder)
        self.assertEqual(left_out, [])
        return next(s for s in found if s.file == path.name)

    def numbers(self, cells: list[dict[str, Any]], **others: Any) -> list[Number]:
        return numbers_of(self.one(cells, **others))


class Ratios(InFolder):
    def test_they_are_those_of_pool(self) -> None:
        """pool's tests hold its intervals to their coverage."""
        rng = np.random.default_rng(2)
        s = self.one([*planted.timed(rng, 1.0, 512, "forward"), *planted.timed(rng, 1.0, 512, "train")])
        figures = {f.cells: f for group in ratios(fleet_of([s.rows])) for f in group.figures}
        found = [n for n in numbers_of(s) if n.measure == SPEED]
        self.assertEqual(len(found), 8)
        for n in found:
            figure = figures[" ".join(n.cells)]
            known = [np.exp(v) for v in (figure.value, *figure.interval)]
            np.testing.assert_allclose([n.value, n.low, n.high], known, rtol=1e-12)

    def test_by_hand_of_few_cells_the_interval_is_satterthwaites(self) -> None:
        a, b = np.log([1.0, 1.1, 1.3]), np.log([2.0, 2.1, 2.3, 2.2])
        found = ratio(*log_times([cell(list(np.exp(a)), (1, 1, 1)), cell(list(np.exp(b)), (1, 1, 1, 1))]))
        known = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
        np.testing.assert_allclose(found, [np.exp(a.mean() - b.mean()), np.exp(known.low), np.exp(known.high)])
        self.assertEqual(ratio(*log_times([cell([1, 1, 9], (3,)), cell([2, 2.1], (1, 1))]))[1:], (None, None), "one visit tells no interval")

    def test_the_reference_is_of_the_same_run_and_setting(self) -> None:
        rng = np.random.default_rng(2)
        cells = planted.timed(rng, 1.0, 512, "forward") + planted.timed(rng, 5.0, 1024, "forward")
        alone = [c for c in planted.timed(rng, 1.0, 2048, "forward") if c["variant"]["name"] != "full"]
        found = [n for n in self.numbers(cells + alone) if n.measure == SPEED]
        self.assertEqual(len(found), 8)
        self.assertEqual({n.length for n in found}, {512, 1024}, "2048 has no exact attention")
        rows = {(c["variant"]["name"], c["axes"]["length"]): c for c in cells}
        for n in found:
            own, exact = rows[n.variant, n.length], rows["full", n.length]
            wanted = own["metrics"]["time_s"]["median"] / exact["metrics"]["time_s"]["median"]
            self.assertAlmostEqual((n.value or 0) / wanted, 1, delta=0.02)
            self.assertEqual(n.cells, (own["cell"], exact["cell"]))

    def test_a_failure_stays_in_the_table(self) -> None:
        cells = planted.timed(np.random.default_rng(2), 1.0, 512, "forward")
        cells[1] = {**cells[1], "status": "timeout", "reason": "took over 60 s", "metrics": None, "samples": None}
        cells[1].pop("visits")
        found = next(n for n in self.numbers(cells) if n.variant == "truncated")
        self.assertEqual((found.value, found.marks), (None, "timeout"))

    def test_the_instruction_set_and_a_departure_part_places(self) -> None:
        cells = planted.timed(np.random.default_rng(2), 1.0, 512, "forward")
        places = [
            self.numbers(cells, name=str(i), environment=machine, departs=departs)[0].place
            for i, (machine, departs) in enumerate((({}, ()), ({"kernel_instruction_set": "neon"}, ()), ({}, ("steps",))))
        ]
        self.assertEqual(len(set(places)), 3)
        self.assertTrue(places[2].protocol.endswith(", departs in steps"), places[2])


class Scores(InFolder):
    def test_the_mean_over_seeds_with_its_interval_and_floor(self) -> None:
        cells = [c for c in planted.scored(np.random.default_rng(3), ("mqar",), 3)]
        found = {n.variant: n for n in self.numbers(cells)}
        tests = [c["metrics"]["test"] for c in cells if c["variant"]["name"] == "linear"]
        n = found["linear"]
        self.assertAlmostEqual(n.value or 0, float(np.mean(tests)))
        half = stats.t.ppf(0.975, 2) * np.std(tests, ddof=1) / np.sqrt(3)
        self.assertAlmostEqual((n.high or 0) - (n.value or 0), half)
        self.assertEqual((n.more["floor"], n.more["seeds"], n.task, n.causal), (0.12, 3, "mqar", True))

    def test_seeds_of_several_runs_are_one_score(self) -> None:
        s = self.one(planted.scored(np.random.default_rng(3), ("mqar",), 4))
        (head,), cells = s.rows.runs, s.rows.cells
        halves = [replace(c, run=f"run {c.axes['seed'] % 2}") for c in cells]
        rows = replace(s.rows, runs=[{**head, "run": "run 0"}, {**head, "run": "run 1"}], cells=halves)
        split = replace(s, rows=rows, members={"run 0": "rows/rows.jsonl", "run 1": "rows/rows.jsonl"})
        for one, whole in zip(numbers_of(split), numbers_of(s), strict=True):
            self.assertEqual((one.variant, one.more["seeds"]), (whole.variant, 4))
            np.testing.assert_allclose([one.value, one.low, one.high], [whole.value, whole.low, whole.high], rtol=1e-12)
        apart = replace(split, members={"run 0": "rows/a.jsonl", "run 1": "rows/b.jsonl"})
        self.assertEqual({n.more["seeds"] for n in numbers_of(apart)}, {2})

    def test_what_was_cut_off_is_marked_and_ranked_nowhere(self) -> None:
        cells = planted.scored(np.random.default_rng(3), ("mqar",), 2)
        for c in cells[-2:]:
            c["metrics"] = {**c["metrics"], "ended_by": "steps"}
        found = self.numbers(cells)
        self.assertEqual([n.marks for n in found], ["", "", "", "", "\u2020"])
        self.assertNotIn("linear", {key[0] for key in by_task(found)["mqar[length=64]"]})

    def test_of_errors_less_is_better_and_none_is_worse_than_the_best_rule(self) -> None:
        cells = planted.scored(np.random.default_rng(3), ("mqar",), 2)
        for c in cells:
            error = {"metric": "mean_squared_error", "test": 1 - c["metrics"]["test"], "shortcuts": {"mean": 0.5, "last": 0.6}, "chance": 0.9}
            c["metrics"] = {**c["metrics"], **error}
        found = self.numbers(cells)
        self.assertEqual({n.more["floor"] for n in found}, {0.5})
        merits = {key[0]: merit for key, merit in by_task(found)["mqar[length=64]"].items()}
        means = {n.variant: n.value for n in found}
        self.assertEqual(merits, {v: -min(means[v] or 0, 0.5) for v in means})
        self.assertEqual((merits["linformer"], merits["truncated"]), (-0.5, -0.5), "0.85 and 0.8")
        self.assertGreater(merits["full"], merits["performer"], "0.01 and 0.3")

    def test_the_same_cell_of_two_archives_is_one_seed(self) -> None:
        own = self.numbers(planted.scored(np.random.default_rng(3), ("mqar",), 2), name="a")
        again = self.numbers(planted.scored(np.random.default_rng(4), ("mqar",), 1), name="b")
        key = own[1].key
        first, second = (next(n for n in numbers if n.key == key).more["tests"] for numbers in (own, again))
        shared = next(iter(second))
        known = np.mean([np.mean([first[shared], second[shared]]), *(v for c, v in first.items() if c != shared)])
        self.assertAlmostEqual(by_task([*own, *again])["mqar[length=64]"][key], float(known))


class Memory(InFolder):
    def test_bytes_are_whole_and_marked(self) -> None:
        found = {n.variant: n for n in self.numbers(planted.held(1024)) if n.measure == MEMORY}
        full, linear = found["full"], found["linear"]
        self.assertEqual((full.value, full.more["ratio"], full.more["state"]), (4096 * 1024, 1.0, 2048 * 1024))
        self.assertEqual((linear.value, linear.more["ratio"]), (4096 * 256, 0.25))
        self.assertEqual(full.marks, "~")


class Groups(InFolder):
    def test_ranks_and_groups_of_a_known_table(self) -> None:
        # 14 judges, four variants: Demšar's critical difference is 1.25; by hand the mean ranks are 1, 2, 3.5, 3.5
        merits = np.array([[4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]] * 7)
        keys = [(name, ()) for name in "abcd"]
        lines, difference = told_apart(merits, keys)
        self.assertAlmostEqual(difference, 1.25, places=2)
        self.assertEqual([(line.key[0], line.rank, line.members) for line in lines],
                         [("a", 1, (True, False)), ("b", 2, (True, False)), ("c", 3.5, (False, True)), ("d", 3.5, (False, True))])  # fmt: skip

    def test_equal_variants_are_told_apart_in_at_most_5_of_100_tables(self) -> None:
        rng, draws = np.random.default_rng(6), 1000
        for judges, variants in ((3, 4), (6, 5), (20, 5)):
            keys = [(str(i), ()) for i in range(variants)]
            wrong = sum(len(told_apart(rng.normal(0, 1, (judges, variants)), keys)[0][0].members) > 1 for _ in range(draws))
            self.assertLessEqual(wrong / draws, 0.065, (judges, variants))
            self.assertGreater(wrong / draws, 0.01 if judges > 3 else 0.001, (judges, variants))

    def test_the_median_over_machines_has_an_interval_that_needs_six(self) -> None:
        self.assertEqual(over_machines(np.array([0.5, 0.6, 0.7, 0.8, 1.2]))["low"], None)
        found = over_machines(np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.2]))
        self.assertEqual((found["low"], found["high"], found["faster"]), (0.5, 1.2, 5))
        self.assertAlmostEqual(found["ratio"], 0.75)
        rng, held = np.random.default_rng(7), 0
        for _ in range(2000):
            told = over_machines(np.exp(rng.normal(0, 1, 15)))
            held += told["low"] <= 1 <= told["high"]
        self.assertTrue(0.95 <= held / 2000 <= 0.98, held / 2000)

    def test_a_variant_that_few_judges_have_is_left_out(self) -> None:
        a, b, c = (("a", ()), ("b", ()), ("c", ()))
        merits = {"1": {a: 1.0, b: 2.0}, "2": {a: 1.0, b: 2.0}, "3": {a: 1.0, b: 2.0, c: 3.0}, "4": {a: 1.0}}
        self.assertEqual(complete(merits), ([a, b], ["1", "2", "3"]))
        self.assertEqual(complete({}), ([], []))

    def crowd(self, count: int, said: str = "") -> list[Number]:
        found = []
        for i in range(count):
            cells = planted.timed(np.random.default_rng(i), 1.0 + i, 512, "forward")
            found += self.numbers(cells, name=f"m{i}", environment={"cpu_model": f"cpu {i}"}, said=said)
        return found

    def block(self, numbers: list[Number], only_verified: bool = False) -> Block | None:
        return next((b for b in blocks_of(numbers) if b.measure == SPEED and b.only_verified == only_verified), None)

    def test_machines_are_the_judges_and_one_machine_counts_once(self) -> None:
        numbers = self.crowd(4)
        block = self.block(numbers)
        assert block
        self.assertEqual((block.judges, block.unverified, block.length, block.mode), (4, 4, 512, "forward"))
        self.assertEqual({line.key[0] for line in block.lines}, {"full", "truncated", "linformer", "performer", "linear"})
        ratios = {n.machine.text: n.value or 0.0 for n in numbers if n.variant == "linear"}
        line = next(line for line in block.lines if line.key[0] == "linear")
        self.assertAlmostEqual(line.ratio or 0, float(np.median(list(ratios.values()))))
        self.assertEqual(line.faster, 4)
        again = [replace(n, value=(n.value or 0) * 1.21) for n in numbers if n.submission.file == "m0.attnbundle"]
        merits = by_machine([*numbers, *again])
        self.assertEqual(len(merits), 4)
        own, first = next(n for n in again if n.variant == "linear"), next(n for n in numbers if n.variant == "linear")
        self.assertAlmostEqual(merits[own.machine.key][own.key], -np.log((first.value or 0) * 1.1))

    def test_too_few_machines_make_no_groups(self) -> None:
        self.assertIsNone(self.block(self.crowd(2)))

    def test_a_timeout_ranks_last_and_a_crash_nowhere(self) -> None:
        numbers = self.crowd(3)
        late = [replace(n, value=None, marks="timeout") if n.variant == "truncated" else n for n in numbers]
        block = self.block(late)
        assert block
        self.assertEqual((block.lines[-1].key[0], block.lines[-1].ratio, block.lines[-1].faster), ("truncated", None, 0))
        self.assertIn("truncated", json.dumps(data_of(late, [block], Labels(n.key for n in late)), allow_nan=False))
        crashed = [replace(n, value=None, marks="failed") if n.variant == "truncated" else n for n in numbers]
        block = self.block(crashed)
        assert block
        self.assertNotIn("truncated", [line.key[0] for line in block.lines])

    def test_what_others_disagree_with_judges_nothing_and_verified_blocks_are_apart(self) -> None:
        self.assertIsNone(self.block(self.crowd(3, "disagree")))
        numbers = self.crowd(3, "agree")
        block, verified = self.block(numbers), self.block(numbers, True)
        assert block and verified
        self.assertEqual((block.unverified, verified.judges), (0, 3))
        self.assertIsNone(self.block(self.crowd(3, "not comparable"), True))

    def test_scores_are_judged_by_tasks(self) -> None:
        numbers = self.numbers(planted.scored(np.random.default_rng(3)))
        (block,) = [b for b in blocks_of(numbers) if b.measure == SCORES]
        self.assertEqual((block.judges, block.only_verified, block.lines[0].key[0], block.lines[0].ratio), (3, False, "full", None))
