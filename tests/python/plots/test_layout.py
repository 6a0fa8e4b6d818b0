"""The layout of every picture of 5 and of 60 variants, with scripts/test --all also of 19: nothing over another, nothing too small."""

from __future__ import annotations

import itertools
import os
import unittest
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from attnbench.plots.gallery import draw_all
from attnbench.plots.layout.axes import LEADER
from attnbench.plots.layout.page import Picture
from attnbench.plots.rows.settings import MEANINGS
from attnbench.plots.rows.style import BEHIND, Styles

from . import many

COUNTS = (5, 19, 60) if os.environ.get("ATTN_GOLDEN_ALL") else (5, 60)
LEAST = (1.15, 1.2)  # inches of a panel
LINE = 0.17  # inches of a variant in a list
KINDS = (
    "overview",
    "speed-attention",
    "speed-relative-attention",
    "crossing-attention",
    "memory-attention",
    "accuracy",
    "accuracy-distance",
    "accuracy-slices",
    "accuracy-length",
    "accuracy-effort",
    "accuracy-state",
    "tradeoff",
    "fidelity",
    "reach",
)
TALLEST = 30.0  # inches of a picture


@cache
def drawn(count: int) -> dict[str, Picture]:
    rows = many.rows(count)
    pictures = {p.name: p for p in draw_all(rows)}
    for picture in pictures.values():
        picture.figure.draw_without_rendering()
    return pictures


def tearDownModule() -> None:
    drawn.cache_clear()


def is_list(name: str) -> bool:
    stem = name.rstrip("0123456789").rstrip("-")
    return stem == "accuracy" or name.startswith("crossing")


def panels(picture: Picture) -> list[Axes]:
    """But for the legend of circles."""
    return [a for a in picture.figure.axes if a.axison]


def texts(picture: Picture) -> list[tuple[Text, Bbox]]:
    """All that is written, with its box in pixels."""
    unseen = hidden(picture)
    found = [t for t in picture.figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    return [(t, Text.get_window_extent(t)) for t in found if t not in unseen]


def hidden(picture: Picture) -> set[Text]:
    """Texts that are never drawn: ticks outside the limits, those without labels, and all of axes
    that are off."""
    out: set[Text] = set()
    for axes in picture.figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                seen = axes.axison and low <= tick.get_loc() <= high
                out |= set() if seen else {tick.label1, tick.label2}
            out |= set() if axes.axison else {axis.label}
    return out


class Layout(unittest.TestCase):
    maxDiff = None

    def each(self):
        for count in COUNTS:
            for name, picture in drawn(count).items():
                yield f"{name} of {count}", name, picture

    def test_every_kind_is_drawn(self) -> None:
        for count in COUNTS:
            names = drawn(count)
            for kind in KINDS:
                self.assertTrue(any(n.startswith(kind) for n in names), f"{kind} of {count}")

    def test_no_words_lie_over_others_or_leave_the_picture(self) -> None:
        faults = []
        for what, _, picture in self.each():
            found = texts(picture)
            said = [t.get_text() for t, _ in found]
            boxes = np.array([b.extents for _, b in found])
            wide, high = picture.figure.get_size_inches() * picture.figure.dpi
            low, high = boxes[:, :2] < -1, boxes[:, 2:] > (wide + 1, high + 1)
            out = (low | high).any(axis=1)
            faults += [f"{what}: {said[i]!r} outside" for i in np.flatnonzero(out)]
            boxes = boxes + np.array([1.0, 1.5, -1.0, -1.5])  # they hold room above and below
            low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
            shared = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - low
            over = np.argwhere(np.triu((shared > 0).all(axis=2), 1))
            faults += [f"{what}: {said[a]!r} over {said[b]!r}" for a, b in over]
        self.assertEqual(faults, [])

    def test_every_caption_has_two_lines(self) -> None:
        """What is shown, in whole sentences, and where it comes from; before them what marks mean."""
        for what, _, picture in self.each():
            lines = picture.figure.texts[-1].get_text().split("\n")
            told = [line for line in lines if line[0] not in MEANINGS]
            self.assertEqual(len(told), 2, what)
            self.assertTrue(told[0].endswith(".") and told[1].startswith("Rows: "), (what, told))
            self.assertNotIn("\u2026", "".join(told), what)

    def test_labels_are_inside_their_panels(self) -> None:
        faults = []
        for what, name, picture in self.each():
            for axes in () if is_list(name) else panels(picture):
                (x0, y0), (x1, y1) = axes.get_window_extent().get_points() + [(-1, -2), (1, 2)]
                for text in axes.texts:
                    if getattr(text, "xy", None) == (0, 1):
                        continue  # a task's parameters, under the title
                    box = Text.get_window_extent(text)
                    if not (x0 <= box.x0 and box.x1 <= x1 and y0 <= box.y0 and box.y1 <= y1):
                        faults.append(f"{what}: {text.get_text()!r}")
        self.assertEqual(faults, [])

    def test_no_panel_is_too_small_and_no_picture_too_tall(self) -> None:
        for what, name, picture in self.each():
            self.assertLess(picture.figure.get_size_inches()[1], TALLEST, what)
            for axes in panels(picture):
                box, dpi = axes.get_window_extent(), picture.figure.dpi
                self.assertGreaterEqual(box.width / dpi, LEAST[0], what)
                lines = len(axes.get_yticks()) if is_list(name) else 0
                least = LINE * lines if lines else LEAST[1]
                self.assertGreaterEqual(box.height / dpi, least, what)

    def test_every_variant_is_named_in_every_kind(self) -> None:
        for count in COUNTS:
            wanted = {name for name, _, _ in many.variants(count)}
            for kind in ("speed-attention", "speed-relative", "accuracy", "tradeoff", "fidelity"):
                pictures = [p for n, p in drawn(count).items() if n.startswith(kind)]
                said = {
                    t.get_text().replace("\n", " ").partition(" ")[0].rstrip(":" + "".join(MEANINGS))
                    for p in pictures
                    for t in p.figure.findobj(Text)
                }
                self.assertEqual(wanted - said, set(), f"{kind} of {count}")

    def test_no_two_lines_of_a_panel_look_alike(self) -> None:
        """Neither without colours, by marker, fill, width and dash, nor by colour and weight."""
        for what, name, picture in self.each():
            if is_list(name):
                continue
            for axes in panels(picture):
                lines = [line for line in axes.lines if _is_curve(line)]
                dashes = [str(x._unscaled_dash_pattern) for x in lines]
                shapes = [(*_weight(x), x.get_marker(), d) for x, d in zip(lines, dashes)]
                colors = [(*_weight(x), x.get_color()) for x in lines]
                self.assertEqual(len(set(shapes)), len(shapes), what)
                self.assertEqual(len(set(colors)), len(colors), what)


def _is_curve(line: Line2D) -> bool:
    named = line.get_marker() not in ("None", None, "", "X", "_", "|") and line.get_gid() != LEADER
    behind = to_rgb(line.get_color()) == to_rgb(BEHIND)
    return named and not behind and len(line.get_xdata()) > 1


def _weight(line: Line2D) -> tuple[str, float]:
    return line.get_fillstyle(), round(line.get_linewidth(), 2)


class Looks(unittest.TestCase):
    def test_no_two_variants_share_marker_and_dash(self) -> None:
        styles = Styles(many.rows(60))
        looks = [styles.look(name) for name, _, _ in many.variants(60)]
        for one, other in itertools.combinations(looks, 2):
            self.assertNotEqual((one.marker, one.dash), (other.marker, other.dash))

    def test_colours_of_a_group_differ_and_black_is_exact_attention_s(self) -> None:
        for count in COUNTS:
            styles = Styles(many.rows(count))
            named = [v for g in styles.groups for v in g.variants]
            wanted = [n for n, _, _ in many.variants(count) if n != "full"]
            self.assertEqual(sorted(named), sorted(wanted))
            for group in styles.groups:
                colors = {styles.look(v).color for v in group.variants}
                self.assertEqual(len(colors), len(group.variants), group.title)
                self.assertNotIn(styles.look("full").color, colors)

    def test_groups_are_families(self) -> None:
        family = {name: of for name, of, _ in many.variants(60)}
        for group in Styles(many.rows(60)).groups:
            for name in group.variants:
                self.assertIn(family[name], group.title)
