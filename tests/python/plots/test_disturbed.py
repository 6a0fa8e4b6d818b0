"""A time that was measured on a disturbed machine is marked wherever it is drawn, and a key counts such times; the overview's key and
title say what its lines are."""

from __future__ import annotations

from typing import Any

from matplotlib.text import Text

from attnbench.plots.kinds.crossing import crossings, relative
from attnbench.plots.kinds.curves import speed
from attnbench.plots.kinds.overview import overview
from attnbench.plots.layout.page import Picture
from attnbench.plots.rows.read import PYTHON
from attnbench.plots.rows.style import Styles

from .test_overview import InOverview, peak_row, planted, time_row

NOISY = {"noisy": ["witness"]}


def said(picture: Picture) -> list[str]:
    return [t.get_text() for t in picture.figure.findobj(Text) if t.get_text()]


def foot(picture: Picture) -> list[str]:
    """The key and the caption as they stand in the picture."""
    return picture.figure.texts[-1].get_text().split("\n")


def signs(picture: Picture) -> int:
    """How many points carry the sign of disturbed times."""
    return sum(len(x.get_xdata()) for axes in picture.figure.axes for x in axes.lines if x.get_marker() == "$*$")


class Disturbed(InOverview):
    def drawn(self, draw: Any, **changes: Any) -> Picture:
        rows = self.rows(planted(**changes))
        (picture,) = draw(rows, Styles(rows))
        return picture

    def test_lines_of_times_mark_their_points_and_names_and_the_key_counts_them(self) -> None:
        for draw, marked in ((speed, {"full"}), (relative, {"full", "linear", "truncated", "performer"})):
            picture = self.drawn(draw, full=NOISY)  # a ratio rests on both times
            names = {"full", "linear", "truncated", "performer"}
            self.assertEqual({name for name in names if f"{name}*" in said(picture)}, marked)
            self.assertEqual(signs(picture), 4 * len(marked))
            self.assertEqual(foot(picture)[0], "* disturbed: 4 of the 16 times")
            self.assertEqual(set(picture.data.loc[picture.data["marks"] == "*", "variant"]), marked)
            still = self.drawn(draw)
            self.assertEqual((signs(still), [line for line in foot(still) if "disturbed" in line]), (0, []))

    def test_a_crossing_is_marked_where_one_of_its_times_is(self) -> None:
        picture = self.drawn(crossings, linear=NOISY)
        lines = picture.data.set_index("variant")
        self.assertEqual(lines["marks"].to_dict(), {"linear": "*", "truncated": "", "performer": ""})
        self.assertIn(lines.loc["linear", "text"] + "*", said(picture))
        self.assertIn(lines.loc["truncated", "text"], said(picture))
        self.assertEqual(foot(picture)[0], "* disturbed: 4 of the 16 times")
        self.assertIn("4 of the 16 times shown here were measured on a disturbed machine: ", picture.caption)
        self.assertNotIn("disturbed", self.drawn(crossings).caption)

    def test_the_overview_counts_them_too(self) -> None:
        self.assertIn("* disturbed: 4 of the 16 times", " \u00b7 ".join(foot(self.drawn(overview, linear=NOISY))))


class Chosen(InOverview):
    def test_the_lines_shown_are_those_that_the_title_and_the_key_name(self) -> None:
        """Beyond those with times the list's order would show the greatest peaks."""
        costs = [c for c in planted() if c["measure"] != "accuracy"]
        others = [peak_row(f"other{i}", {}, n, (40 - i) * n) for i in range(14) for n in (64, 4096)]
        rows = self.rows([*costs, *others])
        (picture,) = overview(rows, Styles(rows))
        self.assertEqual(picture.figure.texts[0].get_text(), "Attention variants on one machine: 12 of 18")
        self.assertIn("shown: least time, then least memory", foot(picture)[0])
        shown = {f"other{i}" for i in range(14) if f"other{i}" in said(picture)}
        self.assertEqual(shown, {f"other{i}" for i in range(6, 14)})

    def test_one_rule_stands_in_the_title(self) -> None:
        costs = [c for c in planted() if c["measure"] != "accuracy"]
        others = [time_row("linear", {"rank": i}, n) | {"variant": {"name": f"other{i}", "params": {}}} for i in range(14) for n in (64, 4096)]
        rows = self.rows([*costs, *others])
        (picture,) = overview(rows, Styles(rows))
        self.assertEqual(picture.figure.texts[0].get_text(), "Attention variants on one machine: 12 of 18, least time")
        self.assertNotIn("shown:", foot(picture)[0])


class InPython(InOverview):
    def test_its_sign_has_a_key_its_parameter_is_told_and_no_mark_is_cut_off(self) -> None:
        more = {"noisy": ["witness"], "verified": {"by": "identities", "identities": ["causal"]}}
        cells = [c for c in planted() if c["variant"]["name"] == "full" and c["measure"] != "accuracy"]
        mine = {"variant": {"name": "python_pyv", "params": {"window": 8}}, **more}
        for n in (64, 256, 1024, 4096):
            cells += [time_row("performer", {}, n) | mine, peak_row("performer", {}, n, 10**6 * n) | {k: v for k, v in mine.items() if k != "noisy"}]
        rows = self.rows(cells)
        for draw in (speed, relative, crossings, overview):
            (picture,) = draw(rows, Styles(rows))
            key = " \u00b7 ".join(foot(picture))
            self.assertEqual(key.count(f"{PYTHON} written in Python, run by torch"), 1)
            self.assertIn("~ compared with its own answers alone \u00b7 * disturbed: 4 of the 8 times", key)
        words = said(picture)
        self.assertIn("window 8", words)
        self.assertTrue(any(w.startswith("never") and w.endswith("~*") for w in words), words)
