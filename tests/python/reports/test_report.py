"""The report: numbers as in the pictures, sentences, sections by their rows, hostile names."""

from __future__ import annotations

import contextlib
import csv
import html
import io
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from attnbench._place import ROOT
from attnbench.plots.gallery import draw_all
from attnbench.plots.rows import crossing
from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.style import Styles
from attnbench.reports.__main__ import main
from attnbench.reports.book import Book
from attnbench.reports.document import document
from attnbench.reports.inline import in_script
from attnbench.reports.scores import Tasks
from attnbench.reports.summary import summary

from .. import fixture
from ..plots.test_plots import InFolder
from . import report_rows

LENGTHS = (64, 128, 256, 512, 1024)
KINDS = ("speed", "relative", "crossing", "memory", "accuracy", "tradeoff")


def report(*arguments: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(["report", *map(str, arguments)])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


class Page(HTMLParser):
    """The scripts, the tags and the sentences of a page, as a browser's parser finds them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


def times(length: int, seconds: float, name: str, params: dict[str, Any]) -> dict[str, Any]:
    """A time with samples that scatter by 1 %."""
    samples = seconds * (1 + 0.01 * np.random.default_rng(length).standard_normal(9))
    return fixture.timed(name, params, fixture.shape(length, "forward", "attention", False), samples, length)


def crossing_cells(power: float, factor: float) -> list[dict[str, Any]]:
    """Exact attention takes n^2, `linear` factor * n^power, in units of 10 ns."""
    exact = [times(n, 1e-8 * n**2, "full", {"kernel": "tiled"}) for n in LENGTHS]
    return exact + [times(n, 1e-8 * factor * n**power, "linear", {}) for n in LENGTHS]


class InReport(InFolder):
    @classmethod
    def setUpClass(cls) -> None:
        """Without the program, whose sections test_report_sections.py tests."""
        super().setUpClass()
        absent = mock.patch.object(crossing, "program", lambda: Path("/nowhere/attnbench"))
        absent.start()
        cls.addClassCleanup(absent.stop)

    def page(self, cells: list[dict[str, Any]], name: str = "rows.jsonl") -> Page:
        out = self.folder / "report.html"
        code, _, err = report(self.rows(cells, name), "-o", out)
        self.assertEqual((code, err), (0, ""))
        return Page(out.read_text(encoding="utf-8"))

    def sentences(self, cells: list[dict[str, Any]], head: dict[str, Any] | None = None) -> list[str]:
        book_rows = read_rows([fixture.write(self.folder / "planted.jsonl", cells, head)])
        book = Book(book_rows, Styles(book_rows))
        return summary(book, Tasks(book))


class Sentences(InReport):
    def test_a_planted_crossing_is_told_with_its_interval(self) -> None:
        told = self.sentences(crossing_cells(1, 300))[0]
        found = re.search(r"^`linear` is faster than exact attention from (\d+) tokens on "
                          r"\(95 % interval (\d+)\u2013(\d+)\)", told)
        self.assertIsNotNone(found, told)
        at, low, high = map(int, found.groups())
        self.assertAlmostEqual(at, 300, delta=10)
        self.assertTrue(low < at < high and low > 256 and high < 350, told)
        self.assertIn("beyond the noise from the measured length 512 on", told)

    def test_no_crossing_is_not_called_one(self) -> None:
        always = self.sentences(crossing_cells(1, 3))[0]
        self.assertRegex(always, "^`linear` is faster than exact attention at every measured length")
        by_median = self.sentences([
            *(times(n, 1e-8 * n**2, "full", {"kernel": "tiled"}) for n in LENGTHS),
            *(times(n, 1e-8 * n**2 * (0.999 if n == 64 else 0.5), "linear", {}) for n in LENGTHS),
        ])[0]
        self.assertRegex(by_median, "at every measured length by its median .*beyond the noise from the measured length 128 on")
        never = self.sentences(crossing_cells(1, 30_000))[0]
        self.assertRegex(never, "^`linear` is not faster than exact attention at the longest")
        same = self.sentences(crossing_cells(2, 1.0))[0]
        self.assertNotRegex(same, r"from \d+ tokens on \(95 % interval \d+\u2013\d+\)")

    def test_of_many_variants_the_first_to_overtake_are_told(self) -> None:
        cells = [times(n, 1e-8 * n**2, "full", {"kernel": "tiled"}) for n in LENGTHS]
        features = range(10, 150, 10)  # more of them cross earlier
        cells += [times(n, 1e-8 * (250 - f) * n, "performer", {"features": f}) for f in features for n in LENGTHS]
        told = self.sentences(cells)
        self.assertIn("2 more variants stand in the table 'Where variants overtake exact attention'; those above are the first.", told)
        named = [int(m[1]) for s in told if (m := re.match(r"`performer features=(\d+)` is faster", s))]
        self.assertEqual(named, [*features][:1:-1])

    def test_a_noise_floor_above_the_difference_is_told(self) -> None:
        floors = [
            {"mode": "forward", "threads": 2, "length": n, "share": 9.0, "measured_at": "2026-01-01T00:00:00Z"}
            for n in LENGTHS
        ]
        head = {**fixture.header(), "noise_floor": floors}
        told = self.sentences(crossing_cells(1, 300), head)[0]
        self.assertRegex(told, r"falls below .* but by less than its uncertainty at 1k tokens")

    def test_a_score_at_the_shortcut_is_called_so(self) -> None:
        cells = fixture.accuracy_cells()
        for row in cells:
            if row["task"]["name"] == "image" and row["metrics"]:
                row["metrics"]["shortcuts"] = {"linear_pixels": 0.63}
        image = next(s for s in self.sentences(cells) if s.startswith("On `image`"))
        self.assertIn("which `performer`, `linear`, `linformer` do not exceed", image)

    def test_what_is_missing_is_counted(self) -> None:
        cells = [*fixture.accuracy_cells(), *crossing_cells(1, 300)]
        cells[-1]["noisy"] = ["witness"]
        told = self.sentences(cells)
        self.assertIn("Of 25 measurements these have no number: 1 diverged, 1 skipped.", told)
        self.assertIn("1 of all 10 times in these rows was measured on a disturbed machine; the load before was 0.1 on 2 cores.", told)

    def test_times_are_told_with_how_busy_the_machine_was(self) -> None:
        head = fixture.header()
        for load, cores, said in ((0.53, 2, "machine; the load before was 0.5 on 2 cores."), (None, 2, "machine."), (1.0, None, "machine.")):
            place = {**head["environment"], "load_before": load, "cores": cores}
            told = self.sentences(crossing_cells(1, 300), {**head, "environment": {k: v for k, v in place.items() if v is not None}})
            self.assertTrue(told[-1].endswith(f"measured on a disturbed {said}"), told[-1])

    def test_least_and_most_memory(self) -> None:
        told = next(s for s in self.sentences(fixture.memory_cells()) if "memory" in s)
        self.assertRegex(told, "^At 8k tokens `truncated` needs the least memory, 32 MiB, and `full materialized` the most")


class Numbers(InReport):
    """What the page shows is what the pictures' tables hold."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        import tempfile

        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        folder = Path(temporary.name)
        rows = read_rows([fixture.write(folder / "rows.jsonl", fixture.quick_cells())])
        cls.tables = {p.name: p.data.to_csv(float_format="%.9g") for k in KINDS for p in draw_all(rows, k)}
        cls.data = Page(document(rows)).data
        cls.sections = {s["id"]: s for s in cls.data["sections"]}

    def csv(self, name: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.tables[name.removesuffix(".csv")])))

    def lines(self, section: str, wanted: str) -> dict[tuple[str, int], tuple[list, list]]:
        """Points and ratios by series and length, of the panels of attention alone."""
        out = {}
        for panel in self.sections[section]["panels"]:
            if panel["title"].endswith(wanted) and panel["facets"]["scope"] == "attention alone":
                for line in panel["lines"]:
                    label = self.data["series"][line["series"]]["label"]
                    for point, ratio in zip(line["points"], line["relative"], strict=True):
                        out[label, point[0]] = point, ratio
        return out

    def compared(self, section: str, file: str, columns: tuple[str, ...], of_ratio: bool) -> int:
        compared = 0
        for panel in ("forward, not causal", "forward and backward, not causal", "forward, causal"):
            shown = self.lines(section, f": {panel}")
            for row in self.csv(file):
                if row["panel"] == panel and row[columns[0]] and (row["series"], int(row["length"])) in shown:
                    point, ratio = shown[row["series"], int(row["length"])]
                    for value, column in zip(ratio if of_ratio else point[1:4], columns, strict=False):
                        self.assertTrue(math.isclose(value, float(row[column]), rel_tol=1e-4), (row, column))
                    compared += 1
        return compared

    def test_times_and_their_intervals(self) -> None:
        names = ("median", "ci_low", "ci_high")
        self.assertGreater(self.compared("speed", "speed-attention.csv", names, False), 75)

    def test_ratios_and_their_intervals(self) -> None:
        names = ("time_over_exact", "ci_low", "ci_high")
        self.assertGreater(self.compared("speed", "speed-relative-attention.csv", names, True), 60)

    def test_peaks(self) -> None:
        self.assertGreater(self.compared("memory", "memory-attention.csv", ("peak_bytes",), False), 50)

    def table(self, section: str, name: str) -> list[list[Any]]:
        return next(t["rows"] for t in self.sections[section]["tables"] if t["id"] == name)

    def test_only_what_was_measured_lies_in_the_axes_of_times(self) -> None:
        for panel in self.sections["speed"]["panels"]:
            self.assertNotIn("crossings", panel)

    def test_crossings(self) -> None:
        shown = [
            (r[0].partition(";")[0], self.data["series"][r[1]]["variant"], r[2], r[3])
            for r in self.table("speed", "overtakes")
        ]
        for row in self.csv("crossing-attention.csv"):
            self.assertIn((row["panel"], row["variant"], row["faster_than_full_from"] or "\u2013", row["text"]), shown)

    def test_scores_and_shortcuts(self) -> None:
        shown = {
            (r[0].split(",")[0], self.data["series"][r[1]]["variant"]): r
            for r in self.table("accuracy", "scores")
        }
        for row in self.csv("accuracy.csv"):
            found = shown[row["task"], row["variant"]]
            self.assertEqual(found[2], row["status"])
            self.assertEqual(found[6], row["best_shortcut"].replace("_", " "))
            for value, column in ((3, "test"), (4, "half_interval"), (7, "best_shortcut_score"), (8, "chance")):
                known = float(row[column]) if row[column] else None
                self.assertEqual(found[value] is None, known is None, row)
                if known is not None:
                    self.assertAlmostEqual(found[value], known, delta=1e-4 * abs(known))

    def test_the_chance_to_be_on_the_front(self) -> None:
        shown = {(r[0], self.data["series"][r[1]]["variant"]): r for r in self.table("tradeoff", "trades")}
        for row in self.csv("tradeoff.csv"):
            found = shown[row["panel"], row["variant"]]
            if row["on_front"]:
                self.assertAlmostEqual(found[6], float(row["on_front"]), delta=1e-4)

    def test_samples_are_those_of_the_row(self) -> None:
        cells = self.data["cells"]
        samples = {c["cell"]: c["samples"] for c in fixture.quick_cells() if c["measure"] == "speed" and c["samples"]}
        for index, cell in enumerate(cells["id"]):
            if cell in samples:
                unit = self.data["sample_unit"] * cells["value"][index]
                for own, shown in zip(samples[cell], cells["samples"][index], strict=True):
                    self.assertTrue(math.isclose(own, shown * unit, rel_tol=2e-4))


class Sections(InReport):
    def of(self, cells: list[dict[str, Any]]) -> list[str]:
        return [s["id"] for s in self.page(cells).data["sections"]]

    def test_a_section_appears_only_with_its_rows(self) -> None:
        self.assertEqual(self.of(fixture.fidelity_cells()[:10]), ["fidelity", "sources"])
        ok = [c for c in fixture.memory_cells() if c["status"] == "ok"]
        self.assertEqual(self.of(ok), ["memory", "sources"])
        self.assertEqual(self.of(fixture.accuracy_cells()), ["accuracy", "learning", "effort", "missing", "sources"])
        cells = crossing_cells(1, 300)
        self.assertEqual(self.of(cells), ["speed", "sources"])
        cells[0]["noisy"] = ["steal"]
        self.assertEqual(self.of(cells), ["speed", "noisy", "sources"])
        every = ["speed", "memory", "share", "fidelity", "accuracy", "learning", "effort", "tradeoff", "equal-cost", "missing",
                 "sources"]  # fmt: skip
        self.assertEqual(self.of(fixture.quick_cells()), every)

    def test_each_row_has_its_command_s_words(self) -> None:
        data = self.page(fixture.quick_cells()).data
        self.assertEqual(data["cells"]["id"], [c["cell"] for c in fixture.quick_cells()])
        self.assertEqual({data["files"][r] for r in data["cells"]["run"]}, {"rows.jsonl"})

    def test_cells_of_two_files_keep_their_file_and_their_id(self) -> None:
        cells = crossing_cells(1, 300)
        one = self.rows(cells, "one.jsonl")
        other = {**fixture.header("20260102T000000Z")}
        other["environment"] = {**other["environment"], "cpu_model": "Another CPU"}
        other["protocol"] = {"name": "attnbench-1", "hash": "0123456789abcdef", "departs": ["length"]}
        two = fixture.write(self.folder / "two.jsonl", [{**c, "run": other["run"]} for c in cells], other)
        code, _, err = report(one, two, "-o", self.folder / "both.html")
        self.assertEqual((code, err), (0, ""))
        data = Page((self.folder / "both.html").read_text(encoding="utf-8")).data
        self.assertEqual({i for i in data["cells"]["id"]}, {c["cell"] for c in cells})
        told = {data["files"][r] for r in data["cells"]["run"]}
        self.assertEqual(told, {"one.jsonl", "two.jsonl"})
        sources = next(s for s in data["sections"] if s["id"] == "sources")
        self.assertIn("Do not compare times across two machines", sources["lead"])
        self.assertIn("Protocol attnbench-1 (0123456789abcdef), departs in length.", sources["lead"])
        self.assertIn(", protocol attnbench-1 (0123456789abcdef), departs in length", str(sources).partition("Runs")[2])

    def test_same_rows_same_file(self) -> None:
        rows = read_rows([self.rows(fixture.accuracy_cells())])
        self.assertEqual(document(rows), document(rows))


class Hostile(InReport):
    def test_no_text_of_the_rows_is_markup(self) -> None:
        plain = Page(document(read_rows([self.rows(fixture.quick_cells())])))
        file = report_rows.hostile(self.folder / "h.jsonl", names=True)
        text = document(read_rows([file]))
        page = Page(text)
        self.assertEqual(len(page.scripts), 3)
        self.assertEqual([t for t, _ in page.tags if t in ("img", "iframe")], [])
        handlers = [n for _, attributes in page.tags for n in attributes if n.startswith("on")]
        self.assertEqual(handlers, [])
        self.assertEqual({t for t, _ in page.tags}, {t for t, _ in plain.tags})
        self.assertEqual(page.scripts[1:], plain.scripts[1:])
        self.assertIn(html.escape(report_rows.HOSTILE), text)  # in the summary, as text
        labels = [s["label"] for s in page.data["series"]]
        self.assertTrue(any(report_rows.HOSTILE in label for label in labels), labels)

    def test_json_in_a_script_holds_no_sign_of_html(self) -> None:
        data = {"</script>": ["<!--", "]]>", "&lt;", "\u2028\u2029", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")]}
        self.assertEqual(json.loads(in_script(data)), data)
        self.assertNotRegex(in_script(data), "[<>&\u2028\u2029]")

    def test_the_page_may_load_nothing(self) -> None:
        page = self.page(fixture.accuracy_cells())
        policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
        self.assertIn("default-src 'none'", policy)
        script = re.search("script-src ([^;]*);", policy)[1]
        self.assertNotRegex(script, "unsafe|http|[*]|self")
        for _, attributes in page.tags:
            for name in ("src", "href"):
                self.assertRegex(attributes.get(name) or "#", "^(#|data:)")


class Refusals(InReport):
    def refused(self, wanted_code: int, wanted: str, *arguments: object) -> None:
        before = sorted(self.folder.rglob("*"))
        code, out, err = report(*arguments)
        self.assertEqual((code, out), (wanted_code, ""), err)
        self.assertRegex(err, wanted)
        self.assertEqual(err.count("\n"), 1)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_rows_that_cannot_be_reported(self) -> None:
        file = self.rows(fixture.memory_cells())
        file.write_bytes(file.read_bytes()[:-30])
        self.refused(2, r"^report: .*rows.jsonl:85: not JSON", file)
        file.write_bytes(b"")
        self.refused(2, r"^report: .*rows.jsonl:1: empty", file)
        self.refused(6, "^report: .*none.jsonl: cannot be read", self.folder / "none.jsonl")
        skipped = [c for c in fixture.accuracy_cells() if c["status"] == "skipped"]
        self.refused(4, "^report: .*nothing to report", self.rows(skipped))

    def test_an_output_that_cannot_be(self) -> None:
        rows = self.rows(fixture.accuracy_cells())
        self.refused(2, "^report: 'report.pdf' is no name of a report; give one that ends in .html", rows, "-o", "report.pdf")
        self.refused(6, "^report: .*: cannot be written: Not a directory", rows, "-o", rows / "report.html")

    def test_the_wrapper_s_verb(self) -> None:
        """The module that scripts/bench starts writes beside the rows where no name is given."""
        rows = self.rows(fixture.accuracy_cells())
        command = [sys.executable, "-m", "attnbench.reports", "report", rows]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "python")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"{self.folder / 'rows-report.html'}\n")
        self.assertTrue((self.folder / "rows-report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>"))
