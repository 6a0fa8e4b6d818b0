"""What pages of reproductions say of intervals that hold together, of bounds that came late, and of machines."""

from __future__ import annotations

import math
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

from attnbench.plots.rows.read import Rows
from attnbench.reproduce import findings, page
from attnbench.reproduce.entries import FOLDER, ReproduceError, entry_ids, read_entry
from attnbench.reproduce.estimates import Estimate, difference, exact, mean_of
from attnbench.reproduce.evidence import judged as judged_from_rows
from attnbench.reproduce.judging import Finding, Verdict
from attnbench.reproduce.product import Product


def judged(found: tuple[Finding, ...], **changed: str) -> page.Judged:
    entry = replace(read_entry(FOLDER / "R7"), **changed)
    return page.Judged(entry, Verdict(found, "Why."), None, Rows((Path("memory.jsonl"),), [], []))


class Together(unittest.TestCase):
    def test_an_estimate_keeps_how_many_hold_together(self) -> None:
        one = mean_of([1.0, 2.0, 3.0], 4)
        self.assertEqual(one.among, 4)
        self.assertGreater(one.high, mean_of([1.0, 2.0, 3.0]).high)
        self.assertEqual((one.mapped(math.exp).among, (one / 2).among, difference(one, Estimate(1, 1, 1)).among), (4, 4, 4))

    def test_the_page_says_what_such_intervals_are(self) -> None:
        alone = Finding("a figure", mean_of([1.0, 2.0, 3.0]), least=0)
        several = tuple(Finding(f"figure {i}", mean_of([1.0, 2.0, 3.0], 2), least=0) for i in range(2))
        plain = Finding("no interval", exact(1.0), least=0)
        self.assertEqual(page.together((alone,)), "")
        wide = "are wider than those of single figures: each is one of 97.50 %, so that all 2 of them hold together in 95 % of cases (Bonferroni)."
        self.assertEqual(page.together((plain, *several)), f"The intervals here {wide}")
        said = page.together((alone, *several))
        self.assertEqual(said, f"The intervals here, but for “a figure”, {wide}")
        self.assertIn(said, page.text_of([judged((alone, *several))]))

    def test_entries_that_divide_their_error_are_called_so(self) -> None:
        text = page.PAGE.read_text(encoding="utf-8")
        sections = {part.partition(":")[0]: part for part in text.split("\n## ")[1:]}
        told = {name for name, part in sections.items() if "(Bonferroni)" in part}
        self.assertEqual(told, {"R1", "R2", "R3", "R9", "R27"})

    def test_intervals_hold_as_many_together_as_there_are(self) -> None:
        two = tuple(Finding(f"figure {i}", mean_of([1.0, 2.0, 3.0], 5), least=0) for i in range(2))
        with self.assertRaisesRegex(ValueError, "intervals of 2 findings are made to hold 5 together; expected 2 for each"):
            Verdict(two, "Why.")

    def test_the_largest_of_several_ratios_is_one_figure(self) -> None:
        entry = read_entry(FOLDER / "R11")
        found = judged_from_rows(entry, entry.folder, Product()).findings
        self.assertEqual({one.found.among for one in found}, {1})


class Bounds(unittest.TestCase):
    def test_those_set_after_the_rows_are_told(self) -> None:
        late = judged((Finding("a figure", mean_of([1.0, 2.0, 3.0]), least=0),), bounds="Set later.")
        self.assertIn("**Bounds:** Set later.\n\n**Outcome:", page.text_of([late]))
        self.assertNotIn("**Bounds:**", page.text_of([judged(late.verdict.findings, bounds="")]).partition("## R7")[2])
        self.assertTrue(any(read_entry(FOLDER / name).bounds for name in entry_ids()))

    def test_they_are_a_text(self) -> None:
        with tempfile.TemporaryDirectory() as held:
            folder = Path(held, "R7")
            folder.mkdir()
            given = (FOLDER / "R7" / "entry.toml").read_text(encoding="utf-8")
            head = given.partition("bounds = ")[0]
            (folder / "entry.toml").write_text(head + "bounds = 3\n" + "minutes = " + given.partition("\nminutes = ")[2], encoding="utf-8")
            for name in ("verdict.py", "memory.toml"):
                (folder / name).write_text("", encoding="utf-8")
            with self.assertRaisesRegex(ReproduceError, "bounds is 3; expected a text"):
                read_entry(folder)


class Machines(unittest.TestCase):
    def test_processors_of_one_name_are_told_apart_by_their_pace(self) -> None:
        place = {"cpu_model": "A CPU", "instruction_set": "avx2", "calibration": {"fma_flops_per_s_one": 118.2e9}}
        faster = {**place, "calibration": {"fma_flops_per_s_one": 273e9}}
        one = judged(())
        for places, said in (
            ([place, place], "A CPU, avx2, 118 GFLOP/s"),
            ([place, faster], "A CPU, avx2, 118 GFLOP/s; A CPU, avx2, 273 GFLOP/s"),
            ([{"cpu_model": "A CPU"}], "A CPU"),
            ([{}], ""),
        ):
            runs = [{"environment": found} for found in places]
            self.assertEqual(findings.machine_of(replace(one, measured=replace(one.measured, runs=runs))), said)

    def test_a_number_carries_the_marks_and_the_machine_of_its_entry(self) -> None:
        text = findings.PAGE.read_text(encoding="utf-8")
        for line in text.splitlines():
            if line.startswith(("| [R15]", "| [R19]")):
                self.assertIn(") `?*` |", line)
            if line.startswith(("| [R14]", "| [R15]")) and "attention |" in line:
                self.assertIn("GFLOP/s |", line)
        self.assertGreater(text.count("| [R15]"), 2)
