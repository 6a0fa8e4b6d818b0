"""The overview: one number for one question everywhere, marks that stay with their numbers, and what is missing."""

from __future__ import annotations

import math
import re
import subprocess
import unittest
from typing import Any
from unittest import mock

import numpy as np

from attnbench._place import program
from attnbench.plots.kinds.crossing import crossings
from attnbench.plots.kinds.overview import overview
from attnbench.plots.kinds.overview_rows import Line, Overview, overview_of
from attnbench.plots.rows import crossing
from attnbench.plots.rows.read import Rows, read_rows
from attnbench.plots.rows.style import Styles
from attnbench.reports.book import Book
from attnbench.reports.first_table import first_table
from attnbench.reports.scores import Tasks
from attnbench.reports.summary import speeds

from .. import fixture
from ..faults import BUILT, ROOT, InFolder

LENGTHS = (64, 256, 1024, 4096)
REFERENCE = ROOT / "results" / "reference" / "quick.jsonl"
TILED, MATERIALIZED = {"kernel": "tiled"}, {"kernel": "materialized"}
# Seconds by length, in units of 10 ns.
LAWS = {"full": lambda n: n**2, "linear": lambda n: 300 * n, "truncated": lambda n: 40 * n, "performer": lambda n: 20_000 * n}


def time_row(name: str, params: dict[str, Any], n: int, heads: int = 2, **more: Any) -> dict[str, Any]:
    samples = 1e-8 * LAWS[name](n) * (1 + 0.004 * np.random.default_rng(n).standard_normal(9))
    axes = fixture.shape(n, "forward", "attention", False) | {"heads": heads}
    return fixture.timed(name, params, axes, samples, n) | {"verified": {"by": "reference"}} | more


def peak_row(name: str, params: dict[str, Any], n: int, peak: int, heads: int = 2, **more: Any) -> dict[str, Any]:
    axes = fixture.shape(n, "forward", "attention", False) | {"heads": heads}
    metrics = {"peak_bytes": peak, "weights_bytes": 0, "activations_bytes": peak, "workspace_bytes": 0}
    return fixture.cell("memory", name, params, axes, metrics=metrics) | {"verified": {"by": "reference"}} | more


def score_row(name: str, params: dict[str, Any], test: float, seed: int = 0, task: str = "copy", ended: str = "target") -> dict[str, Any]:
    metrics = {"metric": "accuracy", "test": test, "validation": test, "chance": 0.1, "shortcuts": {"majority": 0.3}, "stopped_by": ended}
    axes = {"length": 64, "causal": False, "threads": 1, "seed": seed}
    what = {"name": task, "params": {"length": 64}}
    return fixture.cell("accuracy", name, params, axes, task=what, metrics=metrics) | {"training": {"heads": 2, "width": 64}}


def planted(**changes: Any) -> list[dict[str, Any]]:
    """Four variants: one is always faster than exact attention, one never, one from 300 tokens on."""
    kinds = (("full", TILED), ("linear", {}), ("truncated", {"window": 16}), ("performer", {"features": 64}))
    cells = [time_row(name, params, n, **changes.get(name, {})) for name, params in kinds for n in LENGTHS]
    cells += [peak_row(name, params, n, 1000 * n + (n if name == "linear" else 0)) for name, params in kinds for n in LENGTHS]
    for name, params in kinds:
        cells += [score_row(name, params, {"full": 0.9, "linear": 0.5}.get(name, 0.4) + 0.01 * seed, seed) for seed in (0, 1, 2)]
    return cells


class InOverview(InFolder):
    def rows(self, cells: list[dict[str, Any]], head: dict[str, Any] | None = None) -> Rows:
        return read_rows([fixture.write(self.folder / "rows.jsonl", cells, head)])

    def found(self, cells: list[dict[str, Any]]) -> tuple[Overview, dict[str, Line]]:
        rows = self.rows(cells)
        found = overview_of(rows, Styles(rows))
        assert found is not None
        return found, {line.series.variant: line for line in found.lines}


class Answers(InOverview):
    def test_crossings_are_those_of_the_crossing_picture_and_of_the_summary(self) -> None:
        rows = self.rows(planted())
        styles = Styles(rows)
        found = overview_of(rows, styles)
        (picture,) = crossings(rows, styles)
        drawn = picture.data.set_index("variant")
        told = " ".join(speeds(Book(rows, styles), Tasks(Book(rows, styles))))
        lines = {line.series.variant: line.time_from for line in found.lines}
        self.assertEqual(lines["truncated"].text, "every length")
        self.assertEqual(lines["performer"].text, "never to 4k")
        self.assertAlmostEqual(lines["linear"].value, 300, delta=15)
        self.assertEqual(lines["linear"].value, drawn.loc["linear", "crossing"])
        self.assertEqual((lines["linear"].low, lines["linear"].high), (drawn.loc["linear", "ci_low"], drawn.loc["linear", "ci_high"]))
        self.assertIn(f"`linear` is faster than exact attention from {lines['linear'].text} tokens on", told)
        self.assertIn("`performer` is not faster than exact attention at the longest", told)

    def test_memory_crosses_between_two_measured_lengths_or_never(self) -> None:
        cells = [c for c in planted() if c["measure"] != "memory"]
        for n in LENGTHS:
            cells += [peak_row("full", TILED, n, 10 * n * n), peak_row("linear", {}, n, 5000 * n)]
            cells += [peak_row("truncated", {"window": 16}, n, 20 * n * n), peak_row("performer", {"features": 64}, n, n)]
        _, lines = self.found(cells)
        crossed = lines["linear"].memory_from
        self.assertEqual((crossed.value, crossed.low, crossed.high, crossed.detail), (1024, 256, 1024, "256–1k"))
        self.assertEqual(lines["truncated"].memory_from.text, "never to 4k")
        self.assertEqual(lines["performer"].memory_from.text, "every length")
        self.assertEqual(lines["linear"].memory.value, 5000 * 4096)
        self.assertEqual(lines["full"].memory_from.text, "–")

    def test_memory_that_crosses_a_rounding_beside_the_lengths_crosses_at_them(self) -> None:
        """As where two peaks are equal at the shortest length."""
        for at, low, high in ((64 * (1 - 1e-12), 64, 256), (4096 * (1 + 1e-12), 1024, 4096), (256 * (1 - 1e-12), 256, 1024)):
            with mock.patch("attnbench.plots.kinds.overview_rows.crossing_length", return_value=at):
                _, lines = self.found(planted())
            self.assertEqual((lines["linear"].memory_from.low, lines["linear"].memory_from.high), (low, high))

    def test_all_numbers_of_a_line_are_of_the_same_parameters(self) -> None:
        """Those of which most was measured, however often others were."""
        other = {"window": 64}
        cells = planted() + [time_row("truncated", other, n) for n in (64, 4096)]
        cells += [score_row("truncated", other, 0.95, seed, "reverse") for seed in range(5)]
        found, lines = self.found(cells)
        self.assertEqual([line.series.variant for line in found.lines][0], "full")
        self.assertEqual(lines["truncated"].params, "window 16")
        told = dict(zip((t.title for t in found.tasks), lines["truncated"].scores, strict=True))
        self.assertEqual(told["copy"].text, "0.410")
        self.assertEqual(told["reverse"].text, "–", "measured with other parameters alone")

    def test_what_has_no_number_says_why(self) -> None:
        cells = [c for c in planted() if (c["measure"], c["variant"]["name"]) != ("accuracy", "linear")]
        axes = {"length": 64, "causal": False, "threads": 1, "seed": 0}
        what = {"name": "copy", "params": {"length": 64}}
        cells.append(fixture.cell("accuracy", "linear", {}, axes, task=what, status="skipped", reason="cannot be causal"))
        cells = [c for c in cells if (c["measure"], c["variant"]["name"], c["axes"]["length"]) != ("speed", "performer", 4096)]
        gone = fixture.shape(4096, "forward", "attention", False) | {"heads": 2}
        cells.append(fixture.cell("speed", "performer", {"features": 64}, gone, status="oom", reason="needs 9 GB"))
        _, lines = self.found(cells)
        self.assertEqual((lines["linear"].scores[0].text, lines["linear"].scores[0].detail), ("skipped", "cannot be causal"))
        self.assertEqual((lines["performer"].time.text, lines["performer"].time.value), ("oom", None))

    def test_a_task_that_exact_attention_has_not_learned_says_so(self) -> None:
        weak = [score_row("full", TILED, 0.29, seed, "hard") for seed in (0, 1, 2)]
        found, _ = self.found(weak + [score_row("linear", {}, 0.31, seed, "hard") for seed in (0, 1, 2)] + planted())
        self.assertEqual([(t.title, t.warning) for t in found.tasks], [("copy", ""), ("hard", "full has no lift")])
        page = first_table(Book(rows := self.rows(weak + planted()), Styles(rows)))
        self.assertIn("<b>hard</b> compares nothing: full has no lift.", page)


class Marks(InOverview):
    def test_a_number_carries_the_mark_of_the_condition_that_it_fails(self) -> None:
        alone, nothing = {"by": "identities", "identities": ["prefix"]}, {"by": "identities", "identities": []}
        cells = planted(linear={"verified": alone}, truncated={"verified": nothing}, performer={"noisy": ["steal"]})
        cells = [c for c in cells if c["measure"] != "accuracy"]
        ends = {"full": "target", "linear": "patience", "truncated": "steps", "performer": "time"}
        params = {"full": TILED, "truncated": {"window": 16}, "performer": {"features": 64}}
        for name, ended in ends.items():
            cells += [score_row(name, params.get(name, {}), 0.5, 0, ended=ended), score_row(name, params.get(name, {}), 0.5, 1)]
        found, lines = self.found(cells)
        for name, cost, score in (("full", "", ""), ("linear", "~", ""), ("truncated", "?", "†"), ("performer", "*", "†")):
            self.assertEqual((lines[name].time.marks, lines[name].time_from.marks, lines[name].scores[0].marks),
                             (cost, cost, score), name)  # fmt: skip
        self.assertEqual(set(found.marks), {"†", "~", "?", "*"})
        rows = self.rows(cells)
        (picture,) = overview(rows, Styles(rows))
        written = "\n".join(t.get_text() for t in picture.figure.findobj(lambda o: hasattr(o, "get_text")))
        page = first_table(Book(rows, Styles(rows)))
        for mark in found.marks:
            self.assertRegex(written, re.escape(mark) + " [a-z]")
            self.assertIn(f"<b>{mark}</b> ", page)
        self.assertIn("0.500†", written)
        self.assertIn("0.500†", page)

    def test_rows_of_earlier_versions_are_marked_as_not_compared(self) -> None:
        cells = [{k: v for k, v in c.items() if k != "verified"} for c in planted()]
        _, lines = self.found(cells)
        self.assertEqual((lines["linear"].time.marks, lines["linear"].memory.marks), ("?", "?"))


class Shapes(InOverview):
    def test_one_shape_and_length_is_chosen_where_there_is_one(self) -> None:
        longer = [peak_row(name, params, 16384, 10**6) for name, params in (("full", TILED), ("linear", {}))]
        found, _ = self.found(planted() + longer)
        self.assertEqual((found.time_at, found.memory_at), (4096, 4096))

    def test_two_shapes_are_told(self) -> None:
        cells = [c for c in planted() if c["measure"] != "memory"]
        cells += [peak_row(name, params, n, n, heads=1) for name, params in (("full", TILED), ("linear", {})) for n in (64, 16384)]
        rows = self.rows(cells)
        (picture,) = overview(rows, Styles(rows))
        drawn = [t.get_text() for t in picture.figure.texts]
        self.assertTrue(any("time: 2 heads; memory: 1 head." in text for text in drawn), drawn)
        self.assertIn("time: 2 heads; memory: 1 head.", first_table(Book(rows, Styles(rows))))

    def test_the_baseline_is_the_default_however_much_of_another_was_measured(self) -> None:
        """Rows of earlier versions do not hold defaults, and a search measures the nearer rival more often."""
        head = fixture.header() | {"variants": [{"name": "full", "order": 0}]}
        cells = [time_row("full", MATERIALIZED, n) for n in (64, 128, 256, 512, 1024, 2048, 4096)] + planted()
        rows = self.rows(cells, head)
        styles = Styles(rows)
        self.assertEqual(dict(styles.baseline(styles.series(rows.of("speed"))).params), TILED)
        self.assertEqual(overview_of(rows, styles).baseline, "full (kernel tiled)")


class Searched(InOverview):
    def line(self, variant: str, rival: str, **found: Any) -> dict[str, Any]:
        axes = "batch 1, heads 2, head_dim 64, mode forward, scope attention, causal false, threads 2"
        line = {"measure": "speed", "axes": axes, "variant": variant, "rival": f"full[kernel={rival}]", "from": 64, "to": 4096}
        return line | {"becomes": "less", "crossing": None, "low": None, "high": None, "outcome": ""} | found

    def test_all_show_the_crossings_that_the_search_found(self) -> None:
        """Never those that interpolation gives between the lengths that it measured."""
        answer = [
            self.line("linear", "materialized", crossing=111.0, low=110.0, high=112.0),
            self.line("linear", "tiled", crossing=234.0, low=230.0, high=238.0),
            self.line("truncated[window=16]", "tiled", becomes=None, outcome="faster at every length from 64 to 4096"),
            self.line("performer[features=64]", "tiled", low=2000.0, high=3000.0),
        ]
        head = fixture.header() | {"config": {"find": "crossing"}}
        crossing._asked.cache_clear()
        with mock.patch.object(crossing, "asked", return_value=answer) as asked:
            rows = self.rows(planted() + [time_row("full", MATERIALIZED, n) for n in LENGTHS], head)
            styles = Styles(rows)
            found = overview_of(rows, styles)
            (picture,) = crossings(rows, styles)
            told = list(speeds(Book(rows, styles), Tasks(Book(rows, styles))))
        self.assertEqual(asked.call_args.args[0], "table")
        self.assertTrue(found.is_searched)
        lines = {line.series.variant: line.time_from for line in found.lines}
        self.assertEqual((lines["linear"].text, lines["linear"].detail), ("234", "230–238"))
        self.assertEqual(lines["truncated"].text, "every length")
        self.assertEqual((lines["performer"].text, lines["performer"].value), ("at most 3,000", None))
        drawn = picture.data.set_index("variant")
        self.assertEqual((drawn.loc["linear", "crossing"], drawn.loc["linear", "faster_than_full_from"]), (234.0, "234"))
        self.assertTrue(math.isnan(drawn.loc["performer", "crossing"]))
        self.assertTrue(any("`linear` is faster than exact attention from 234 tokens on (95 % interval 230–238)" in s for s in told), told)
        self.assertTrue(any("`performer` is faster than exact attention from somewhere between 2,000 and 3,000" in s for s in told), told)

    def test_what_a_search_leaves_undecided_is_no_win(self) -> None:
        for words, text, detail in (
            ("faster from 1024 to 4096; undecided at 64, 256", "at most 1,024", "<64–1,024"),
            ("faster from 64 to 1024; undecided at 4096", "undecided", "64–4k"),
            ("faster from 64 to 4096; undecided at 7 lengths between 128 and 512", "undecided", "64–4k"),
            ("slower from 256 to 4096; undecided at 64", "never to 4k", ""),
            ("slower from 64 to 256; undecided at 1024, 4096", "undecided", "64–4k"),
            ("slower at every length from 64 to 4096", "never to 4k", ""),
            ("undecided: times differ by less than their uncertainty from 64 to 4096", "undecided", "64–4k"),
        ):
            answer = [self.line("linear", "tiled", becomes=None, outcome=words)]
            answer += [{**one, "measure": "memory", "becomes": "less", "crossing": 66.0, "low": 64.0, "high": 68.0} for one in answer]
            with mock.patch.object(crossing, "asked", return_value=answer):
                rows = self.rows(planted(), fixture.header() | {"config": {"find": "crossing"}})
                found = overview_of(rows, Styles(rows))
            (line,) = [line for line in found.lines if line.series.variant == "linear"]
            self.assertEqual((line.time_from.text, line.time_from.detail), (text, detail), words)
            self.assertEqual((line.memory_from.text, line.memory_from.detail), ("66", "64–68"))
            crossing._asked.cache_clear()

    def test_without_the_program_the_caption_says_so(self) -> None:
        head = fixture.header() | {"config": {"find": "crossing"}}
        crossing._asked.cache_clear()
        with mock.patch.object(crossing, "asked", side_effect=crossing.NoAnswer("not built")):
            rows = self.rows(planted(), head)
            (picture,) = crossings(rows, Styles(rows))
        self.assertIn("The search's own crossings are missing: rows.jsonl: not built.", picture.caption)


@BUILT
class AsTheProgram(unittest.TestCase):
    def test_the_reference_rows_give_the_numbers_of_the_tables(self) -> None:
        command = [program(), "table", REFERENCE, "--format", "md", "--color", "never"]
        said = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout
        closing = said[said.index("in short") :]
        table = [[c.strip() for c in line.strip().strip("|").split("|")] for line in closing.splitlines() if line.startswith("|")]
        heads, lines = table[0], {line[0].partition("[")[0]: line for line in table[2:]}
        rows = read_rows([REFERENCE])
        found = overview_of(rows, Styles(rows))
        compared = 0
        for line in found.lines:
            told = dict(zip(heads, lines[line.series.variant], strict=True))
            if ratio := told.get(f"time at {found.time_at}, full = 1"):
                self.assertEqual(f"{line.time.value:.3g}", ratio, line.series.variant)
                compared += 1
            if ratio := told.get(f"memory at {found.memory_at}, full = 1"):
                self.assertEqual(f"{line.memory.value / found.lines[0].memory.value:.3g}", ratio)
                compared += 1
            for task, answer in zip(found.tasks, line.scores, strict=True):
                head = next(h for h in heads if h.startswith(task.title))
                if answer.value is not None and "[" not in told[head]:
                    self.assertEqual(f"{answer.value:.3f}", told[head].partition(" ")[0])
                    compared += 1
        self.assertGreaterEqual(compared, 10)
