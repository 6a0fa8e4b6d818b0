"""The verdict of every entry of scripts/reproduce on planted rows: laws that agree, that disagree, and rows too noisy to say."""

from __future__ import annotations

import json
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnbench.reproduce.entries import FOLDER, entry_ids, read_entry
from attnbench.reproduce.evidence import judged
from attnbench.reproduce.judging import Outcome, Verdict
from attnbench.reproduce.page import judge
from attnbench.reproduce.product import Product

from . import planted_forms, planted_runs

PROGRAM = Product().path
Row = dict[str, Any]
Planting = Callable[[Path, str], None]  # into a folder, of one of the kinds
KINDS = {"agrees": Outcome.agrees, "disagrees": Outcome.disagrees, "noisy": Outcome.undecided}
# What fails there is the machine's: times of one program over those of another.
OF_MACHINE = {"R20"}


def planting(name: str) -> Planting:
    """The function r7 of entry R7."""
    return next(getattr(of, name.lower()) for of in (planted_forms, planted_runs) if hasattr(of, name.lower()))


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
class Verdicts(unittest.TestCase):
    def verdict(self, name: str, kind: str) -> Verdict:
        with tempfile.TemporaryDirectory() as held:
            planting(name)(Path(held), kind)
            return judged(read_entry(FOLDER / name), Path(held), Product())

    def test_outcomes(self) -> None:
        for name in entry_ids():
            for kind, expected in KINDS.items():
                if name in OF_MACHINE and kind == "disagrees":
                    expected = Outcome.hardware
                with self.subTest(entry=name, kind=kind):
                    found = self.verdict(name, kind)
                    told = [(f.state.value, f.what, f.found) for f in found.findings]
                    self.assertEqual(found.outcome, expected, f"{found.why}\n{told}")
                    self.assertGreater(len(found.why), 20)

    def disagrees(self, name: str, file: str, change: Callable[[Row], None], more: Callable[[list[Row]], list[Row]] = list,
                  outcome: Outcome = Outcome.disagrees) -> None:  # fmt: skip
        """Rows that agree no longer do where `change` was at each of them, and `more` at all."""
        with tempfile.TemporaryDirectory() as held:
            planting(name)(Path(held), "agrees")
            path = Path(held) / f"{file}.jsonl"
            head, *rows = map(json.loads, path.read_text().splitlines())
            for row in rows:
                change(row)
            path.write_text("".join(json.dumps(row) + "\n" for row in (head, *more(rows))))
            found = judged(read_entry(FOLDER / name), Path(held), Product())
        self.assertEqual(found.outcome, outcome, [(f.state.value, f.what, f.found) for f in found.findings])

    def test_hashing_that_looks_at_all_keys_does_not_agree(self) -> None:
        self.disagrees("R8", "hashing", lambda row: row.update(seen=1.0))

    def test_the_strength_of_the_delta_rule_is_not_chosen_on_the_draws_that_test_it(self) -> None:
        def change(row: Row) -> None:  # 1/4 is best where it is chosen, 1 where it is tested
            if (row["keys"], row["rule"], row["times"]) == ("random", "delta rule", "re-bound"):
                row["accuracy"] = 0.95 if (row["strength"] == 1) is row["testing"] else 0.2

        self.disagrees("R9", "recall", change)

    def test_of_several_draws_the_form_that_is_farthest_off_counts(self) -> None:
        def more(rows: list[Row]) -> list[Row]:
            wrong = next(r for r in rows if (r["of"], r.get("form"), r.get("type")) == ("forms", "parallel", "float64"))
            return [{**wrong, "difference": 0.1}, *({**r, "seed": 1} if r is wrong else r for r in rows)]

        self.disagrees("R10", "forms", lambda row: None, more)

    def test_a_saving_of_memory_that_does_not_grow_disagrees(self) -> None:
        def change(row: Row) -> None:
            if (row["measure"], row["variant"]["name"]) == ("memory", "full"):
                row["metrics"]["peak_bytes"] = 60_000 * row["axes"]["length"]

        self.disagrees("R15", "saving", change)

    def test_a_cache_that_takes_little_of_the_factor_disagrees(self) -> None:
        def change(row: Row) -> None:  # a pass anew takes hardly more than a step with a cache
            if row["axes"]["mode"] == "forward":
                factor = 1.2 * (1e-6 + 1e-8 * row["axes"]["length"]) / row["metrics"]["time_s"]["median"]
                row["samples"] = [factor * s for s in row["samples"]]
                row["metrics"]["time_s"] = {k: v if k == "n" else factor * v for k, v in row["metrics"]["time_s"].items()}

        self.disagrees("R18", "tokens", change)

    def test_scores_of_other_seeds_are_no_pairs(self) -> None:
        def change(row: Row) -> None:
            if row["axes"]["seed"] == 2 and row["variant"]["name"] == "truncated":
                row["axes"]["seed"] = 7

        self.disagrees("R30", "frames", change, outcome=Outcome.undecided)

    def test_losses_are_those_of_the_end_of_the_curve(self) -> None:
        def change(row: Row) -> None:
            for point in row["samples"] if row["variant"]["name"] == "linear" else ():
                point["train_loss"] = 5.0 if point["step"] > 15 else point["train_loss"]

        self.disagrees("R23", "copy", change)

    def test_a_crossing_that_nothing_decides_is_unclear_and_not_left_out(self) -> None:
        self.assertEqual(len(self.verdict("R20", "noisy").findings), len(self.verdict("R20", "agrees").findings))

    def test_what_agrees_has_a_picture(self) -> None:
        for name in entry_ids():
            with self.subTest(entry=name), tempfile.TemporaryDirectory() as held:
                planting(name)(Path(held), "agrees")
                picture = judge(read_entry(FOLDER / name), Path(held), Product()).picture
                assert picture is not None and picture.figure is not None
                picture.figure.draw_without_rendering()
                wide = picture.figure.bbox.width
                outside = [t.get_text() for t in picture.figure.texts if t.get_window_extent().x1 > wide]
                self.assertEqual(outside, [])
                self.assertIn("commit 012345678", picture.caption)
                self.assertFalse(picture.data["value"].isna().any())


if __name__ == "__main__":
    unittest.main()
