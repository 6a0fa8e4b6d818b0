"""The verdict of every entry of scripts/reproduce on planted rows: laws that agree, that disagree, and rows too noisy to say."""

from __future__ import annotations

import re
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

from attnreproduce.entries import FOLDER, entry_ids, read_entry
from attnreproduce.evidence import judged
from attnreproduce.judging import Outcome, Verdict
from attnreproduce.page import judge
from attnreproduce.product import Product

from . import planted_forms, planted_runs

PROGRAM = Product().path
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

    def test_hashing_that_looks_at_all_keys_does_not_agree(self) -> None:
        with tempfile.TemporaryDirectory() as held:
            planted_forms.r8(Path(held), "agrees")
            rows = Path(held) / "hashing.jsonl"
            rows.write_text(re.sub('"seen": [0-9.]*', '"seen": 1.0', rows.read_text()))
            found = judged(read_entry(FOLDER / "R8"), Path(held), Product())
        self.assertEqual(found.outcome, Outcome.disagrees)

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
