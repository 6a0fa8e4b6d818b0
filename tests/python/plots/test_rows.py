"""The reader of rows: takes what the contract allows and names file, line and fault of the rest."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

import numpy as np

from attnbench.plots.layout.caption import repetitions
from attnbench.plots.rows.read import Rows, RowsError, read_rows, run_of
from attnbench.plots.rows.style import Styles

from .. import fixture

SCHEMA = Path(__file__).resolve().parents[3] / "results" / "schema.json"


class ReadRows(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

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


if __name__ == "__main__":
    unittest.main()
