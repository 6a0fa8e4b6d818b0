"""The pictures: all are written, styles hold still, and bad input leaves nothing behind."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import tempfile
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from attnbench.plots.__main__ import main
from attnbench.plots.gallery import KINDS, STEMS, draw_named
from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.style import COLORS, DASHES, MARKERS, Styles

from .. import decode_rows, faults, fixture

NAMES = (
    *("overview", "memory-attention", "accuracy", "accuracy-learning", "accuracy-effort", "tradeoff", "fidelity"),
    *("speed-attention", "speed-relative-attention", "crossing-attention"),
    *("speed-layer", "speed-relative-layer", "crossing-layer"),
)


def plot(*arguments: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr; in this process, where matplotlib is loaded."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(["plot", *map(str, arguments)])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def sketch(*arguments: object) -> tuple[int, str, str]:
    """As `plot`, with PNG of few dots and without SVG, which takes half the time: for tests that look at tables and at what is told.
    Whole pictures with scripts/test --all."""
    whole = Figure.savefig

    def small(figure: Figure, file: object, **how: object) -> None:
        if how.get("format") != "svg":
            whole(figure, file, **{**how, "dpi": 30})

    with mock.patch.object(Figure, "savefig", whole if os.environ.get("ATTN_GOLDEN_ALL") else small):
        return plot(*arguments)


class InFolder(faults.InFolder):
    def rows(self, cells: list, name: str = "rows.jsonl") -> Path:
        return fixture.write(self.folder / name, cells)


class Gallery(InFolder):
    @classmethod
    def setUpClass(cls) -> None:
        """The quick rows are drawn once, beside their file."""
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        rows = fixture.write(Path(temporary.name) / "rows.jsonl", fixture.quick_cells())
        cls.rows_file, cls.done = rows, plot(rows)
        cls.quick = Path(temporary.name) / "rows-plots"

    def test_everything_is_drawn_with_its_data(self) -> None:
        done, out = self.done, self.quick
        self.assertEqual((done[0], done[2]), (0, ""))
        wanted = {f"{n}.{e}" for n in NAMES for e in ("png", "svg", "csv")}
        self.assertEqual({f.name for f in out.iterdir()}, wanted)
        self.assertEqual({Path(p).name for p in done[1].splitlines()}, wanted)
        for file in out.glob("*.png"):
            self.assertGreater(file.stat().st_size, 20_000, file)
        self.check_data(out)

    def check_data(self, out: Path) -> None:
        speed = self.table(out / "speed-attention.csv")
        status = {(r["panel"], r["variant"], r["length"]): r["status"] for r in speed}
        train = "forward and backward, not causal"
        self.assertEqual(status[train, "full", "16384"], "timeout")
        self.assertEqual(status["forward, causal", "linformer", "256"], "skipped")
        drawn = next(r for r in speed if r["variant"] == "full")
        measured = fixture.quick_cells()[0]["metrics"]["time_s"]["median"]
        self.assertAlmostEqual(float(drawn["median"]), measured, delta=1e-8 * measured)
        kernels = {r["series"] for r in self.table(out / "memory-attention.csv")}
        self.assertTrue({"full tiled", "full materialized"} <= kernels)
        scores = self.table(out / "accuracy.csv")
        self.assertEqual(len(scores), 15)
        self.assertEqual(
            {r["best_shortcut"] for r in scores if r["task"] == "listops"}, {"root_operator"}
        )
        listed = self.table(out / "crossing-attention.csv")
        crossing = next(r for r in listed if r["variant"] == "performer")
        self.assertAlmostEqual(float(crossing["crossing"]), 1.9e-5 / 1.1e-8, delta=90)
        self.assertEqual(crossing["faster_than_full_from"], "2048")
        relative = self.table(out / "speed-relative-attention.csv")
        ratio = next(r for r in relative if r["variant"] == "performer" and r["length"] == "16384")
        law = fixture.seconds("performer", 16384) / fixture.seconds("full", 16384)
        self.assertAlmostEqual(float(ratio["time_over_exact"]) / law, 1, delta=0.1)
        self.assertLess(float(ratio["ci_low"]), float(ratio["time_over_exact"]))
        self.assertLess(float(ratio["time_over_exact"]), float(ratio["ci_high"]))

    def test_each_line_names_the_cells_behind_it(self) -> None:
        known = {row["cell"] for row in fixture.quick_cells()}
        for file in self.quick.glob("*.csv"):
            for line in self.table(file):
                told = [ids for name, ids in line.items() if name.endswith("cell") and ids]
                self.assertTrue(told, (file.name, line))
                self.assertLessEqual({one for ids in told for one in ids.split()}, known, file.name)

    def test_pictures_say_what_they_show(self) -> None:
        out = self.quick
        told = Image.open(out / "overview.png").text
        self.assertIn("Attention variants", told["Title"])
        for words in ("Time and memory: attention alone, forward, not causal.", "full kernel tiled: time at", "score on image 0.71"):
            self.assertIn(words, told["Description"])
        self.assertIn("Time by length: forward, not causal (", told["Description"])
        svg = ElementTree.parse(out / "speed-attention.svg").getroot()
        name = "{http://www.w3.org/2000/svg}"
        self.assertTrue(svg.findtext(f"{name}title").startswith("Time against sequence length"))
        words = svg.findtext(f"{name}desc")
        self.assertIn("Skipped: linformer, causal (cannot be causal; 14 cells).", words)
        self.assertIn("in the CSV only: linformer rank=256; performer features=256.", words)

    @staticmethod
    def table(file: Path) -> list[dict[str, str]]:
        with file.open(newline="") as stream:
            return list(csv.DictReader(stream))

    def test_pictures_are_drawn_by_the_beginning_of_their_names(self) -> None:
        rows = read_rows([self.rows_file])
        every = [f.stem for f in self.quick.glob("*.csv")]
        for start in ("speed-rel", "accuracy-l", "accuracy-effort"):
            drawn = [p.name for p in draw_named(rows, start)]
            self.assertEqual(sorted(drawn), sorted(n for n in every if n.startswith(start)), start)
        self.assertEqual({n for n in every if not any(n.startswith(STEMS.get(k, k)) for k in KINDS)}, set())

    def test_one_measure_alone(self) -> None:
        for name, cells, stem in (
            ("s", fixture.speed_cells(np.random.default_rng(7), ("layer",)), "speed-layer"),
            ("m", fixture.memory_cells(), "memory-attention"),
            ("a", fixture.accuracy_cells(), "accuracy"),
            ("f", [c for c in fixture.fidelity_cells() if c["measure"] == "fidelity"], "fidelity"),
        ):
            with self.subTest(name):
                done = sketch(self.rows(cells, f"{name}.jsonl"), "-o", self.folder / name)
                self.assertEqual((done[0], done[2]), (0, ""))
                self.assertTrue((self.folder / name / f"{stem}.svg").exists())

    def test_decoding_has_a_panel_of_its_own(self) -> None:
        rows = self.rows(fixture.quick_cells() + decode_rows.decode_cells())
        done = sketch(rows, "-o", self.folder / "out")
        self.assertEqual((done[0], done[2]), (0, ""))
        panels: dict[str, set[str]] = {}
        for page in ("speed-attention", "speed-attention-decode"):
            for row in self.table(self.folder / "out" / f"{page}.csv"):
                panels.setdefault(f"{page} {row['panel']}", set()).add(row["median"])
        decoding = {
            f"{c['metrics']['time_s']['median']:.9g}"
            for c in decode_rows.decode_cells()
            if c["status"] == "ok"
        }
        name = "speed-attention-decode decoding one token, causal"
        told = {f"{float(v):.9g}" for v in panels.pop(name) if v}
        self.assertEqual(told, decoding)
        for name, values in panels.items():
            self.assertFalse(decoding & {f"{float(v):.9g}" for v in values if v}, name)
        trade = self.table(self.folder / "out" / "tradeoff.csv")
        self.assertEqual(trade, self.table(self.quick / "tradeoff.csv"))

    def test_decoding_alone(self) -> None:
        out = self.folder / "out"
        done = sketch(self.rows(decode_rows.decode_cells() + decode_rows.decode_memory_cells()), "-o", out)
        self.assertEqual((done[0], done[2]), (0, ""))
        titles = {"speed": "Time of one token", "memory": "Peak memory of one token"}
        for measure, title in titles.items():
            told = Image.open(out / f"{measure}-attention-decode.png").text
            self.assertTrue(told["Title"].startswith(f"{title} against sequence length"), told)
            self.assertNotIn("per call", told["Description"])
            self.assertNotIn("one call", told["Description"])
        told = Image.open(out / "overview.png").text["Description"]
        for words in ("Time and memory: attention alone, decoding one token", "Time of one token by length", "time per token"):
            self.assertIn(words, told)
        self.assertNotIn("per call", told)

    def test_one_length_and_only_failures(self) -> None:
        cells = [c for c in fixture.quick_cells() if c["axes"]["length"] in (256, 512)]
        single = [c for c in cells if c["axes"]["length"] == 256]
        broken = [
            c | {"status": "failed", "reason": "planted", "metrics": None, "samples": None}
            for c in cells
        ]
        for name, chosen in (("single", single), ("broken", broken)):
            with self.subTest(name):
                done = sketch(self.rows(chosen), "-o", self.folder / name)
                self.assertEqual((done[0], done[2]), (0, ""))

    def test_same_rows_same_files(self) -> None:
        for kind, files in (("accuracy", 3), ("tradeoff", 3)):
            self.assertEqual(plot(self.rows_file, "--kind", kind, "-o", self.folder / kind)[0], 0)
            drawn = list((self.folder / kind).iterdir())
            self.assertEqual(len(drawn), files)
            for file in drawn:
                self.assertEqual(file.read_bytes(), (self.quick / file.name).read_bytes(), file)


class Refusals(InFolder):
    def refused(self, wanted_code: int, wanted: str, *arguments: object) -> None:
        before = sorted(self.folder.rglob("*"))
        code, out, err = plot(*arguments)
        self.assertEqual((code, out), (wanted_code, ""), err)
        self.assertRegex(err, wanted)
        self.assertEqual(err.count("\n"), 1)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_corrupt_rows(self) -> None:
        file = self.rows(fixture.memory_cells())
        file.write_bytes(file.read_bytes()[:-30])
        self.refused(2, r"^plot: .*rows.jsonl:85: not JSON", file)

    def test_no_such_file_or_option(self) -> None:
        self.refused(6, "none.jsonl: cannot be read", self.folder / "none.jsonl")
        self.refused(2, "unrecognized arguments: --colour", self.rows([]), "--colour")

    def test_nothing_to_draw(self) -> None:
        skipped = [c for c in fixture.accuracy_cells() if c["status"] == "skipped"]
        self.refused(4, "nothing to draw", self.rows(skipped))
        self.refused(4, "nothing to draw", self.rows([]))

    def test_no_rows_at_all(self) -> None:
        with contextlib.chdir(self.folder):
            self.refused(2, "^plot: name a rows file: there is none in .*/results; ")

    def test_second_run_line(self) -> None:
        file = self.rows([{**fixture.header(), "run": "another"}])
        self.refused(2, "^plot: .*rows.jsonl:2: run is 'another'", file)

    def test_output_folder_that_cannot_be(self) -> None:
        rows = self.rows(fixture.memory_cells())
        self.refused(6, "cannot be written: Not a directory", rows, "-o", rows / "plots")


class Stability(InFolder):
    def test_a_variant_looks_the_same_in_any_selection(self) -> None:
        whole = Styles(read_rows([self.rows(fixture.quick_cells())]))
        few = [c for c in fixture.quick_cells() if c["variant"]["name"] in ("linear", "performer")]
        part = Styles(read_rows([self.rows(few)]))
        for name in ("linear", "performer"):
            self.assertEqual(whole.look(name), part.look(name))
        self.assertEqual(whole.look("full").color, "#000000")

    def test_parameterisations_share_colour_and_differ_in_fill(self) -> None:
        rows = read_rows([self.rows(fixture.memory_cells())])
        tiled, other = Styles(rows).series(rows.of("memory"))[:2]
        self.assertEqual((tiled.label, other.label), ("full tiled", "full materialized"))
        self.assertEqual(tiled.look.color, other.look.color)
        self.assertNotEqual(tiled.look.fill, other.look.fill)

    def test_looks_are_distinct_and_the_first_differ_in_grey(self) -> None:
        for looks in (COLORS, MARKERS, DASHES):
            self.assertEqual(len(set(looks)), len(looks))
        greys = sorted(
            sum(w * v for w, v in zip((0.299, 0.587, 0.114), to_rgb(c), strict=True))
            for c in COLORS[:5]
        )
        self.assertGreater(min(b - a for a, b in zip(greys, greys[1:], strict=False)), 0.07)
