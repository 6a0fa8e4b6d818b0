"""results/findings.md of scripts/reproduce on planted rows: each section, and that its lines name their rows."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.settings import spec_among
from attnbench.reproduce import findings
from attnbench.reproduce.entries import FOLDER, read_entry
from attnbench.reproduce.page import judge
from attnbench.reproduce.product import Product

from .test_reproduce_verdicts import PROGRAM, planting


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
class FindingsPage(unittest.TestCase):
    KINDS = {"R7": "disagrees", "R8": "agrees", "R14": "noisy", "R15": "agrees", "R18": "agrees", "R19": "agrees", "R26": "disagrees", "R27": "disagrees"}

    @classmethod
    def setUpClass(cls) -> None:
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        folder = Path(held.name)
        for name, kind in cls.KINDS.items():
            planting(name)(folder / name, kind)
        entries = [read_entry(FOLDER / name) for name in (*cls.KINDS, "R20")]  # R20 has no rows
        found = [judge(entry, folder / entry.id, Product()) for entry in entries]
        text = findings.text_of(found, Product(), folder, folder / "findings.md")
        cls.sections = {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}

    def lines(self, section: str, *wanted: str) -> list[str]:
        return [line for line in self.sections[section].splitlines() if all(word in line for word in wanted)]

    def test_outcomes_name_each_entry_once(self) -> None:
        for name in (*self.KINDS, "R20"):
            self.assertEqual(len(self.lines("Outcomes", f"[{name}, ")), 1, name)
        self.assertIn("[R20, ", self.lines("Outcomes", "**not measured yet** (1)")[0])
        self.assertIn("[R7, ", self.lines("Outcomes", "**disagrees** (3)")[0])

    def test_what_fails_and_what_is_open_link_their_rows(self) -> None:
        failing = self.lines("Findings that fail", "[R7]", "saving in training at 4096")
        self.assertEqual(len(failing), 1)
        self.assertIn("[memory](R7/memory.jsonl)", failing[0])
        self.assertFalse(self.lines("Findings that fail", "[R8]"))
        self.assertTrue(self.lines("Findings that the rows do not decide", "[R14]", "(R14/steps.jsonl)"))

    def test_the_baseline_s_part_of_a_speed_up(self) -> None:
        """Planted: linformer takes 1e-6·n, either form of exact attention 2e-9·n²: 32.8 at 16384, all of it the variant's."""
        found = self.lines("Which speed-ups are the baseline's", "[R15]", "`linformer`", "| attention |")
        self.assertEqual(len(found), 1)
        cells = [cell.strip().partition(" [") for cell in found[0].split("|")[5:8]]
        for (figure, _, interval), expected in zip(cells, (32.8, 32.8, 1.0)):
            self.assertAlmostEqual(float(figure) / expected, 1, delta=0.05)
            self.assertTrue(interval)

    def test_cells_of_one_variant_are_told_apart(self) -> None:
        """R15 measures linformer at two ranks: two lines of one name would contradict each other."""
        cells = [c for c in read_rows([FOLDER / "R15" / "saving.jsonl"]).cells if c.measure == "speed" and c.length == 16384]
        own = [c for c in cells if c.variant == "linformer" and c.axes["scope"] == "attention"]
        names = [spec_among(c.variant, c.params, own) for c in own]
        self.assertEqual(sorted(names), ["linformer[rank=128]", "linformer[rank=256]"])
        self.assertEqual(spec_among(own[0].variant, own[0].params, own[:1]), "linformer")

    def test_lengths_and_what_lies_beyond(self) -> None:
        title = "From which length on each variant takes less"
        for variant, word, length in (("performer", "time", 600), ("local", "time", 1800), ("performer", "memory", 80)):
            line = self.lines(title, "[R19]", f"`{variant}`", f"| {word} |")
            self.assertEqual(len(line), 1, (variant, word))
            for cell in line[0].split("|")[4:6]:
                self.assertAlmostEqual(float(cell.split()[0]) / length, 1, delta=0.3)
        self.assertTrue(self.lines(title, "[R18]", "`linear`", "time, decoding"))

    def test_listops_lists_predictors_and_models_by_score(self) -> None:
        scores = [float(line.split("|")[2].split()[0]) for line in self.lines("Where Long Range Arena's ListOps scores lie", "| published |")]
        self.assertEqual(scores, sorted(scores))
        self.assertGreater(len(scores), 8)
        self.assertEqual(len(self.lines("Where Long Range Arena's ListOps scores lie", "without any nested operator")), 3)

    def test_mechanisms_of_long_range_arena(self) -> None:
        line = self.lines("Whether Long Range Arena's ranking is one of mechanisms", "`local`")
        self.assertEqual(len(line), 1)
        self.assertIn("| another | [both](R27/both.jsonl) |", line[0])

    def test_recall_is_of_the_reference_rows(self) -> None:
        """By hand from these rows: linear attention keeps 16896 bytes, and the rate 1e-3 or 3e-3 that is better on validation counts."""
        line = self.lines("Recall against bytes of state", "mqar", "`linear`", "[standard](")
        self.assertEqual(len(line), 1)
        cells = read_rows([findings.REFERENCE / "standard.jsonl"]).cells
        own = [c for c in cells if (c.task, c.variant, c.measure) == ("mqar", "linear", "accuracy")]
        by: dict[float, list[Cell]] = {}
        for cell in own:
            by.setdefault(cell.training["learning_rate"], []).append(cell)
        best = max(by.values(), key=lambda of: sum(c.metrics["validation"] for c in of))
        mean = sum(c.metrics["test"] for c in best) / len(best)
        tasks = {row.split("|")[1].partition(",")[0].strip() for row in self.lines("Recall against bytes of state", ".jsonl)")}
        self.assertLessEqual(tasks, set(findings.TASKS))
        found = [part.strip() for part in line[0].split("|")]
        self.assertEqual((found[3], found[5]), ("16896", str(len(best))))
        self.assertEqual(found[4].partition(" ")[0], f"{mean:.3g}")

    def test_the_sweep_of_recall_has_every_variant_that_decodes(self) -> None:
        listed = json.loads(subprocess.run([PROGRAM, "list", "--json"], capture_output=True, text=True, check=True).stdout)
        plan = [PROGRAM, "run", findings.REFERENCE / "recall.toml", "--dry-run", "-o", "-", "--format", "json"]
        planned = json.loads(subprocess.run(plan, capture_output=True, text=True, check=True).stdout)
        decode = {v["name"] for v in listed["variants"] if v["traits"]["decode"]}
        self.assertEqual({cell["variant"]["name"] for cell in planned if not cell["skipped"]}, decode)

    def test_recall_without_rows_says_so(self) -> None:
        self.assertEqual(findings.recall_lines(Path(), [Path("no such.jsonl")]), [])


class TheFindingsPage(unittest.TestCase):
    def test_every_line_names_rows_that_are_there(self) -> None:
        sections = findings.PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
        self.assertGreater(len(sections), 7)
        for section in sections:
            title, _, text = section.partition("\n")
            lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
            unlinked = [line for line in lines if ".jsonl)" not in line]
            if "\nRows: [" in text:  # of all lines
                unlinked = []
            self.assertEqual(unlinked, [], title)
            for path in re.findall(r"\(([^)]*\.jsonl)\)", text):
                self.assertTrue((findings.PAGE.parent / path).exists(), path)


if __name__ == "__main__":
    unittest.main()
