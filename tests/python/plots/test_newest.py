"""Which rows are drawn where none are named, and what is said of rows of several machines."""

from __future__ import annotations

import contextlib
import json
import os
import unittest
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from PIL import Image

from attnbench.plots.layout.caption import NOISE, disturbed, provenance
from attnbench.plots.rows.read import read_rows

from .. import fixture
from .test_plots import InFolder, sketch

ROOT = Path(__file__).parents[3]


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
                code, out, err = sketch("-o", self.folder / "out")
            self.assertEqual(code, 0, err)
            self.assertEqual(err, f"plot: draws {drawn.resolve()}, the newest rows\n")

    def test_the_program_s_own_rows_are_not_another_folder_s(self) -> None:
        own = self.folder / "own"
        (own / "results").mkdir(parents=True)
        fixture.write(own / "results" / "rows.jsonl", fixture.memory_cells())
        away = self.folder / "away"
        away.mkdir()
        with mock.patch("attnbench.plots.command.ROOT", own):
            with contextlib.chdir(away):
                self.assertEqual(sketch()[0], 2)
            with contextlib.chdir(own / "results"):
                self.assertEqual(sketch("-o", self.folder / "out")[0], 0)


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
            self.assertEqual(sketch(*files, "--kind", "overview", "-o", out)[0], 0)
            told = Image.open(out / "overview.png").text
            self.assertIn(f"on {words}", told["Title"])
            warned = "Caution, two machines: " in told["Description"]
            self.assertEqual(warned, words != "one machine")

    def test_two_machines_of_one_name_differ_in_something_that_is_named(self) -> None:
        heads = [fixture.header() for _ in range(2)]
        for head, size in zip(heads, (1024, 2048)):
            head["environment"] |= {"memory_bytes": size, "caches": f"L2 {size}"}
        files = [fixture.write(self.folder / f"{n}.jsonl", fixture.memory_cells(), h) for n, h in enumerate(heads)]
        self.assertIn("Caution, two machines that differ in memory and caches: ", provenance(read_rows(files)))

    def test_what_disturbed_a_machine_is_told_in_words(self) -> None:
        cells = fixture.memory_cells()[:3]
        cells[0]["noisy"], cells[1]["noisy"] = ["witness"], ["witness", "steal"]
        found = read_rows([fixture.write(self.folder / "rows.jsonl", cells)]).cells
        beside = "work that never changes took longer beside it"
        told = f"2 of 3 cells were measured on a disturbed machine: the hypervisor took time (1); {beside} (2)."
        self.assertEqual(disturbed(found), told)
        self.assertEqual(disturbed([found[0], found[2]]), f"1 of 2 cells was measured on a disturbed machine: {beside}.")

    def test_every_word_of_noise_in_a_row_has_words_in_a_caption(self) -> None:
        schema = json.loads((ROOT / "results" / "schema.json").read_text(encoding="utf-8"))
        known = next(found for found in _named(schema, "noisy"))["items"]["enum"]
        self.assertEqual(set(known), set(NOISE))


def _named(schema: object, name: str) -> Iterator[dict]:
    """Every schema of a property of that name."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == name and "items" in value:
                yield value
            yield from _named(value, name)


if __name__ == "__main__":
    unittest.main()
