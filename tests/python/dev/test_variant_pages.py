"""The pages of variants: every number stands in a row, carries its marks, and is left out where the row may not be published."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from attnbench.plots.rows.units import seconds_text
from dev.site import catalogue, measured, table, variant_page
from dev.site.__main__ import main

from .. import fixture
from ..faults import ROOT, InFolder
from ..plots.probe_rows import cell

TRAITS = {"causal": True, "cross": False, "decode": True}
COST = {"length": 1024, "heads": 4, "head_dim": 64, "declared": True, "flops": 2.5e9, "bytes": 2048.0, "peak_bytes": None, "state_bytes": 65536.0}
HEAD = fixture.header()
HEAD["environment"]["kernel_instruction_set"] = "avx512"


def variant(name: str, **told: Any) -> catalogue.Variant:
    info = {
        "name": name, "family": "low rank", "summary": "rows < columns & `more`", "paper": "Vaswani et al. 2017, arXiv:1706.03762, eq. 1", "year": 2017,
        "traits": TRAITS, "promises": {"causal": "can hide the future", "decode": "answers from a state"}, "referenced": True, "cost_formula": "4·n²·d",
        "notes": ["<b>a note</b>"], "block": None, "weights": [], "gates": [], "cost": COST,
        "params": [{"name": "kernel", "type": "text", "default": "tiled", "range": "tiled, x", "help": "which"}],
        "checks": [{"name": "causality", "in_double": True}, {"name": "range", "in_double": False}],
    }  # fmt: skip
    code = f"// {name}: softmax(QKᵀ/√d)·V,\n// and exact. Time 4·n²·d.\n#include <cmath>\n// not the head\n"
    return catalogue.Variant(info | told, Path("variants/softmax") / f"{name}.cc", code)


EXACT = variant("full")


class Pages(InFolder):
    def rows(self, **files: list[dict[str, Any]]) -> measured.Measured:
        """Reads a repository with these rows, and a row of exact attention in each file that is not given."""
        folder = self.folder / measured.FOLDER
        folder.mkdir(parents=True)
        for name in measured.SPEEDS:
            fixture.write(folder / f"{name}.jsonl", files.get(name, [self.timed("full", 64, 1.0)]), HEAD)
        for name in measured.SCORES:
            fixture.write(folder / f"{name}.jsonl", files.get(name, [cell("full", "copy", 0.9)]))
        return measured.measured(self.folder)

    def timed(self, name: str, length: int, seconds: float, **more: Any) -> dict[str, Any]:
        samples = seconds * np.array([0.98, 1.0, 1.02, 0.98, 0.99, 1.0, 1.0, 1.01, 1.03])  # visits of three
        params = {"kernel": "tiled"} if name == "full" else {"rank": 8}
        axes = fixture.shape(length, more.get("mode", "forward"), "attention", more.get("causal", False))
        return fixture.timed(name, params, axes, samples, length)

    def test_the_head_of_the_source_is_what_it_computes(self) -> None:
        self.assertEqual(variant("full").head, "softmax(QKᵀ/√d)·V, and exact. Time 4·n²·d.")

    def test_text_is_escaped_and_numbers_of_arxiv_are_links(self) -> None:
        text = variant_page.page(variant("full"), EXACT, self.rows())
        self.assertIn("rows &lt; columns &amp; <code>more</code>", text)
        self.assertIn("&lt;b&gt;a note&lt;/b&gt;", text)
        self.assertIn('<a href="https://arxiv.org/abs/1706.03762">arXiv:1706.03762</a>', text)
        self.assertIn("#include &lt;cmath&gt;", text)

    def test_costs_parameters_and_checks_are_the_program_s(self) -> None:
        text = variant_page.page(variant("full"), EXACT, self.rows())
        for told in ("FLOPs: 2.5G", "bytes moved at least: 2 KiB", "above q, k and v: not known", "a state of 64 KiB at length 1024",
                     "<li>causality²</li>\n<li>range</li>", "2 checks apply to it", "<td><code>tiled</code></td>"):  # fmt: skip
            self.assertIn(told, text)
        counted = variant("other", cost=COST | {"declared": False}, traits=TRAITS | {"decode": False}, referenced=False)
        text = variant_page.page(variant("low", cost=COST | {"state_bytes": 4096.0}), EXACT, measured.measured(self.folder))
        self.assertIn("a state of 4 KiB at length 1024, 4 heads of 64, float32; exact attention keeps 64 KiB there.", text)
        text = variant_page.page(counted, EXACT, measured.measured(self.folder))
        for told in ("As the counters measured, for none is declared", "cannot answer token by token", "It declares no reference"):
            self.assertIn(told, text)

    def test_a_time_and_its_ratio_stand_in_a_row_with_its_mark(self) -> None:
        speeds = [self.timed("full", 64, 2e-3), self.timed("full", 256, 8e-3), self.timed("low", 64, 1e-3), self.timed("low", 256, 1e-3)]
        rows = self.rows(**{"performance-avx512": speeds})
        page = variant_page.page(variant("low"), EXACT, rows)
        (cells,) = re.findall(r"<tr><th scope=\"row\">forward</th><td class=\"number\">256</td>(.*?)</tr>", page)
        time, ratio, row = re.findall(r"<td[^>]*>(.*?)</td>", cells)
        self.assertEqual(time, seconds_text(1e-3) + "?")
        found = re.fullmatch(r"×([\d.]+) \(×([\d.]+) to ×([\d.]+)\)", ratio)
        self.assertIsNotNone(found, ratio)
        point, low, high = map(float, found.groups())
        self.assertAlmostEqual(point, 0.125, places=3)
        self.assertTrue(0.115 < low < 0.125 < high < 0.135, ratio)
        self.assertEqual(row, f"<code>{speeds[3]['cell']}</code>")
        self.assertIn("? answer not compared at this length", page)
        self.assertIn("measured on", page)
        self.assertIn(f"{HEAD['environment']['cpu_model']}, kernels for avx512", page)
        self.assertIn("with <code>rank=8</code>, which is not the default of today", page)
        self.assertIn("-v full -v &#x27;low[rank=8]&#x27; --measure speed --length 64,256 --mode forward --heads 4 --head-dim 64 --threads 2", page)
        told = table.page([variant("full"), variant("low"), variant("other")], self.at_64(rows))
        self.assertIn('data-value="0.5">×0.5?</td>', told)
        self.assertIn('data-value="">\u2013</td>', told)

    def at_64(self, rows: measured.Measured) -> measured.Measured:
        self.addCleanup(setattr, table, "LENGTH", table.LENGTH)
        table.LENGTH = 64
        return rows

    def test_without_a_row_there_is_no_number_but_a_sentence(self) -> None:
        text = variant_page.page(variant("low"), EXACT, self.rows())
        self.assertRegex(text, r"No row of .*performance-avx512\.jsonl.* or .*selection\.jsonl.* holds a time of it")
        self.assertIn("holds a score of it alone", text)
        self.assertNotIn("scripts/bench r", text)

    def test_a_row_without_a_time_tells_why(self) -> None:
        skipped = self.timed("low", 64, 1.0) | {"status": "skipped", "reason": "defined for causal attention alone", "metrics": None, "samples": None}
        text = variant_page.page(variant("low"), EXACT, self.rows(**{"performance-avx512": [self.timed("full", 64, 1.0), skipped]}))
        self.assertIn("performance-avx512.jsonl</a>: defined for causal attention alone.", text)
        self.assertNotIn("<code>" + skipped["cell"], text)

    def test_scores_are_those_of_settings_that_were_learned(self) -> None:
        learned = [cell("full", "copy", 0.9), cell("low", "copy", 0.81), cell("low", "copy", 0.83, seed=1), cell("full", "copy", 0.9, seed=1)]
        lost = [cell("full", "mqar", 0.2), cell("low", "mqar", 0.31)]
        text = variant_page.page(variant("low"), EXACT, self.rows(standard=[*learned, *lost]))
        self.assertRegex(text, r"<th scope=\"row\">copy\b.*?<td class=\"number\">0\.82 ± 0\.13</td>.*?<td class=\"number\">2</td>")
        self.assertNotIn("0.31", text)
        self.assertIn("mqar: full scores 0.200, and reached the bar of", text)
        self.assertIn(f"scripts/bench repro results/reference/standard.jsonl {learned[1]['cell']}", text)

    def test_a_training_that_was_cut_off_carries_its_mark(self) -> None:
        rows = [cell("full", "copy", 0.9), cell("low", "copy", 0.8)]
        rows[1]["metrics"]["ended_by"] = "steps"
        text = variant_page.page(variant("low"), EXACT, self.rows(standard=rows))
        self.assertRegex(text, r"0\.80†")
        self.assertIn("† training cut off by its steps", text)


class Programs(InFolder):
    def program(self, answer: str, code: int = 0) -> None:
        """A program that prints this; its place is told by $ATTNBENCH_PROGRAM."""
        path = self.folder / "attnbench"
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
        path.chmod(0o755)
        patch = mock.patch.dict("os.environ", {"ATTNBENCH_PROGRAM": str(path)})
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_program_that_is_absent_old_or_broken_is_told_in_one_line(self) -> None:
        with mock.patch.dict("os.environ", {"ATTNBENCH_PROGRAM": "/nowhere/attnbench"}), self.assertRaisesRegex(catalogue.NoProgram, "is not built"):
            catalogue.variants(ROOT)
        self.program('{"variants": [{"name": "full"}], "name": "full"}')
        with self.assertRaisesRegex(catalogue.NoProgram, "is of other sources than these, by what it tells of full"):
            catalogue.variants(ROOT)
        self.program("", 2)
        with self.assertRaisesRegex(catalogue.NoProgram, "list variants --json' ended with 2"):
            catalogue.variants(ROOT)
        with mock.patch("dev.site.__main__.document", return_value=""), mock.patch("sys.stderr", new_callable=io.StringIO) as said:
            self.assertEqual(main(ROOT, self.folder / "site"), 2)
        self.assertRegex(said.getvalue(), r"\Asite: '.*/attnbench list variants --json' ended with 2: \n\Z")
