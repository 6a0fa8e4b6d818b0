"""results/findings.md of scripts/reproduce on planted rows, and the verdict of every entry on planted rows:
laws that agree, that disagree, and rows too noisy to say."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.settings import spec_among
from attnbench.reproduce import findings
from attnbench.reproduce.entries import FOLDER, entry_ids, read_entry
from attnbench.reproduce.evidence import judged
from attnbench.reproduce.judging import Outcome, Verdict
from attnbench.reproduce.page import judge
from attnbench.reproduce.product import Product

from ..faults import BUILT, PROGRAM
from . import planted, planted_runs

Row = dict[str, Any]
Planting = Callable[[Path, str], None]  # into a folder, of one of the kinds
KINDS = {"agrees": Outcome.agrees, "disagrees": Outcome.disagrees, "noisy": Outcome.undecided}
# What fails there is the machine's or the program's: times and bytes of one program over those of another.
OF_MACHINE = {"R19", "R20"}


def planting(name: str) -> Planting:
    """The function r7 of entry R7."""
    return next(getattr(of, name.lower()) for of in (planted, planted_runs) if hasattr(of, name.lower()))


@BUILT
class Verdicts(unittest.TestCase):
    def verdict(self, name: str, kind: str) -> Verdict:
        with tempfile.TemporaryDirectory() as held:
            planting(name)(Path(held), kind)
            return judged(read_entry(FOLDER / name), Path(held), Product())

    def test_outcomes(self) -> None:
        for name in entry_ids():
            for kind, expected in KINDS.items():
                if name in OF_MACHINE and kind == "disagrees":
                    expected = Outcome.hardware
                with self.subTest(entry=name, kind=kind):
                    found = self.verdict(name, kind)
                    told = [(f.state.value, f.what, f.found) for f in found.findings]
                    self.assertEqual(found.outcome, expected, f"{found.why}\n{told}")
                    self.assertGreater(len(found.why), 20)

    def disagrees(self, name: str, file: str, change: Callable[[Row], None], more: Callable[[list[Row]], list[Row]] = list,
                  outcome: Outcome = Outcome.disagrees) -> None:  # fmt: skip
        """Rows that agree no longer do where `change` was at each of them, and `more` at all."""
        with tempfile.TemporaryDirectory() as held:
            planting(name)(Path(held), "agrees")
            path = Path(held) / f"{file}.jsonl"
            head, *rows = map(json.loads, path.read_text().splitlines())
            for row in rows:
                change(row)
            path.write_text("".join(json.dumps(row) + "\n" for row in (head, *more(rows))))
            found = judged(read_entry(FOLDER / name), Path(held), Product())
        self.assertEqual(found.outcome, outcome, [(f.state.value, f.what, f.found) for f in found.findings])

    def test_hashing_that_looks_at_all_keys_does_not_agree(self) -> None:
        self.disagrees("R8", "hashing", lambda row: row.update(seen=1.0))

    def test_the_strength_of_the_delta_rule_is_not_chosen_on_the_draws_that_test_it(self) -> None:
        def change(row: Row) -> None:  # 1/4 is best where it is chosen, 1 where it is tested
            if (row["keys"], row["rule"], row["times"]) == ("random", "delta rule", "re-bound"):
                row["accuracy"] = 0.95 if (row["strength"] == 1) is row["testing"] else 0.2

        self.disagrees("R9", "recall", change)

    def test_of_several_draws_the_form_that_is_farthest_off_counts(self) -> None:
        def more(rows: list[Row]) -> list[Row]:
            wrong = next(r for r in rows if (r["of"], r.get("form"), r.get("type")) == ("forms", "parallel", "float64"))
            return [{**wrong, "difference": 0.1}, *({**r, "seed": 1} if r is wrong else r for r in rows)]

        self.disagrees("R10", "forms", lambda row: None, more)

    def test_one_doubling_of_the_landmarks_that_errs_more_disagrees(self) -> None:
        def change(row: Row) -> None:
            if (row["of"], row.get("landmarks"), row.get("iterations")) == ("outputs", 128, 6):
                row["error"] *= 10

        self.disagrees("R11", "landmarks", change)

    def test_outputs_of_a_fixed_span_that_change_disagree(self) -> None:
        def change(row: Row) -> None:
            if row["variant"] == "cosformer[span=2048]" and row["seed"] == 7 and row["length"] == 256:
                row["change"] = 0.1

        self.disagrees("R12", "prefix", change)

    def test_a_saving_of_memory_that_does_not_grow_disagrees(self) -> None:
        def change(row: Row) -> None:
            if (row["measure"], row["variant"]["name"]) == ("memory", "full"):
                row["metrics"]["peak_bytes"] = 60_000 * row["axes"]["length"]

        self.disagrees("R15", "saving", change)

    def test_a_cache_that_takes_little_of_the_factor_disagrees(self) -> None:
        def change(row: Row) -> None:  # a pass anew takes hardly more than a step with a cache
            if row["axes"]["mode"] == "forward":
                factor = 1.2 * (1e-6 + 1e-8 * row["axes"]["length"]) / row["metrics"]["time_s"]["median"]
                row["samples"] = [factor * s for s in row["samples"]]
                row["metrics"]["time_s"] = {k: v if k == "n" else factor * v for k, v in row["metrics"]["time_s"].items()}

        self.disagrees("R18", "tokens", change)

    def test_scores_of_other_seeds_are_no_pairs(self) -> None:
        def change(row: Row) -> None:
            if row["axes"]["seed"] == 2 and row["variant"]["name"] == "truncated":
                row["axes"]["seed"] = 7

        self.disagrees("R30", "frames", change, outcome=Outcome.undecided)

    def test_losses_are_those_of_the_end_of_the_curve(self) -> None:
        def change(row: Row) -> None:
            for point in row["samples"] if row["variant"]["name"] == "linear" else ():
                point["train_loss"] = 5.0 if point["step"] > 15 else point["train_loss"]

        self.disagrees("R23", "copy", change)

    def test_a_crossing_that_nothing_decides_is_unclear_and_not_left_out(self) -> None:
        self.assertEqual(len(self.verdict("R20", "noisy").findings), len(self.verdict("R20", "agrees").findings))

    def test_what_agrees_has_a_picture(self) -> None:
        for name in entry_ids():
            with self.subTest(entry=name), tempfile.TemporaryDirectory() as held:
                planting(name)(Path(held), "agrees")
                picture = judge(read_entry(FOLDER / name), Path(held), Product()).picture
                assert picture is not None and picture.figure is not None
                picture.figure.draw_without_rendering()
                wide = picture.figure.bbox.width
                outside = [t.get_text() for t in picture.figure.texts if t.get_window_extent().x1 > wide]
                self.assertEqual(outside, [])
                self.assertIn("commit 012345678", picture.caption)
                self.assertFalse(picture.data["value"].isna().any())


@BUILT
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

    def test_intervals_of_recall_end_at_the_limits_of_an_accuracy(self) -> None:
        told = [line[3] for line in findings.recall_lines(findings.PAGE.parent)]
        self.assertIn("0.773 [0.511, 1]\u2020", told)
        ends = [float(end) for entry in told for end in re.findall(r"[\[ ](-?[\d.]+)[,\]]", entry)]
        self.assertGreater(len(ends), 20)
        self.assertTrue(all(0 <= end <= 1 for end in ends), ends)

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
