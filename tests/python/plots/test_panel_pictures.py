"""Pictures without a caption: as wide as asked, legible at that width, in grey too, with the numbers of the rows."""

from __future__ import annotations

import csv
import re
import unittest
from dataclasses import replace
from functools import cache

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from attnbench.plots.kinds import panel_draw
from attnbench.plots.kinds.by_any import by_any
from attnbench.plots.kinds.panel_data import STYLES, HeatPanel
from attnbench.plots.kinds.panel_kinds import KINDS
from attnbench.plots.rows.read import Rows, _cell
from attnbench.plots.rows.style import BEHIND, Styles

from .. import fixture
from . import many
from .test_plots import InFolder, plot

COUNTS = (5, 60)
SMALLEST = 5.0  # points of a text
SHOWN = ("speed", "crossing", "accuracy", "tradeoff", "heat-scores", "heat-speedup")


@cache
def figures(count: int) -> dict[str, Figure]:
    """A panel of each kind in the style of papers, as wide as a column of 3.3 inches."""
    rows, out = many.rows(count), {}
    styles, style = Styles(rows), STYLES["paper"]
    with matplotlib.rc_context(style.settings):
        for panel in (p for kind in SHOWN for p in KINDS[kind](rows, styles)[:1]):
            for name, figure in panel_draw._figures(panel, styles, style):
                figure.draw_without_rendering()
                out[name] = figure
    return out


def tearDownModule() -> None:
    figures.cache_clear()


class Legible(unittest.TestCase):
    maxDiff = None

    def test_no_text_is_small_over_another_or_outside(self) -> None:
        faults = []
        for count in COUNTS:
            for name, figure in figures(count).items():
                what = f"{name} of {count}"
                self.assertAlmostEqual(figure.get_size_inches()[0], 3.3)
                found = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
                found = [t for t in found if not _unseen(figure, t)]
                faults += [f"{what}: {t.get_text()!r} has {t.get_fontsize()} points" for t in found if t.get_fontsize() < SMALLEST]
                boxes = np.array([Text.get_window_extent(t).extents for t in found])
                wide, high = figure.get_size_inches() * figure.dpi
                outside = (boxes[:, :2] < -1).any(axis=1) | (boxes[:, 2:] > (wide + 1, high + 1)).any(axis=1)
                faults += [f"{what}: {found[i].get_text()!r} outside" for i in np.flatnonzero(outside)]
                boxes = boxes + np.array([0.7, 1.2, -0.7, -1.2])
                low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
                shared = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - low
                over = np.argwhere(np.triu((shared > 0).all(axis=2), 1))
                faults += [f"{what}: {found[a].get_text()!r} over {found[b].get_text()!r}" for a, b in over]
        self.assertEqual(faults, [])

    def test_lines_differ_without_colours_and_there_are_nine_at_most(self) -> None:
        for count in COUNTS:
            for name, figure in figures(count).items():
                if name.startswith("speed"):
                    drawn = [x for x in figure.axes[0].lines if _is_curve(x)]
                    looks = {(x.get_marker(), x.get_fillstyle(), str(x._unscaled_dash_pattern)) for x in drawn}
                    self.assertTrue(1 < len(drawn) <= 9, (name, len(drawn)))
                    self.assertEqual(len(looks), len(drawn), name)

    def test_every_variant_is_named(self) -> None:
        for count in COUNTS:
            wanted = {name for name, _, _ in many.variants(count)}
            said = {t.get_text().partition(" ")[0] for n, f in figures(count).items() if n.startswith("speed") for t in f.findobj(Text)}
            self.assertEqual(wanted - said, set())

    def test_a_heat_map_reads_in_grey(self) -> None:
        """A field is the darker the more, and its number stands out against it."""
        figure = next(f for n, f in figures(5).items() if n.startswith("heat-speedup"))
        axes = figure.axes[0]
        self.assertIn("times as fast as exact attention", axes.get_xlabel())
        fields = {(round(p.get_x() + 0.5), round(p.get_y() + 0.5)): p.get_facecolor() for p in axes.patches}
        numbers = [t for t in axes.texts if re.fullmatch(r"[\d.]+\?", t.get_text())]
        told = [(float(t.get_text()[:-1]), fields[tuple(map(round, t.get_position()))], t) for t in numbers]
        told.sort(key=lambda t: t[0])
        lightness = [color[0] for _, color, _ in told]
        for (a, _, _), (b, _, _), one, other in zip(told, told[1:], lightness, lightness[1:]):
            self.assertTrue(other <= one + 1e-9 or np.isclose(a, b, rtol=0.1), (a, b))
        for _, color, text in told:
            ink = matplotlib.colors.to_rgb(text.get_color())
            self.assertGreater(abs(ink[0] - color[0]), 0.4)


    def test_rows_of_a_family_stand_below_its_name(self) -> None:
        values = [[0.5, 0.6], [0.7, 0.8], [0.9, 1.0]]
        names = ["gla", "kda", "mamba"]
        panel = HeatPanel("heat", "score", names, ["a", "b"], values, "score", [[""] * 2] * 3, ["gated", "gated", "state space"])
        axes = panel_draw._heat(panel, STYLES["web"]).axes[0]
        self.assertEqual(dict(zip(axes.get_yticks(), (t.get_text() for t in axes.get_yticklabels()), strict=True)),
                         {1: "gla", 2: "kda", 4: "mamba"})
        heads = {round(t.get_position()[1]): t.get_text() for t in axes.texts if t.get_style() == "italic"}
        self.assertEqual(heads, {0: "gated", 3: "state space"})

    def test_an_outlier_of_a_map_of_ratios_takes_no_lightness_from_the_others(self) -> None:
        values = [0.5, 2.0, 1000.0]
        panel = HeatPanel("heat", "ratio", ["one"], ["a", "b", "c"], [values], "ratio", [[""] * 3])
        figure = panel_draw._heat(panel, STYLES["paper"])
        self.addCleanup(plt.close, figure)
        lightness = [p.get_facecolor()[0] for p in figure.axes[0].patches]
        self.assertGreater(lightness[0] - lightness[1], 0.1)
        self.assertAlmostEqual(lightness[2], matplotlib.colormaps["Greys"](0.75)[0])


def _unseen(figure: Figure, text: Text) -> bool:
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if text in (tick.label1, tick.label2) and not low <= tick.get_loc() <= high:
                    return True
    return False


def _is_curve(line: Line2D) -> bool:
    return line.get_marker() not in ("None", None, "") and line.get_color() != BEHIND and len(line.get_xdata()) > 1


def speeds(*lengths: int) -> list:
    """Times of attention alone in four modes and masks, of these lengths; default: all."""
    cells = fixture.speed_cells(np.random.default_rng(7), ("attention",))
    return [c for c in cells if not lengths or c["axes"]["length"] in lengths]


def _failed_cell() -> dict:
    """Of a measure without panels."""
    axes = fixture.shape(512, "forward", "attention", False) | {"input": "random", "input_scale": 1.0}
    return fixture.cell("fidelity", "linear", {}, axes, status="failed", reason="no output")


def _tuned() -> list[dict]:
    """Trainings of one variant: a learning rate that lost on validation, and two seeds of the one that won."""
    (first,) = (c for c in fixture.accuracy_cells() if (c["task"]["name"], c["variant"]["name"]) == ("listops", "full"))
    cells = []
    for rate, seed, validation, test in ((0.01, 1, 0.5, 0.9), (0.003, 1, 0.6, 0.4), (0.003, 2, 0.6, 0.5)):
        metrics = first["metrics"] | {"validation": validation, "test": test, "stopped_by": "steps"}
        what = {"training": {"learning_rate": rate}, "tuned": ["learning_rate"], "axes": first["axes"] | {"seed": seed}}
        cells.append(first | what | {"metrics": metrics, "cell": f"{rate}{seed}"})
    return cells


class Options(InFolder):
    def drawn(self, *words: str, cells: list | None = None) -> set[str]:
        file = self.rows(speeds() if cells is None else cells)
        code, _, err = plot(file, "-o", self.folder / "out", *words)
        self.assertEqual((code, err), (0, ""))
        return {f.name for f in (self.folder / "out").iterdir()}

    def table(self, name: str) -> list[dict[str, str]]:
        with (self.folder / "out" / f"{name}.csv").open(newline="") as stream:
            return list(csv.DictReader(stream))

    def test_a_paper_s_picture_is_a_pdf_of_its_width_without_a_caption(self) -> None:
        names = self.drawn("--kind", "speed", "--style", "paper", "--width", "84mm")
        self.assertIn("speed-attention-forward.pdf", names)
        self.assertEqual({n.rpartition(".")[2] for n in names}, {"pdf", "svg", "csv"})
        data = (self.folder / "out" / "speed-attention-forward.pdf").read_bytes()
        box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ", data)
        self.assertAlmostEqual(float(box[1]), 84 / 25.4 * 72, delta=0.5)
        self.assertIn(b"/FontFile2", data)  # TrueType inside
        svg = (self.folder / "out" / "speed-attention-forward.svg").read_text()
        self.assertNotIn("Machine:", svg)

    def test_any_axis_by_any_metric(self) -> None:
        names = self.drawn("--x", "length", "--y", "tokens_per_s", "--by", "variant", "--facet", "mode", "--style", "paper")
        stems = {n.rpartition(".")[0] for n in names}
        self.assertIn("tokens_per_s-by-length-forward-not-causal", stems)
        self.assertIn("tokens_per_s-by-length-train-causal", stems)
        lines = self.table("tokens_per_s-by-length-forward-not-causal")
        rows = {c["cell"]: c for c in speeds()}
        for line in lines:
            row = rows[line["cell"]]
            self.assertAlmostEqual(float(line["tokens per second"]) / row["metrics"]["tokens_per_s"], 1, delta=1e-6)
            self.assertEqual(float(line["sequence length (tokens)"]), row["axes"]["length"])
            self.assertEqual((row["axes"]["mode"], row["axes"]["scope"], row["axes"]["causal"]), ("forward", "attention", False))
        self.assertEqual(len(lines), 7 * 5)

    def test_a_metric_of_one_measure_by_that_of_another(self) -> None:
        kept = [c for c in fixture.fidelity_cells() if c["axes"].get("input", "random") == "random" and c["axes"]["length"] == 512]
        cells = [*speeds(512, 2048), *(c for c in kept if c["axes"].get("input_scale", 1) in (1, 2))]
        names = self.drawn("--x", "time_s", "--y", "relative_error", "--facet", "input_scale", cells=cells)
        name = "relative_error-by-time_s-input_scale1.0"
        self.assertIn(f"{name}.svg", names)
        times = {c["cell"]: c for c in cells}
        self.assertEqual(len(self.table(name)), 7)
        for line in self.table(name):
            row = times[line["cell"]]
            same = [c for c in times.values() if c["measure"] == "speed" and c["status"] == "ok" and c["variant"] == row["variant"]
                    and all(c["axes"][k] == v for k, v in (("length", 512), ("mode", "forward"), ("scope", "attention"), ("causal", False)))]  # fmt: skip
            self.assertAlmostEqual(float(line["time per call"]), same[0]["metrics"]["time_s"]["median"], delta=1e-9)

    def test_cells_of_two_measures_share_no_picture(self) -> None:
        """Memory and accuracy both tell the bytes of state."""
        held = [c for c in fixture.memory_cells() if c["axes"]["length"] == 512 and c["variant"]["name"] == "linear"]
        scored = [{**c, "metrics": {**c["metrics"], "state_bytes": 99}} for c in fixture.accuracy_cells() if c["metrics"]]
        rows = Rows((), [], [_cell(c) for c in (*held, *scored)])
        panels = by_any(rows, Styles(rows), "length", "state_bytes", "variant", "mode")
        told = {p.y for panel in panels for _, points in panel.lines for p in points}
        self.assertEqual(told, {4096.0})

    def test_a_speedup_is_the_ratio_of_the_times(self) -> None:
        self.drawn("--kind", "heat-speedup")
        told = {(r["row"], r["column"]): float(r["value"]) for r in self.table("heat-speedup-attention-forward")}
        law = fixture.seconds("full", 16384) / fixture.seconds("linear", 16384)
        self.assertAlmostEqual(told["linear", "16k"] / law, 1, delta=0.1)

    def test_a_speedup_carries_the_marks_of_both_times(self) -> None:
        cells = speeds()
        for c in cells:
            c["verified"] = {"by": "reference"}
            if (c["variant"]["name"], c["axes"]["length"]) in (("full", 512), ("linear", 1024)):
                c["noisy"] = ["interrupted"]
        rows = Rows((), [], [_cell(c) for c in cells])
        panel = KINDS["heat-speedup"](rows, Styles(rows))[0]
        marks = {(r, c): m for r, line in zip(panel.rows, panel.marks, strict=True) for c, m in zip(panel.columns, line, strict=True)}
        wanted = {(r, c): "*" if c == "512" or (r, c) == ("linear", "1k") else "" for r, c in marks}
        self.assertEqual(marks, wanted)
        axes = panel_draw._heat(panel, STYLES["web"]).axes[0]
        self.assertEqual(axes.get_xlabel().splitlines()[1:], ["times as fast as exact attention; bold: faster", "* disturbed"])

    def test_rows_of_one_length_are_a_list_sorted_by_time(self) -> None:
        cells = [c for c in speeds(4096) if (c["axes"]["mode"], c["axes"]["causal"]) == ("forward", False)]
        times = {c["variant"]["name"]: c["metrics"]["time_s"]["median"] for c in cells}
        ordered = sorted(times, key=times.__getitem__)
        self.assertNotEqual(ordered, list(times))
        for words, name in (((), "speed-attention"), (("--style", "slide"), "speed-attention-forward"),
                            (("--x", "variant", "--y", "time_s"), "time_s-by-variant")):  # fmt: skip
            with self.subTest(words):
                self.drawn(*words, cells=cells)
                table = self.table(name)
                self.assertEqual([line["variant"] for line in table], ordered)
                for line in table:
                    ratio = times[line["variant"]] / times["full"]
                    self.assertAlmostEqual(float(line.get("over_full") or line["time_over_full"]) / ratio, 1, delta=1e-6)
                    self.assertLess(float(line["ci_low"]), float(line["ci_high"]))
        svg = (self.folder / "out" / "speed-attention.svg").read_text()
        self.assertIn("Time at length 4k", svg)
        self.assertNotIn("against sequence length", svg)

    def test_most_is_first_of_scores_and_a_variant_that_failed_is_last(self) -> None:
        cells = [c for c in fixture.accuracy_cells() if c["task"]["name"] == "listops"]
        cells[0] |= {"status": "timeout", "reason": "took over 600 s", "metrics": {}}
        rows = Rows((), [], [_cell(c) for c in cells])
        (panel,) = by_any(rows, Styles(rows), "variant", "test", "variant", "")
        values = [r.point.x for r in panel.ranks]
        self.assertEqual(values, sorted(values, reverse=True))
        slow = speeds(4096)
        slow[0] |= {"status": "timeout", "reason": "took over 600 s", "metrics": {}}
        rows = Rows((), [], [_cell(c) for c in slow])
        panel = KINDS["speed"](rows, Styles(rows))[0]
        self.assertEqual(panel.told(panel.ranks[-1]), "\u2715 timeout")

    def test_a_score_is_that_of_the_setting_chosen_on_validation_over_its_seeds(self) -> None:
        """As tables have it, and a training that was cut off carries its mark."""
        cells = _tuned()
        rows = Rows((), [], [_cell(c) for c in cells])
        (listed,) = by_any(rows, Styles(rows), "variant", "test", "variant", "")
        (drawn,) = by_any(rows, Styles(rows), "length", "test", "variant", "")
        (rank,) = listed.ranks
        ((line, (point,)),) = drawn.lines
        half = 12.706 * 0.05  # of two seeds
        for p, value in ((rank.point, rank.point.x), (point, point.y)):
            self.assertAlmostEqual(value, 0.45)
            self.assertAlmostEqual(p.high - value, half, places=3)
            self.assertEqual(p.cell.split(), [c["cell"] for c in cells[1:]])
        self.assertEqual((listed.told(rank), line.label), ("0.45\u2020", "full\u2020"))
        self.assertIn("\u2020 training cut off", drawn.x.label)
        (listed,) = by_any(rows, Styles(rows), "variant", "validation", "variant", "")
        self.assertAlmostEqual(listed.ranks[0].point.x, 0.6)

    def test_the_axis_of_errors_shows_those_above_1(self) -> None:
        errors = {"full": 0.5, "truncated": 3.0, "performer": 60.0}
        for few, is_log in ((2, False), (3, True)):
            kept = dict(list(errors.items())[:few])
            cells = [c for c in fixture.accuracy_cells() if c["task"]["name"] == "image" and c["variant"]["name"] in kept]
            for c in cells:
                c["metrics"] |= {"metric": "mean_squared_error", "test": kept[c["variant"]["name"]], "test_stderr": None}
            rows = Rows((), [], [_cell(c) for c in cells])
            (panel,) = by_any(rows, Styles(rows), "variant", "test", "variant", "")
            self.assertEqual(panel.told(panel.ranks[0]), "0.5")
            axes = panel_draw._ranking(panel, STYLES["web"]).axes[0]
            self.assertEqual(axes.get_xscale() == "log", is_log)
            self.assertGreater(axes.get_xlim()[1], max(kept.values()))
            (panel,) = by_any(rows, Styles(rows), "length", "test", "variant", "")
            (figure,) = (f for _, f in panel_draw._figures(panel, Styles(rows), STYLES["web"]))
            self.assertGreater(figure.axes[0].get_ylim()[1], max(kept.values()))

    def test_bars_begin_at_0_where_they_can_be_told_else_points_on_a_logarithmic_axis(self) -> None:
        for count, wanted in ((5, True), (60, False)):
            rows = many.rows(count)
            one = replace(rows, cells=[c for c in rows.of("speed") if c.length == 4096])
            panel = KINDS["speed"](one, Styles(one))[0]
            self.assertEqual(panel.has_bars, wanted)
            axes = panel_draw._ranking(panel, STYLES["slide"]).axes[0]
            self.assertEqual((axes.get_xscale(), bool(axes.patches)), ("linear", True) if wanted else ("log", False))
            self.assertEqual(axes.get_xlim()[0] == 0, wanted)

    def test_nothing_drawn_is_exit_code_4_and_one_line(self) -> None:
        file = self.rows([c for c in fixture.accuracy_cells() if c["status"] == "skipped"] + fixture.accuracy_cells()[:1])
        both = fixture.write(self.folder / "both.jsonl", [*speeds(4096), *fixture.accuracy_cells()])
        reach = fixture.write(self.folder / "reach.jsonl", [_failed_cell()])
        trainings = [c for c in fixture.accuracy_cells() if c["status"] == "ok"]
        none = {"status": "failed", "reason": "no output", "metrics": None, "samples": None}
        failed = fixture.write(self.folder / "failed.jsonl", [c | none for c in trainings])
        for rows, words, wanted in (
            (file, ("--kind", "speed"), "--kind speed: the rows hold nothing that it shows"),
            (file, ("--kind", "speed", "--style", "slide"), "--kind speed: the rows hold nothing that it shows"),
            (both, ("--x", "steps", "--y", "time_s"), "--x steps --y time_s: no cell has both numbers"),
            (reach, ("--style", "slide"), "no picture shows these rows"),
            (failed, ("--style", "paper"), "no picture shows these rows (no cell is ok)"),
            (failed, ("--kind", "heat-scores"), "--kind heat-scores: the rows hold nothing that it shows"),
            (failed, ("--x", "variant", "--y", "time_s"), "--y time_s: no cell has it"),
            (failed, ("--x", "variant", "--y", "test"), "--y test: no cell has it"),
        ):
            code, out, err = plot(rows, "-o", self.folder / "none", *words)
            self.assertEqual((code, out, err.count("\n")), (4, "", 1), (words, err))
            self.assertIn(wanted, err)
            self.assertFalse((self.folder / "none").exists())

    def test_one_kind_of_page(self) -> None:
        names = self.drawn("--kind", "crossing")
        self.assertEqual(names, {f"crossing-attention.{e}" for e in ("png", "svg", "csv")})

    def test_wrong_options_are_one_line(self) -> None:
        file = self.rows(fixture.accuracy_cells())
        for words, wanted in (
            (("--kind", "speeds"), "--kind speeds: expected one of overview, speed"),
            (("--style", "poster"), "--style poster: expected one of paper, slide, web"),
            (("--style", "paper", "--width", "3.3"), "--width 3.3: expected a size from 2in to 40in"),
            (("--style", "paper", "--width", "1in"), "--width 1in: expected a size from 2in to 40in"),
            (("--style", "paper", "--font", "DejaVu Sanz"), "--font DejaVu Sanz: this machine has no such font; nearest is 'DejaVu Sans"),
            (("--width", "3in"), "--width goes with --style"),
            (("--x", "length"), "--x needs --y too"),
            (("--by", "mode"), "--by goes with --x and --y"),
            (("--x", "length", "--y", "tests"), "--y tests: no row has it; nearest is 'test'"),
            (("--x", "length", "--y", "test", "--kind", "speed"), "--kind and --x exclude each other"),
        ):
            code, out, err = plot(file, "-o", self.folder / "none", *words)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), (words, err))
            self.assertIn(wanted, err)
            self.assertFalse((self.folder / "none").exists())
