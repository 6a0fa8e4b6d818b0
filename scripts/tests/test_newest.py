"""Which rows are drawn where none are named, and what is said of rows of several machines."""

from __future__ import annotations

import contextlib
import os
import unittest
from unittest import mock

import numpy as np
from PIL import Image

from . import fixture
from .test_plots import InFolder, plot


class Newest(InFolder):
    def test_rows_of_this_folder_or_its_repository_are_drawn_and_named(self) -> None:
        inner = self.folder / "repository" / "deep" / "er"
        for folder in (inner / "results", self.folder / "repository" / ".git"):
            folder.mkdir(parents=True)
        outer = self.folder / "repository" / "results"
        outer.mkdir()
        old = fixture.write(inner / "results" / "old.jsonl", fixture.memory_cells())
        new = fixture.write(outer / "new.jsonl", fixture.memory_cells())
        os.utime(old, (1, 1))
        for gone, drawn in ((None, new), (new, old)):
            if gone:
                gone.unlink()
            with contextlib.chdir(inner):
                code, out, err = plot("-o", self.folder / "out")
            self.assertEqual(code, 0, err)
            self.assertEqual(err, f"plot: draws {drawn.resolve()}, the newest rows\n")

    def test_the_program_s_own_rows_are_not_another_folder_s(self) -> None:
        own = self.folder / "own"
        (own / "results").mkdir(parents=True)
        fixture.write(own / "results" / "rows.jsonl", fixture.memory_cells())
        away = self.folder / "away"
        away.mkdir()
        with mock.patch("attnplot.command.ROOT", own):
            with contextlib.chdir(away):
                self.assertEqual(plot()[0], 2)
            with contextlib.chdir(own / "results"):
                self.assertEqual(plot("-o", self.folder / "out")[0], 0)


class Machines(InFolder):
    def test_two_machines_are_not_called_one(self) -> None:
        for cpus, words in ((("A", "A"), "one machine"), (("A", "B"), "two machines")):
            files = []
            for index, cpu in enumerate(cpus):
                head = fixture.header()
                head["environment"]["cpu_model"] = cpu
                rng = np.random.default_rng(1)
                cells = fixture.memory_cells() if index else fixture.speed_cells(rng)
                files.append(fixture.write(self.folder / f"{index}.jsonl", cells, head))
            out = self.folder / "-".join(cpus)
            self.assertEqual(plot(*files, "-o", out)[0], 0)
            told = Image.open(out / "overview.png").text
            self.assertIn(f"on {words}", told["Title"])
            warned = "Caution, two machines: " in told["Description"]
            self.assertEqual(warned, words != "one machine")


if __name__ == "__main__":
    unittest.main()
