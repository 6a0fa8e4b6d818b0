"""What is drawn where: the summary's choice of task, labels and guides in clear space, axes; and golden
pictures: a changed picture is noticed, a softer edge is not."""

from __future__ import annotations

import itertools
import tempfile
import unittest
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageChops, ImageFilter

from attnbench.plots.gallery import draw_all
from attnbench.plots.kinds.accuracy import accuracy
from attnbench.plots.kinds.crossing import crossings
from attnbench.plots.kinds.curves import slope_guides
from attnbench.plots.kinds.fidelity import fidelity
from attnbench.plots.kinds.tradeoff import draw_trade, tradeoff
from attnbench.plots.kinds.trades import telling_trade, trade_panels
from attnbench.plots.layout.axes import byte_ticks, spread
from attnbench.plots.layout.caption import two_lines
from attnbench.plots.layout.labels import Label, place_labels
from attnbench.plots.layout.page import _inches, noted
from attnbench.plots.rows.read import Rows, _cell, read_rows
from attnbench.plots.rows.scores import controls, task_groups
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import bytes_text

from .. import fixture
from . import golden


class Golden(unittest.TestCase):
    def setUp(self) -> None:
        self.speed = Image.open(golden.FOLDER / "speed-light.png").convert("L")

    def test_each_look_has_its_pictures(self) -> None:
        names = {f"{part}-{look}" for part in golden.MOST for look in ("light", "dark", "phone")}
        self.assertEqual({f.stem for f in golden.FOLDER.glob("*.png")}, names)
        for file in golden.FOLDER.glob("*.png"):
            self.assertLess(file.stat().st_size, 30_000, file.name)
            self.assertEqual(Image.open(file).width, golden.WIDTH, file.name)

    def test_they_are_of_one_version_of_chromium(self) -> None:
        version = golden.BROWSER.read_text(encoding="utf-8").strip()
        self.assertTrue(golden.drawn_by(f"{version}.0.1.2"))
        self.assertFalse(golden.drawn_by(f"{version}1.0.1.2"))

    def test_a_missing_line_differs(self) -> None:
        without = self.speed.copy()
        wide, high = without.size  # the line of exact attention, where it is alone
        without.paste(255, (round(0.55 * wide), round(0.05 * high), round(0.97 * wide), round(0.35 * high)))
        self.assertGreater(golden.compared(self.speed, without), golden.MOST["speed"])

    def test_dark_is_not_light(self) -> None:
        dark = Image.open(golden.FOLDER / "speed-dark.png")
        self.assertGreater(golden.compared(self.speed, dark), 0.5)
        self.assertEqual(golden.compared(self.speed, self.speed.resize((120, 90))), 1.0)

    def test_a_picture_moved_by_one_pixel_is_the_same_and_by_three_is_not(self) -> None:
        for pixels, same in ((1, True), (3, False)):
            moved = ImageChops.offset(self.speed, 0, pixels)
            self.assertEqual(golden.compared(self.speed, moved) < golden.MOST["speed"], same, pixels)

    def test_a_softer_edge_is_the_same(self) -> None:
        soft = Image.blend(self.speed, self.speed.filter(ImageFilter.GaussianBlur(1)), 0.1)
        self.assertLess(golden.compared(self.speed, soft), golden.MOST["speed"])


def quick_rows() -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        return read_rows([fixture.write(Path(folder) / "rows.jsonl", fixture.quick_cells())])


class Drawing(unittest.TestCase):
    def test_the_summary_shows_the_task_on_which_variants_differ_most(self) -> None:
        rows = quick_rows()
        trades = trade_panels(rows, Styles(rows))
        spreads = {t.title: t.spread for t in trades if len(t.groups) == 1}
        self.assertEqual(telling_trade(trades).title, max(spreads, key=spreads.__getitem__))
        self.assertGreater(len(set(spreads.values())), 1)

    def test_trade_offs_of_all_tasks_fit_a_page_and_share_the_axis_of_shares(self) -> None:
        cells = [c for c in fixture.quick_cells() if c["measure"] != "accuracy"]
        scored = [c for c in fixture.quick_cells() if c["measure"] == "accuracy" and c["task"]["name"] == "listops"]
        for number in range(13):
            cells += [c | {"cell": f"{number}-{c['cell']}", "task": {"name": f"task{number}", "params": c["task"]["params"]}} for c in scored]
        rows = Rows((), [fixture.header()], [_cell(c) for c in cells])
        (picture,) = tradeoff(rows, Styles(rows))
        wide, high = picture.figure.get_size_inches()
        self.assertTrue(wide <= 8.3 and high <= 11.7, (wide, high))
        drawn = [axes for axes in picture.figure.axes if axes.get_ylabel() or axes.get_title(loc="left")]
        self.assertEqual({axes.get_ylim()[0] for axes in drawn}, {0.0})
        legend = [t.get_text() for x in picture.figure.legends for t in x.get_texts()]
        self.assertTrue({"full", "truncated", "linear"} < set(legend), legend)
        self.assertIn("grey: its 95 % interval", " ".join(legend))

    def test_a_legend_names_the_errors_and_no_two_names_share_a_spot(self) -> None:
        rows = quick_rows()
        picture = fidelity(rows, Styles(rows))[0]
        legend = {t.get_text() for x in picture.figure.legends for t in x.get_texts()}
        self.assertTrue({"full", "linear"} < legend, legend)
        against_scale = [axes for axes in picture.figure.axes if axes.get_xlabel() == "scale of queries and keys"]
        self.assertTrue(against_scale)
        self.assertEqual([t.get_text() for axes in against_scale for t in axes.texts], [])

    def test_a_crossing_of_medians_is_told_apart_from_being_surely_faster(self) -> None:
        rows = quick_rows()
        told = [t.get_text() for t in crossings(rows, Styles(rows))[0].figure.axes[0].texts]
        self.assertEqual(told[:2], ["median crosses full's", "surely faster from"])

    def test_the_summary_shows_no_control_where_there_is_another_task(self) -> None:
        cells = fixture.quick_cells()
        for cell in cells:
            if cell["measure"] == "accuracy" and cell["task"]["name"] in ("image", "mqar"):
                if cell["status"] == "ok":
                    cell["metrics"].update(control="a bag of pixels", lift=None)
        with tempfile.TemporaryDirectory() as folder:
            rows = read_rows([fixture.write(Path(folder) / "rows.jsonl", cells)])
        panels = trade_panels(rows, Styles(rows))
        self.assertEqual(telling_trade(panels).title, "listops, length=256, not causal")
        self.assertNotIn("mean of", " ".join(p.title for p in panels), "of one task, no mean")
        told = controls(task_groups(rows.of("accuracy")))
        self.assertEqual(
            told,
            "Controls, whose lift says nothing: mqar: a bag of pixels solves it; image: a bag of pixels solves it.",
        )
        page = accuracy(rows, Styles(rows))[0]
        self.addCleanup(plt.close, page.figure)
        titles = [axes.get_title(loc="left") for axes in page.figure.axes]
        self.assertIn("image, a control", titles)
        self.assertIn("listops", titles)
        by_task = dict(zip(page.data["task"], page.data["control"], strict=True))
        self.assertEqual(by_task["image"], "a bag of pixels")
        self.assertIsNone(by_task["listops"])

    def test_guides_keep_off_the_curves(self) -> None:
        for points in ([1, 1e4], [1e4, 1], [1, 1e4, 1e4, 1]):
            with self.subTest(points):
                figure, axes = plt.subplots()
                self.addCleanup(plt.close, figure)
                axes.loglog(np.geomspace(256, 4096, len(points)), points)
                slope_guides(axes)
                boxes = [line.get_window_extent() for line in axes.lines]
                to_pixels = axes.transData.transform
                curve = to_pixels(np.column_stack(axes.lines[0].get_data()))
                along = np.linspace(0, len(points) - 1, 999)
                places = [np.interp(along, range(len(points)), xy) for xy in curve.T]
                self.assertEqual(len(boxes), 3)
                for box in boxes[1:]:
                    self.assertFalse(any(box.contains(x, y) for x, y in zip(*places)))

    def test_labels_keep_off_each_other_and_the_lines(self) -> None:
        figure, axes = plt.subplots()
        self.addCleanup(plt.close, figure)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        labels = [Label(0.5, y, 12, f"variant {y}", "k") for y in (0.5, 0.52, 0.56)]
        place_labels(axes, labels, [0.5])
        boxes = [text.get_window_extent() for text in axes.texts]
        self.assertEqual(len(boxes), 3)
        for a, b in itertools.combinations(boxes, 2):
            self.assertFalse(a.overlaps(b))
        level = axes.transData.transform((0, 0.5))[1]
        self.assertFalse(any(box.y0 < level < box.y1 for box in boxes))

    def test_names_at_line_ends_stack_in_order(self) -> None:
        self.assertEqual(spread([5, 5, 5], [10, 10, 10], 100), [5, 15, 25])
        self.assertEqual(spread([50, 52, 90], [10, 10, 10], 100), [46, 56, 90])
        self.assertEqual(spread([99, 99], [10, 10], 100), [85, 95])
        self.assertEqual(spread([], [], 100), [])

    def test_an_axis_of_bytes_has_two_ticks_at_least(self) -> None:
        """Powers of two where two lie between, else round numbers of the unit that they are written in."""
        self.assertEqual(byte_ticks(900, 5000, 5), [1024, 2048, 4096])
        self.assertEqual(byte_ticks(1000, 2**40, 4), [2.0**p for p in (10, 18, 26, 34)])
        for low, high in ((48_000, 67_000), (32_700, 51_000), (66_000, 67_000)):
            ticks = byte_ticks(low, high, 5)
            self.assertGreater(len(ticks), 1)
            self.assertTrue(all(low <= t <= high for t in ticks))
            told = [bytes_text(t) for t in ticks]
            self.assertEqual(len(set(told)), len(ticks), told)

    def test_a_caption_keeps_within_two_lines_of_the_picture(self) -> None:
        """Lines of wide letters too, where the mean width of a letter says too little."""
        shown = "What is shown. " + "WWWW MMMM " * 30 + ". Short too."
        origin = "Rows: a.jsonl. Machine: Intel(R) Xeon(R) Processor, 2 cores, 2 threads, avx512. attnbench 0.2.0, commit 012345678."
        for wide in (3.0, 5.0, 9.0):
            lines = two_lines(f"{shown}\nSkipped: none.\n{origin}", lambda line, most=wide: _inches(line, 8) <= most)
            self.assertEqual(len(lines), 2)
            self.assertLessEqual(max(_inches(line, 8) for line in lines), wide)
            self.assertTrue(lines[0].startswith("What is shown.") and lines[1].startswith("Rows: a.jsonl. Machine: "), lines)
            self.assertEqual("commit 012345678" in lines[1], wide > 3, lines)
        self.assertIn("2 cores, 2 threads, avx512", lines[1])
        lines = two_lines(f"{shown}\n{origin.replace('avx512', 'sse4.2')}", lambda line: _inches(line, 8) <= 4.0)
        self.assertTrue(lines[1].startswith("Rows: a.jsonl. Machine: Intel Xeon. attnbench 0.2.0"), lines[1])

    def test_the_csv_holds_the_whole_caption(self) -> None:
        (picture,) = draw_all(quick_rows(), "overview")
        self.assertEqual(noted(picture)["note"].iloc[0].split(), picture.caption.split())
        self.assertEqual(set(noted(picture)["note"].iloc[1:]), {""})

    def test_accuracy_axis_has_regular_ticks_from_0_to_1(self) -> None:
        rows = quick_rows()
        for trade in trade_panels(rows, Styles(rows)):
            with self.subTest(trade.title):
                figure, axes = plt.subplots()
                self.addCleanup(plt.close, figure)
                draw_trade(axes, trade, None)
                low, high = axes.get_ylim()
                ticks = axes.get_yticks()
                self.assertGreaterEqual(low, 0)
                self.assertLessEqual(max(ticks), 1)
                self.assertGreater(len(ticks), 3)
                self.assertAlmostEqual(max(np.diff(ticks)), min(np.diff(ticks)))
                self.assertTrue(all(low < d.score.mean < high for d in trade.dots if d.score))
