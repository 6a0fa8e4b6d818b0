"""The report in a real browser: choose, hover, sort, copy, link, dark, phone, paper, axe-core, and
how long many rows take to open. Skipped without Chromium or without .venv-browser."""

from __future__ import annotations

import os
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any

from attnbench.plots.rows.read import read_rows
from attnbench.reports.document import document
from attnbench.reports.history import read_history
from attnbench.reports.peers import read_peers

from .. import fixture
from ..browser.session import drive, needs_browser
from ..plots import golden, many
from . import report_rows

COUNTS = (300, 5_000)  # open_report.py opens 20,000 too
OPENS_IN = 2.0  # seconds on an idle machine
PATIENCE = 5.0  # times as long on one that builds and tests meanwhile


@needs_browser
class Browser(unittest.TestCase):
    seen: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        """One session of the browser, whose findings the tests read."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            files, peers, past = report_rows.everything(folder)
            every = folder / "everything.html"
            told = document(read_rows(files), [read_peers(peers)], read_history(past))
            every.write_text(told, encoding="utf-8")
            rows = [
                fixture.write(folder / "quick.jsonl", fixture.quick_cells()),
                report_rows.hostile(folder / "hostile.jsonl", names=True),
                *(report_rows.write(folder / f"{n}.jsonl", n) for n in COUNTS),
            ]
            pages = [file.with_suffix(".html") for file in rows]
            for file, page in zip(rows, pages, strict=True):
                page.write_text(document(read_rows([file])), encoding="utf-8")
            crowd = folder / "many.html"
            crowd.write_text(document(many.rows(60)), encoding="utf-8")
            cls.shots = folder / "shots"
            cls.shots.mkdir()
            cls.seen = drive("reports.drive_report", cls.shots, pages[0], every, crowd, *pages[1:])
            cls.comparable = golden.drawn_by(cls.seen["version"])
            cls.differing = {name: golden.difference(cls.shots / f"{name}.png") for name in cls.seen["pictures"]}
        cls.explored, cls.looks = cls.seen["explored"], cls.seen["looks"]

    def test_nothing_is_complained_of_or_loaded(self) -> None:
        self.assertEqual(self.seen["faults"], [])

    def test_pictures_look_as_they_did(self) -> None:
        print("share of golden pictures that differs:", self.differing)
        self.assertEqual(len(self.differing), 9)
        if not self.comparable:
            self.skipTest(f"the golden pictures are not of Chromium {self.seen['version']}")
        for name, share in self.differing.items():
            self.assertLess(share, golden.MOST[name.partition("-")[0]], name)

    def test_of_sixty_variants_the_best_are_in_full_until_others_are_chosen(self) -> None:
        seen = self.seen["many"]
        (best, named), (group, _), (every, all_named) = (seen[k] for k in ("best", "group", "all"))
        self.assertEqual((best, len(named), named[-1]), (9, 10, "the others are grey"))
        self.assertEqual(named[0], "full tiled")
        self.assertTrue(1 < group <= 8, group)
        self.assertTrue(every > 40 and "the others are grey" not in all_named, every)
        self.assertEqual(seen["link"], "#focus=all")
        family = {name for name, of, _ in many.variants(60) if of == "low rank"}
        self.assertEqual(seen["only"][0], "full tiled")
        self.assertTrue(set(seen["only"][1:]) <= family and len(seen["only"]) > 4, seen["only"])

    def test_many_rows_open_soon(self) -> None:
        print("seconds to open:", self.seen["times"])
        idle = os.getloadavg()[0] < 1
        for count in COUNTS:
            for what in ("open", "redraw"):
                self.assertLess(self.seen["times"][str(count)][what], OPENS_IN * (1 if idle else PATIENCE), what)

    def test_variants_and_panels_are_chosen(self) -> None:
        self.assertEqual(self.explored["chosen"], self.explored["all"] - 1)
        self.assertNotIn("linear", self.explored["variants"])
        before, after = self.explored["figures"]
        self.assertTrue(0 < after < before, (before, after))

    def test_relative_and_linear(self) -> None:
        self.assertEqual(self.explored["title"], "time per call")
        self.assertEqual(self.explored["relative"], "time per call, exact attention = \u00d71")
        self.assertEqual(self.explored["axis"], "linear")

    def test_relative_to_any_variant(self) -> None:
        self.assertEqual(self.explored["to any"], "time per call, truncated = \u00d71")
        ratios = {name: {p[0]: p[1:] for p in points} for name, points in self.explored["ratios"]}
        self.assertNotIn("linear", ratios)  # hidden
        rows = {}
        for c in fixture.quick_cells():
            wanted = ("speed", "forward", "attention", False)
            if (c["measure"], *(c["axes"].get(k) for k in ("mode", "scope", "causal"))) == wanted and c["status"] == "ok":
                if "features" not in c["variant"]["params"] or c["variant"]["params"]["features"] != 256:
                    rows[c["variant"]["name"], c["axes"]["length"]] = c["metrics"]["time_s"]
        own, base = rows["performer", 512], rows["truncated", 512]
        name = next(n for n in ratios if n.startswith("performer") and "256" not in n)
        told = ratios[name][512]
        wanted = [own["median"] / base["median"], own["ci_low"] / base["ci_high"], own["ci_high"] / base["ci_low"]]
        for value, known in zip(told, wanted, strict=True):
            self.assertAlmostEqual(value / known, 1, delta=1e-3)
        self.assertEqual({v[0] for v in ratios["truncated"].values()}, {1})

    def test_a_point_tells_interval_samples_and_command(self) -> None:
        for how in ("hovered", "stepped", "dialog"):
            told = self.explored[how]
            self.assertRegex(told, r"\(95.%: [\d.]+ .s to [\d.]+ .s\)", how)
            self.assertRegex(told, r"9 samples in visits of 3, 3, 3: [\d.]+ .s, ", how)
            cell = re.search(r"scripts/bench repro quick\.jsonl ([0-9a-f]{16})", told)
            self.assertIsNotNone(cell, told)
            row = next(c for c in fixture.quick_cells() if c["cell"] == cell[1])
            self.assertIn(row["variant"]["name"], told)
            shown = float(re.search(r": ([\d.]+) ms \(", told)[1])
            listed = re.search(r"visits of 3, 3, 3: (.*? .s)(?:\. |script)", told)[1].split(", ")
            self.assertEqual(len(listed), 9)
            for text, seconds in zip(listed, row["samples"], strict=True):
                self.assertAlmostEqual(float(text.split()[0]), 1e3 * seconds, delta=0.006 * shown)
            self.assertAlmostEqual(shown, 1e3 * row["metrics"]["time_s"]["median"], delta=0.005 * shown)
        told, label = ("".join(self.explored[k].split()) for k in ("hovered", "label"))
        self.assertTrue(told.startswith(label), (told, label))

    def test_a_chart_zooms_by_dragging_and_by_keys(self) -> None:
        zoomed = self.seen["zoomed"]
        (low, high), (a, b), (c, d) = (zoomed[k] for k in ("whole", "dragged", "pressed"))
        self.assertTrue(low < a < b < high, zoomed)
        self.assertLess(b - a, 0.5 * (high - low))
        self.assertGreaterEqual(len(zoomed["ticks"]), 2)
        for tick in zoomed["ticks"]:
            self.assertTrue(10**a <= tick <= 10**b, zoomed)
        self.assertEqual(zoomed["back"], zoomed["whole"])
        self.assertAlmostEqual((high - low) / (d - c), 1.5, delta=0.01)

    def test_every_section_is_drawn(self) -> None:
        seen = self.seen["sections"]
        wanted = {"speed", "memory", "share", "parts", "fidelity", "accuracy", "learning", "state", "tradeoff", "equal-cost", "history",
                  "peers", "checks", "parity", "sources"}  # fmt: skip
        self.assertLessEqual(wanted, set(seen["ids"]))
        self.assertEqual(seen["stacked"], [0.6, 0.2, 0.1, 0.1])
        self.assertEqual(len(set(seen["patterns"])), 4)  # in grey too
        self.assertEqual(seen["rings"], 1)
        self.assertLessEqual(set(seen["runs"]), {str(i) * 9 for i in range(8)})
        self.assertEqual(seen["runs"][-1], "7" * 9)
        self.assertIn("full", seen["peers"])

    def test_points_of_other_axes_stand_in_tables_of_their_own(self) -> None:
        axes = [tuple(heads[2:4]) for heads in self.seen["sections"]["heads"]]
        self.assertIn(("time per token", "test accuracy"), axes)
        self.assertIn(("peak memory", "relative error"), axes)
        self.assertEqual(len(set(axes)), len(axes))

    def test_tables_sort_and_filter(self) -> None:
        rising, falling = self.explored["sorted"], self.explored["reversed"]
        self.assertEqual(rising, sorted(rising, key=lambda t: int(t) if t.isdigit() else 0))
        self.assertEqual(falling, rising[::-1])
        self.assertGreater(len(set(rising)), 2)
        self.assertEqual(self.explored["aria"], "descending")
        self.assertTrue(self.explored["filtered"])
        for panel, variant in self.explored["filtered"]:
            self.assertIn("backward", panel)
            self.assertIn("performer", variant)

    def test_tables_are_copied_in_three_forms(self) -> None:
        copies, rows = self.explored["copies"], len(self.explored["filtered"])
        lines = {form: text.strip().splitlines() for form, text in copies.items()}
        self.assertEqual({form: len(own) for form, own in lines.items()}, {"CSV": rows + 1, "Markdown": rows + 2, "LaTeX": rows + 6})
        self.assertTrue(copies["CSV"].startswith("panel,variant,surely faster from,medians cross at (95 % interval),"))
        self.assertTrue(lines["Markdown"][2].startswith("| forward and backward"))
        self.assertIn("(95 \\% interval)", lines["LaTeX"][2])

    def test_a_link_keeps_the_view(self) -> None:
        linked = self.explored["linked"]
        self.assertEqual(linked["traces"], self.explored["chosen"])
        self.assertEqual(linked["relative"], self.explored["relative"])
        self.assertEqual(linked["rows"], self.explored["filtered"])
        self.assertEqual(linked["sort"], "descending")
        self.assertLess(abs(self.explored["linked top"]), 120)
        self.assertEqual(self.explored["reset"], self.explored["all"])

    def test_light_dark_phone_and_paper(self) -> None:
        for look, color in (("light", (255, 255, 255)), ("dark", (22, 24, 27)), ("phone", (255, 255, 255))):
            own = self.looks[look]
            self.assertEqual(own["page"], f"rgb{color}")
            self.assertEqual(own["plot"], "#%02x%02x%02x" % color)
            for what in ("width", "open width"):  # nothing to scroll sideways
                self.assertLessEqual(own[what], 390 if look == "phone" else 1280, f"{look}: {what}")
        theme, drawn, figures, exact = self.looks["printed"]
        self.assertEqual(exact, "#000000")  # in the key too, where the screen is dark
        self.assertEqual(theme, "light")
        self.assertGreaterEqual(drawn, figures)
        self.assertGreater(self.looks["pdf"], 50_000)
        self.assertEqual(self.looks["after print"], "dark")

    def test_the_accessibility_audit_has_no_serious_finding(self) -> None:
        self.assertEqual(self.looks["audits"], {"light": [], "dark": [], "phone": []})

    def test_hostile_rows_run_nothing(self) -> None:
        self.assertEqual(self.seen["hostile"]["title"], "attnbench report: hostile.jsonl")
        self.assertEqual(self.seen["hostile"]["elements"], 0)
        labels = [label.replace("<br>", "") for label in self.seen["hostile"]["labels"]]
        self.assertTrue(any("&lt;" in label for label in labels))
        self.assertEqual([label for label in labels if "<" in label], [])
        self.assertIn(report_rows.HOSTILE, self.seen["hostile"]["shown"])
