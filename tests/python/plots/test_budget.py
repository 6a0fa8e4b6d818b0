"""Fidelity: the picture of error against budget (which variants a panel shows, its points and its bound), and
rows on what a model reads by the real program, with their pictures."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from attnbench.plots.gallery import draw_all
from attnbench.plots.kinds.budget import BOUND, BUDGETS, budget
from attnbench.plots.kinds.fidelity import fidelity
from attnbench.plots.layout.page import Picture
from attnbench.plots.rows.read import RowsError
from attnbench.plots.rows.read import read_rows as cells_of
from attnbench.plots.rows.style import Styles

from .. import fixture
from ..faults import BUILT, FaultCase, read_rows

WORDS = ["--measure", "fidelity", "--input", "initial,trained", "-t", "mqar[length=32,pairs=2,vocab=32]", "--batch", "2"]
TRAINING = ["--train", "steps=20,warmup=2,batch=8,width=32,validation_examples=16,test_examples=16"]


@BUILT
class Captured(FaultCase):
    def test_rows_tell_each_layer_and_can_be_repeated(self) -> None:
        done = self.run_program("run", "-v", "full", "-v", "truncated[window=4]", *WORDS, *TRAINING, "-o", self.rows_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = read_rows(self.rows_file)[1:]
        self.assertEqual(len(rows), 4)
        for row in rows:
            metrics = row["metrics"]
            self.assertEqual(len(metrics["layers"]), 2)
            self.assertEqual("model_test" in metrics, row["axes"]["input"] == "trained")
            exact = row["variant"]["name"] == "full"
            self.assertEqual(metrics["relative_error"] < 1e-5, exact)
            self.assertAlmostEqual(metrics["mass_kept"], 1 if exact else metrics["mass_kept"], 6)
            self.assertLess(metrics["layers"][0]["effective_rank"], 32)
        windows = [r["metrics"]["mass_kept"] for r in rows if r["variant"]["name"] == "truncated"]
        self.assertLess(max(windows), 0.9)
        again = self.run_program("repro", self.rows_file, rows[-1]["cell"])
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertIn("agrees", again.stdout)
        table = self.run_program("table", self.rows_file)
        self.assertIn("trained mqar", table.stdout)
        drawn = cells_of([Path(self.rows_file)])
        pictures = fidelity(drawn, Styles(drawn))
        self.assertEqual([p.name for p in pictures], ["fidelity-causal-mqar"])
        self.assertEqual(set(pictures[0].data["input"]), {"initial", "trained"})


FAMILIES = {
    "full": "exact", "truncated": "pattern", "topk": "selection", "clustered": "hashing or routing", "reformer": "hashing or routing", "linformer": "low rank",
    "oracle_rank": "control", "retention": "gated", "linear": "kernel",
}  # fmt: skip
# Keys read, rank and error of each parameterisation, at 64 keys.
SPENT: dict[str, list[tuple[float, float, float]]] = {
    "full": [(64, 64, 1e-7)],
    "truncated": [(8.5, 64, 0.5), (4.5, 63, 0.9)],
    "topk": [(4, 20, 0.4), (8, 60, 0.2), (16, 64, 0.1)],
    "clustered": [(64, 8, 0.6)],
    "reformer": [(2, 60, 0.6)],
    "linformer": [(64, 48, 0.8)],
    "oracle_rank": [(64, 4, 0.5), (64, 8, 0.25)],
    "retention": [(32, 60, 7.0)],
    "linear": [(64, 60, 0.7)],
}
MODELS = ("initial", "trained")


def cells(kind: str = "random", *, without: tuple[str, ...] = (), **axes: Any) -> list[dict[str, Any]]:
    """A cell for each parameterisation and each of two seeds, whose errors and keys are a tenth above and below."""
    out = []
    for name, each in SPENT.items():
        for size, (keys, rank, error) in enumerate(each):
            for seed, factor in ((0, 0.9), (1, 1.1)):
                every = {"length": 64, "batch": 1, "heads": 2, "head_dim": 32, "causal": False, "threads": 1, "seed": seed,
                         "input": kind, "input_scale": 1.0} | axes  # fmt: skip
                metrics = {"relative_error": factor * error, "cosine": 0.5, "weights_kl": None}
                metrics |= {"keys_read": factor * keys, "weights_rank": rank}
                task = {"name": "text", "params": {"length": 64}} if kind in MODELS else None
                if name not in without:
                    out.append(fixture.cell("fidelity", name, {"size": size}, every, task=task, metrics=metrics))
    return out


class Budgets(unittest.TestCase):
    def pictures(self, lines: list[dict[str, Any]], kind: str | None = None) -> list[Picture]:
        head = fixture.header() | {
            "variants": [{"name": n, "order": i, "family": f, "params": {}} for i, (n, f) in enumerate(FAMILIES.items())]
        }
        with tempfile.TemporaryDirectory() as folder:
            rows = cells_of([fixture.write(Path(folder, "rows.jsonl"), lines, head)])
        drawn = draw_all(rows, kind) if kind else budget(rows, Styles(rows))
        for picture in drawn:
            self.addCleanup(plt.close, picture.figure)
        return drawn

    def names(self, axes: Axes) -> set[str]:
        return {t.get_text().partition("\n")[0] for t in axes.texts}

    def test_a_row_of_panels_for_each_kind_of_inputs(self) -> None:
        lines = [*cells("random"), *cells("random", input_scale=2.0), *cells("trained"), *cells("initial"), *cells(causal=True)]
        whole, causal = self.pictures(lines, "budget")
        self.assertEqual((whole.name, causal.name), ("budget", "budget-causal"))
        titles = [axes.get_title(loc="left") for axes in whole.figure.axes]
        rows = ["random inputs, length 64, scale 1", "random inputs, length 64, scale 2",
                "model before training on text, length 64", "trained model on text, length 64"]  # fmt: skip
        each = ("keys of a pattern", "keys chosen by data", "low rank")
        self.assertEqual(titles, [told if told != each[0] else f"{row}\n{told}" for row in rows for told in each])
        self.assertEqual([a.get_xscale() + a.get_yscale() for a in whole.figure.axes], ["loglog"] * 12)
        self.assertEqual(len(causal.figure.axes), 3)
        self.assertEqual(["triangles" in p.caption for p in (whole, causal)], [False, True])
        self.assertEqual(set(whole.data["input"]), {"random", "initial", "trained"})
        self.assertEqual(len(whole.data), 4 * len(cells()))
        self.assertIn("commit 012345678", whole.caption)
        self.assertIn("means over 2 seeds", whole.caption)

    def test_panels_show_what_spends_their_budget(self) -> None:
        (picture,) = self.pictures(cells())
        pattern, chosen, rank = picture.figure.axes
        self.assertEqual(self.names(pattern), {"full", "truncated", "best k keys of"})
        self.assertEqual(self.names(chosen), {"full", "reformer", "best k keys of"})
        # clustered reads all keys; retention spends little of nothing
        self.assertEqual(self.names(rank), {"full", "linformer", "linear", "clustered", "best matrix of"})

    def test_points_are_means_over_seeds_joined_from_the_smallest_budget(self) -> None:
        (picture,) = self.pictures(cells())
        keys, chosen, rank = picture.figure.axes
        lines = [[tuple(round(float(v), 6) for v in p) for p in line.get_xydata()] for line in keys.lines]
        self.assertIn([(4.5, 0.9), (8.5, 0.5)], lines)
        bold = [line for axes in (keys, chosen, rank) for line in axes.lines if line.get_linewidth() == BOUND["linewidth"]]
        self.assertEqual([[round(float(x), 6) for x in line.get_xdata()] for line in bold], [[4, 8, 16]] * 2 + [[4, 8]])
        self.assertEqual({line.get_color() for line in bold}, {BOUND["color"]})
        named = [t for axes in (keys, chosen, rank) for t in axes.texts if t.get_text().startswith("best")]
        self.assertEqual([t.get_color() for t in named], [BOUND["color"]] * 3)
        floor = keys.get_ylim()[0]
        self.assertIn([(64, round(floor, 6))], lines)  # exact attention on the lower edge
        self.assertEqual(floor, rank.get_ylim()[0])
        self.assertEqual(keys.get_xlim(), chosen.get_xlim())

    def test_without_the_best_of_a_budget_there_is_no_picture(self) -> None:
        self.assertEqual(self.pictures(cells(without=tuple(b.bound for b in BUDGETS))), [])

    def test_a_column_without_two_points_is_left_out(self) -> None:
        (picture,) = self.pictures(cells(without=("topk", "reformer")))
        self.assertEqual([axes.get_title(loc="left").rpartition("\n")[2] for axes in picture.figure.axes], ["keys of a pattern", "low rank"])

    def test_failures_are_named_and_skipped_mixers_are_not(self) -> None:
        lines = cells()
        for cell in lines:
            if cell["variant"]["name"] in ("truncated", "linformer"):
                cell |= {"status": "oom", "reason": "needs 9 GB", "metrics": None}
            if cell["variant"]["name"] == "retention":
                cell |= {"status": "skipped", "reason": "ignores keys", "metrics": None}
        (picture,) = self.pictures(lines)
        keys, _, rank = picture.figure.axes
        self.assertTrue(any("truncated" in t.get_text() and "oom" in t.get_text() for t in keys.texts))
        self.assertTrue(any("linformer" in t.get_text() and "oom" in t.get_text() for t in rank.texts))
        self.assertIn("needs 9 GB", picture.caption)
        self.assertNotIn("retention", picture.caption)

    def test_rows_of_before_have_no_budget(self) -> None:
        lines = cells()
        for cell in lines:
            del cell["metrics"]["keys_read"], cell["metrics"]["weights_rank"]
        self.assertEqual(self.pictures(lines), [])
        with self.assertRaisesRegex(RowsError, "hold nothing that it shows"):
            self.pictures(lines, "budget")

    def test_rows_of_long_sequences_have_no_rank(self) -> None:
        lines = cells()
        for cell in lines:
            del cell["metrics"]["weights_rank"]
        (picture,) = self.pictures(lines)
        self.assertEqual(len(picture.figure.axes), 2)
        self.assertIn("truncated", self.names(picture.figure.axes[0]))
