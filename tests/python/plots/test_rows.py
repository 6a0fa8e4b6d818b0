"""The reader of rows: takes what the contract allows and names file, line and fault of the rest. Which rows
are drawn where none are named, what is said of several machines, and numbers in words."""

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

from attnbench.plots.layout.caption import NOISE, caption, disturbed, provenance, repetitions
from attnbench.plots.rows.checksum import FIELD, hash_of
from attnbench.plots.rows.read import Rows, RowsError, read_rows, run_of
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import bytes_text, length_text, ratio_text, seconds_text, thousands_text

from .. import fixture
from ..faults import ROOT
from ..reports.test_report import report
from .test_plots import InFolder, plot, sketch

SCHEMA = Path(__file__).resolve().parents[3] / "results" / "schema.json"


class ReadRows(InFolder):
    def fault(self, text: str | bytes) -> str:
        file = self.folder / "rows.jsonl"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        with self.assertRaises(RowsError) as caught:
            read_rows([file], SCHEMA)
        message = str(caught.exception)
        self.assertNotIn("\n", message)
        return message.removeprefix(str(file))

    def lines(self, **changes: object) -> str:
        """A header and one good cell with some fields changed."""
        good = fixture.memory_cells()[0]
        return "\n".join(map(json.dumps, (fixture.header(), {**good, **changes}))) + "\n"

    def test_visits_split_the_samples(self) -> None:
        good = fixture.speed_cells(np.random.default_rng(1))[0] | {"visits": [4, 3, 2]}
        file = self.folder / "rows.jsonl"
        file.write_text("\n".join(map(json.dumps, (fixture.header(), good))) + "\n")
        cell = read_rows([file], SCHEMA).cells[0]
        self.assertEqual([len(v) for v in cell.visited()], [4, 3, 2])
        self.assertEqual([t for v in cell.visited() for t in v], cell.times())
        del good["visits"]  # as written before visits were recorded
        file.write_text("\n".join(map(json.dumps, (fixture.header(), good))) + "\n")
        cell = read_rows([file], SCHEMA).cells[0]
        self.assertEqual(cell.visited(), [cell.times()])
        for bad in ([4, 3, 1], [9, 0], "3", []):
            lines = "\n".join(map(json.dumps, (fixture.header(), {**good, "visits": bad}))) + "\n"
            self.assertRegex(self.fault(lines), "visits")

    def test_a_line_with_its_checksum_but_not_of_the_schema_is_refused(self) -> None:
        lines = (ROOT / "results" / "reference" / "settings.jsonl").read_text().splitlines()[:4]
        for place, field, value in ((1, "environment", 5), (3, "verified", "x"), (3, "ledger", [1])):
            row = {**json.loads(lines[place - 1]), field: value}
            row[FIELD] = hash_of({k: v for k, v in row.items() if k != FIELD})
            with self.subTest(field=field):
                changed = [*lines[: place - 1], json.dumps(row), *lines[place:]]
                self.assertRegex(self.fault("\n".join(changed) + "\n"), f"^:{place}: .*{field}")

    def test_a_line_that_was_changed_after_it_was_written_is_refused(self) -> None:
        """As the program refuses it. The program wrote these rows, and they are read as they stand."""
        for name in ("settings", "positions"):
            read_rows([ROOT / "results" / "reference" / f"{name}.jsonl"], SCHEMA)
        lines = (ROOT / "results" / "reference" / "settings.jsonl").read_text().splitlines()[:4]
        said = "the line was changed after it was written: its checksum does not match"
        for place, field, other in ((1, "argv", ["attnbench"]), (2, "duration_s", 0.125), (2, "checksum", "0" * 16)):
            rows = [json.loads(line) for line in lines]
            rows[place - 1][field] = other
            with self.subTest(field=field):
                self.assertEqual(self.fault("\n".join(map(json.dumps, rows)) + "\n"), f":{place}: {said}")
        for row in rows:
            del row["checksum"]  # as early versions wrote them
        file = self.folder / "rows.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)) + "\n")
        self.assertEqual(len(read_rows([file], SCHEMA).cells), len(lines) - 1)
        file.write_text("\n".join(lines).replace('"duration_s":', '"duration_s":1') + "\n")
        for verb in (plot, report):
            code, out, err = verb(file, "-o", self.folder / ("none" if verb is plot else "none.html"))
            self.assertEqual((code, out, err.partition(": ")[2]), (2, "", f"{file}:2: {said}\n"))

    def test_captions_say_what_the_bands_mean(self) -> None:
        cells = fixture.speed_cells(np.random.default_rng(1))[:3]
        lines = [fixture.header(), *cells]

        def words() -> str:
            file = self.folder / "rows.jsonl"
            file.write_text("\n".join(map(json.dumps, lines)) + "\n")
            return repetitions(read_rows([file], SCHEMA).cells)

        self.assertEqual(
            words(),
            "Points are medians, bands 95 % t-intervals between 3 visits (processes), "
            "n = 9 repetitions.",
        )
        cells[0]["visits"] = [9]
        self.assertIn("between 3 visits (processes), of other cells 95 % bootstrap", words())
        for cell in cells:
            cell.pop("visits")
        self.assertIn("as if of one process", words())
        self.assertNotIn("between", words())

    def test_good_rows_keep_everything(self) -> None:
        cells = fixture.quick_cells()
        rows = read_rows([fixture.write(self.folder / "a.jsonl", cells)], SCHEMA)
        self.assertEqual(len(rows.cells), len(cells))
        self.assertEqual(len(rows.runs), 1)
        self.assertEqual(len(rows.of("accuracy")), 15)
        first = rows.of("speed")[0]
        self.assertEqual(len(first.times()), 9)
        self.assertEqual(first.metric("time_s.median"), cells[0]["metrics"]["time_s"]["median"])
        self.assertIsNone(first.metric("time_s.nothing"))

    def test_a_byte_order_mark_is_skipped(self) -> None:
        file = self.folder / "rows.jsonl"
        file.write_text(self.lines(), encoding="utf-8-sig")
        self.assertEqual(len(read_rows([file], SCHEMA).cells), 1)

    def test_a_cell_run_again_on_the_same_machine_counts_once(self) -> None:
        rows = self.two_files({"load_before": 7.5})
        self.assertEqual(len(rows.cells), 3)
        again = [c.metric("peak_bytes") for c in rows.cells if c.id == self.repeated]
        self.assertEqual(again, [5])

    def test_a_cell_of_another_program_or_machine_is_a_series_of_its_own(self) -> None:
        for difference in ({"commit": "fedcba9876543210"}, {"cpu_model": "Other"}):
            with self.subTest(difference):
                rows = self.two_files(difference)
                self.assertEqual(len(rows.cells), 4)
                labels = [s.label for s in Styles(rows).series(rows.cells)]
                self.assertEqual(labels, ["full (before)", "full (after)"])
                self.assertEqual(len({c.id for c in rows.cells}), 4)

    def test_runs_of_a_merged_file_share_its_name_unless_they_hold_one_point_twice(self) -> None:
        first, second, third = fixture.memory_cells()[:3]
        old = fixture.header("old")
        old["environment"] |= {"commit": "fedcba9876543210"}
        before = fixture.write(self.folder / "before.jsonl", [{**first, "run": "old"}], old)
        head = fixture.header("one") | {"merged": True}
        for cells, labels in (
            (({**first, "run": "one"}, {**second, "run": "two"}), {"before", "after"}),
            (({**first, "run": "one"}, {**first, "run": "two", "cell": third["cell"]}), {"before", "after 2", "after 3"}),
        ):
            after = self.folder / "after.jsonl"
            lines = [head, {**head, "run": "two"}, *cells]
            after.write_text("".join(json.dumps(line) + "\n" for line in lines))
            rows = read_rows([before, after])
            self.assertEqual({run_of(c.params) for c in rows.cells}, labels)

    def two_files(self, difference: dict) -> Rows:
        """`before` and `after` with three points, one of them in both; `difference` of `after`."""
        cells = fixture.memory_cells()
        self.repeated = cells[0]["cell"]
        changed = {**cells[0], "metrics": {**cells[0]["metrics"], "peak_bytes": 5}}
        head = fixture.header()
        head["environment"] |= difference
        files = [
            fixture.write(self.folder / "before.jsonl", cells[:2]),
            fixture.write(self.folder / "after.jsonl", [changed, cells[2]], head),
        ]
        return read_rows(files, SCHEMA)

    def test_last_row_of_a_cell_stands(self) -> None:
        first = fixture.memory_cells()[0]
        last = {**first, "metrics": {**first["metrics"], "peak_bytes": 5}}
        rows = read_rows([fixture.write(self.folder / "a.jsonl", [first, last])])
        self.assertEqual([c.metric("peak_bytes") for c in rows.cells], [5])

    def test_faults_name_line_and_reason(self) -> None:
        header = json.dumps(fixture.header())
        other = json.dumps({**fixture.header(), "run": "other"})
        good = self.lines()
        cases = (
            ("", r":1: empty"),
            ("hello\n", r":1: not JSON"),
            (good + "\n", r":3: not JSON"),
            (good[:-20], r":2: not JSON.*truncated"),
            (header + "\n[1]\n", r":2: a row is a JSON object, not list"),
            (good.splitlines()[1] + "\n", r":1: the first line is no run header"),
            (header + "\n" + other + "\n", r":2: run is 'other', not that of the first line"),
            (self.lines(run="other"), r":2: run is 'other', not that of the first line"),
            (self.lines(schema="attnbench/2"), r":2: schema is 'attnbench/2'"),
            (self.lines(kind="row"), r":2: kind is 'row'"),
            (self.lines(status="fine"), r":2: status 'fine' is unknown"),
            (self.lines(measure="taste"), r":2: measure 'taste' is unknown"),
            (self.lines(variant={"name": "full"}), r":2: 'variant' has no name and params"),
            (self.lines(axes=None), r":2: 'axes'"),
            (self.lines(metrics={"peak_bytes": "big"}), r":2: .*metrics.peak_bytes"),
            (self.lines(metrics=None), r":2: .*metrics.peak_bytes"),
            (good.replace('"duration_s": 0.5', '"duration_s": NaN'), r":2: not strict JSON: NaN"),
            (good.replace('"duration_s": 0.5', '"duration_s": 1e999'), r":2: not strict JSON"),
            (good.replace('"duration_s": 0.5', '"run": "b"'), r":2: not strict.*appears twice"),
            (self.lines(duration_s="long"), r":2: \$.duration_s: 'long' is not of type 'number'"),
        )
        for text, wanted in cases:
            with self.subTest(wanted):
                self.assertRegex(self.fault(text), wanted)
        self.assertRegex(self.fault(header.encode() + b"\n\xff\n"), r":2: not UTF-8")

    def test_missing_file(self) -> None:
        with self.assertRaisesRegex(RowsError, "none.jsonl: cannot be read: No such file"):
            read_rows([self.folder / "none.jsonl"])


class Units(unittest.TestCase):
    def test_the_largest_unit_that_the_rounded_number_fills(self) -> None:
        for text, told in (
            (seconds_text, {2.0: "2 s", 0.9996: "1 s", 0.999: "999 ms", 2e-6: "2 \u00b5s"}),
            (bytes_text, {2**30: "1 GiB", 1536: "1.5 KiB", 1023.9: "1 KiB", 12: "12 B"}),
            (thousands_text, {1.5e9: "1.5G", 999_600: "1M", 1200: "1.2k", 7: "7"}),
            (ratio_text, {0.5: "\u00d70.5", 0.12345: "\u00d70.123", 150.4: "\u00d7150", 1234.0: "\u00d71,234"}),
            (length_text, {1024: "1k", 1000: "1000", 16384.0: "16k"}),
        ):
            self.assertEqual({value: text(value) for value in told}, told)

    def test_what_fills_no_unit_has_the_smallest(self) -> None:
        self.assertEqual((seconds_text(2e-10), bytes_text(0)), ("0.2 ns", "0 B"))


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

    def test_a_caption_names_the_protocol_and_what_departs_from_it(self) -> None:
        plain = {"name": "attnbench-1", "hash": "0123456789abcdef", "departs": []}
        head = fixture.header() | {"protocol": plain}
        wider = head | {"protocol": plain | {"departs": ["length", "timeout"]}}  # a further run line of the same run
        file = self.folder / "rows.jsonl"
        for heads, told in (([head], ""), ([head, wider, head], "; attnbench-1 (0123456789abcdef), departs in length, timeout")):
            file.write_text("".join(json.dumps(line) + "\n" for line in (*heads, fixture.memory_cells()[0])))
            rows = read_rows([file], SCHEMA)
            self.assertTrue(provenance(rows).endswith(f" Protocol attnbench-1 (0123456789abcdef){told}."), provenance(rows))
        self.assertIn("departs in length, timeout", caption(rows, rows.cells))
        self.assertNotIn("rotocol", provenance(read_rows([fixture.write(file, fixture.memory_cells())])))

    def test_a_protocol_without_its_parts_is_refused(self) -> None:
        whole = {"name": "attnbench-1", "hash": "0123456789abcdef", "departs": []}
        for bad in ("attnbench-1", {**whole, "name": None}, {**whole, "departs": "length"}, {**whole, "departs": [1]}, {"name": "attnbench-1"}):
            line = json.dumps(fixture.header() | {"protocol": bad})
            for schema in (None, SCHEMA):
                with self.assertRaisesRegex(RowsError, "protocol"):
                    file = self.folder / "rows.jsonl"
                    file.write_text(line + "\n")
                    read_rows([file], schema)

    def test_what_disturbed_a_machine_is_told_in_words(self) -> None:
        cells = [*fixture.speed_cells(np.random.default_rng(1))[:3], fixture.memory_cells()[0]]  # memory is no time
        cells[0]["noisy"], cells[1]["noisy"], cells[3]["noisy"] = ["witness"], ["witness", "steal"], ["witness"]
        found = read_rows([fixture.write(self.folder / "rows.jsonl", cells)]).cells
        beside = "work that never changes took longer beside it"
        told = f"2 of the 3 times shown here were measured on a disturbed machine: the hypervisor took time (1); {beside} (2)."
        self.assertEqual(disturbed(found), told)
        self.assertEqual(disturbed([found[0], found[2]]), f"1 of the 2 times shown here was measured on a disturbed machine: {beside}.")

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
