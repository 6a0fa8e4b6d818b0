"""Tasks that are not one label a sequence, from outside: rows, tables and samples of each kind."""

from __future__ import annotations

import json
import re

from ..faults import BUILT, InFolder, validator
from .test_cli import attnbench

SMALL = (
    "steps=4,width=16,heads=2,layers=1,feed_forward=16,warmup=0,eval_every=2,"
    "validation_examples=8,test_examples=16"
)
REVERSE = "reverse[length=6,min_length=5,symbols=16,train_examples=64]"
ADDING = "adding[length=8,train_examples=64]"
GRAPH = "graph[length=32,train_examples=64]"
INDUCTION = "induction[length=8,train_examples=64]"


@BUILT
class Kinds(InFolder):
    def sweep(self, variants: list[str], tasks: list[str], train: str = "", *more: str) -> tuple[list, str]:
        """Its cells, each valid, and what was printed."""
        command = ["run", "--measure", "accuracy", "-q", "-f", "-o", "rows.jsonl", "--ledger"]
        for variant in variants:
            command += ["-v", variant]
        for task in tasks:
            command += ["-t", task]
        done = attnbench(*command, "--train", SMALL + train, *more, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in (self.folder / "rows.jsonl").read_text().splitlines()]
        for row in rows:
            validator().validate(row)
        return rows[1:], done.stdout

    def test_an_output_sequence_is_decoded_and_its_row_says_where_the_variant_stands(self) -> None:
        rows, printed = self.sweep(["full", "truncated[window=2]", "linformer[rank=4]"], [REVERSE])
        places = {row["variant"]["name"]: row["metrics"]["places"] for row in rows}
        self.assertEqual(places["full"], ["encoder", "decoder", "cross"])
        self.assertEqual(places["truncated"], ["encoder", "decoder"])
        self.assertNotIn("decoder", places["linformer"])
        for row in rows:
            metrics = row["metrics"]
            self.assertEqual(metrics["metric"], "exact_match")
            self.assertGreaterEqual(metrics["token_accuracy"], metrics["test"])
            if "decoder" not in metrics["places"] or metrics["decoding"] is None:
                continue
            decoding = metrics["decoding"]
            self.assertEqual(decoding["same"], 1)
            ratio = decoding["tokens_per_s"] / decoding["recompute_tokens_per_s"]
            self.assertAlmostEqual(decoding["speedup"] / ratio, 1, places=6)
        self.assertRegex(printed, r"reverse\S*, exact match")
        self.assertIn("left out: reverse", printed)
        only = self.sweep(["truncated[window=2]", "linformer[rank=4]"], [REVERSE])[1]
        self.assertIn("full stands in", only)
        self.assertRegex(only, r"truncated\[window=2\], positions learned, seed 0 .* cross ")

    def test_of_an_error_less_is_better(self) -> None:
        rows, printed = self.sweep(["full"], [ADDING, INDUCTION])
        by_task = {row["task"]["name"]: row["metrics"] for row in rows}
        adding = by_task["adding"]
        self.assertEqual(adding["metric"], "mean_squared_error")
        self.assertIsNone(adding["lift"], "it is a control")
        curve = next(row["samples"] for row in rows if row["task"]["name"] == "adding")
        self.assertEqual(adding["validation"], min(point["validation"] for point in curve))
        self.assertIsNone(adding["state_bytes"], "it is not causal")
        induction = by_task["induction"]
        self.assertAlmostEqual(
            induction["lift"], induction["test"] - max(induction["shortcuts"].values())
        )
        self.assertEqual(induction["state_bytes"], 2 * 8 * 16 * 4, "keys and values, one layer")
        self.assertRegex(printed, r"adding\S*, mean squared error")
        best = min(adding["shortcuts"].values())
        self.assertRegex(printed, rf"best shortcut +.*{best:.3f} ")

    def test_longer_tests_stand_in_the_same_row(self) -> None:
        rows, printed = self.sweep(["linear"], [INDUCTION], ",stretch=4,positions=sinusoidal")
        lengths = rows[0]["metrics"]["by_length"]
        self.assertEqual([at["length"] for at in lengths], [8, 16, 32])
        self.assertEqual(lengths[0]["test"], rows[0]["metrics"]["test"])
        self.assertTrue(all(at["reason"] is None for at in lengths))
        self.assertIn("8 (x1)", printed)
        rows, printed = self.sweep(["linear"], [INDUCTION], ",stretch=4")
        lengths = rows[0]["metrics"]["by_length"]
        self.assertIsNone(lengths[1]["test"])
        self.assertIn("learned positions end at the training length", printed)

    def test_the_same_weights_on_other_lengths_of_the_task(self) -> None:
        on = ["--test-on", "length=[16,32]"]
        rows, printed = self.sweep(["linear"], [INDUCTION], ",positions=[rotary,learned]", *on)
        scores = {row["training"]["positions"]: row["metrics"]["by_task"] for row in rows}
        self.assertEqual([at["length"] for at in scores["rotary"]], [16, 32])
        self.assertTrue(all(0 <= at["test"] <= 1 and at["chance"] > 0 for at in scores["rotary"]))
        ends = "learned positions end at the training length"
        self.assertEqual([(at["test"], at["reason"]) for at in scores["learned"]], [(None, ends)] * 2)
        for row in rows:
            self.assertEqual([p["length"] for p in row["test_on"]], [16, 32])
        self.assertRegex(printed, r"linear, positions rotary, seed 0 +length=32 +0\.\d{3}† ")
        self.assertIn(f"linear, positions learned, seed 0, length=16 skipped: {ends}", printed)

    def test_reach_is_a_measure_of_its_own(self) -> None:
        command = "run --measure reach -v full -v truncated[window=3] --length 24 --heads 1 --head-dim 8 --causal true"
        done = attnbench(*command.split(), "--layers", "1,2", "-q", "-o", "rows.jsonl", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in (self.folder / "rows.jsonl").read_text().splitlines()][1:]
        for row in rows:
            validator().validate(row)
        reached = {(r["variant"]["name"], r["axes"]["layers"]): r["metrics"]["perturbation"]["past"] for r in rows}
        self.assertEqual(reached, {("full", 1): 23, ("full", 2): 23, ("truncated", 1): 3, ("truncated", 2): 6})
        self.assertRegex(done.stdout, r"truncated\[window=3\] +-3 \+0 +-6 \+0\n")
        done = attnbench("run", "-v", "full", "-t", INDUCTION, "--layers", "2", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("axis layers=2 does not apply to measure accuracy; of training it is a setting: --train layers=2", done.stderr)

    def test_edges_reach_only_who_takes_them(self) -> None:
        rows, printed = self.sweep(["full", "linear"], [GRAPH])
        by_variant = {row["variant"]["name"]: row for row in rows}
        self.assertEqual(by_variant["full"]["status"], "ok")
        self.assertEqual(by_variant["linear"]["status"], "skipped")
        self.assertIn("cannot attend along", by_variant["linear"]["reason"])

    def test_the_ledger_says_what_each_variant_was_given(self) -> None:
        rows, printed = self.sweep(["full", "linear"], [INDUCTION])
        for row in rows:
            ledger = row["ledger"]
            self.assertEqual(ledger["parameters"], row["metrics"]["parameters"])
            self.assertEqual((ledger["precision"], ledger["threads"]), ("float32", 1))
            self.assertIn(ledger["loops"], ("avx512", "avx2", "avx", "sse4.2", "sse2", "neon", "scalar"))
            # Forward and backward of 8 positions through one layer of width 16, at least the
            # projections and the feed-forward: 3 · 2 · 8 · (4 · 16² + 2 · 16 · 16).
            self.assertGreater(ledger["flops"], 3 * 2 * 8 * 6 * 16 * 16)
            self.assertLess(ledger["flops"], 10 * 3 * 2 * 8 * 6 * 16 * 16)
        self.assertIn("parity ledger", printed)
        self.assertRegex(printed, r"accuracy +induction\S* +linear +[0-9.]+ k +training, an example")
        self.assertIn("not one function: exact softmax attention is full", printed)
        rows, printed = self.sweep(["linear"], [INDUCTION])
        self.assertNotIn("not one function", printed)

    def test_tables_say_where_a_name_misleads(self) -> None:
        names = ["full", "truncated[window=[60,64]]", "local[as=[paper,lra],look_back=[0,2]]"]
        variants = [word for name in [*names, "sparse[as=lra,summary=5]"] for word in ("-v", name)]
        axes = "--measure speed --length 64 --causal false --heads 1 --head-dim 8 --repetitions 1"
        done = attnbench("run", *variants, *axes.split(), "-q", "-f", "-o", "r", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        complete = re.findall(r"(\S+) sees every position at length 64", done.stdout)
        self.assertEqual(sorted(complete), ["local", "local[look_back=2]", "truncated"])
        self.assertIn("sparse[as=lra,summary=5] hides the future, though causal is", done.stdout)
        rows = [json.loads(line) for line in (self.folder / "r").read_text().splitlines()]
        local = [row for row in rows[1:] if row["variant"]["name"] == "local"]
        self.assertEqual(len(local), 3, "as=lra has no look_back")

    def test_samples_hold_all_that_a_model_is_given(self) -> None:
        def first(task: str) -> dict:
            done = attnbench("sample", task, "--count", "1", "-o", "-", cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)

        adding = first(ADDING)
        marked = [u for u, marker in zip(adding["values"][::2], adding["values"][1::2]) if marker]
        self.assertEqual(len(marked), 2)
        self.assertAlmostEqual(adding["target"], sum(marked), places=5)
        reverse = first(REVERSE)
        self.assertEqual(len(reverse["target"]), len(reverse["tokens"]))
        graph = first(GRAPH)
        self.assertTrue(all(0 <= a < 32 and 0 <= b < 32 for a, b in graph["edges"]))
        self.assertEqual(graph["edges"], sorted(graph["edges"]))
