"""The page of decoding, on made-up rows whose numbers follow from formulas."""

from __future__ import annotations

import tempfile
import tomllib
import unittest
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnbench._place import ROOT
from attnbench.plots.rows.kept import share_of
from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.settings import RUN
from dev.pages import decode_choice, decode_tables, documents

from .. import decoding_rows as made
from ..fixture import cell

TAKES = "takes 8.39 ms a token and keeps 8 MiB"
CHOSEN = "of caches of the same weights, `full[evict=h2o]`, 1/4 of the positions with least time and fewest bytes, 2.1 ms (0.25 of its time) and 2 MiB"


class OnRows(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)

    def rows(self, cells: list[dict[str, Any]] | None = None) -> Path:
        return made.written(self.folder / "times.jsonl", made.time_cells() if cells is None else cells)

    def scores(self, *unfinished: str) -> Path:
        return made.written(self.folder / "scores.jsonl", made.score_cells(unfinished))

    def lines(self, table: str) -> list[list[str]]:
        return [[word.strip() for word in line.strip("|").split("|")] for line in table.splitlines()[2:] if line.startswith("|")]


class Tables(OnRows):
    def test_types_stand_beside_float32_what_is_asked_and_the_floor(self) -> None:
        first, _, third, _, long = self.lines(decode_tables.types(self.rows()))[:5]
        # 8 MiB fit the last cache: over the best witness, 60 GB/s, 140 us of 8.39 ms.
        self.assertEqual(first, ["4k", "`float32`", "8.39 ms ±1 %", "—", "—", "8 MiB", "—", "—", "140 µs, L3", "0.02"])
        self.assertEqual(third, ["", "`int8`", "2.1 ms ±1 %", "0.25", "≤ 0.35", "2 MiB", "0.250", "≤ 0.28", "35 µs, L3", "0.02"])
        # 32 MiB do not fit beside what is read besides: over 20 GB/s from memory, 1.68 ms of 33.6 ms.
        self.assertEqual(long[8:], ["1.68 ms, memory", "0.05"])

    def test_a_line_of_states_has_times_bytes_and_the_scores_of_its_share(self) -> None:
        table = self.lines(decode_tables.states(self.rows(), self.scores()))
        by = {line[0]: line[1:] for line in table}
        self.assertEqual(list(by)[:2], ["`full`, 8 query heads over 8", "`full`, 8 query heads over 2"])
        self.assertEqual(by["`full`, 8 query heads over 8"][0], "33.6 ms ±1 %, 4.00")
        self.assertEqual(by["`full`, 8 query heads over 8"][2], "32 MiB / 128 MiB")
        self.assertEqual(by["`full`, 8 query heads over 2"][-2:], ["0.99 ± 0.00"] * 2, "of one head of keys for four of queries: shared alike")
        self.assertEqual(by["`full[evict=h2o]`, 1/4 of the positions"][1:], ["8.39 ms ±1 %, 0.25", "2 MiB / 8 MiB", "0.98 ± 0.00§", "0.98 ± 0.00§"])
        self.assertEqual(by["`full[evict=h2o]`, 1/16 of the positions"][-2:], ["0.60 ± 0.00§"] * 2)
        self.assertEqual(by["`truncated`, a window of 1/8"][-2:], ["0.40 ± 0.00§"] * 2)

    def test_a_share_of_the_positions_so_far_has_no_score_of_a_number_of_them(self) -> None:
        growing = [made.token("full", made.FULL | {"evict": "h2o", "budget": 0.25, "when": "always"}, n, 4096.0) for n in made.LENGTHS]
        by = {line[0]: line[1:] for line in self.lines(decode_tables.states(self.rows(made.time_cells() + growing), self.scores()))}
        self.assertEqual(by["`full[evict=h2o]`, 1/4 of the positions so far"][-2:], ["—", "—"])
        self.assertEqual(by["`full[evict=h2o]`, 1/4 of the positions"][-2:], ["0.98 ± 0.00§"] * 2)

    def test_a_share_of_the_keys_has_the_score_of_as_large_a_one(self) -> None:
        keys = [made.token("topk", {"keys": n // 8}, n, 4096.0) for n in made.LENGTHS]
        scores = [made.score_cell(task, "topk", {"keys": 8}, 0.9, seed, 4096) for task in made.TASKS for seed in made.SEEDS]
        path = made.written(self.folder / "keys.jsonl", made.score_cells() + scores)
        by = {line[0]: line[1:] for line in self.lines(decode_tables.states(self.rows(made.time_cells() + keys), path))}
        self.assertEqual(by["`topk`, 1/8 of the keys"][-2:], ["0.90 ± 0.00§"] * 2)

    def test_a_ratio_of_times_whose_intervals_meet_is_undecided(self) -> None:
        cells = made.time_cells()
        for row in cells:
            if row["axes"].get("kv_dtype") == "int8" and row["axes"]["length"] == 4096:
                row["metrics"]["time_s"]["ci_high"] = 1.0
        table = self.lines(decode_tables.types(self.rows(cells)))
        self.assertEqual([line[3] for line in table if line[1] == "`int8`"], ["0.25 (undecided)", "0.25"])

    def test_errors_stand_by_type_and_length(self) -> None:
        def error(kv_dtype: str, n: int, of: float) -> dict[str, Any]:
            axes = {"length": n, "batch": 1, "heads": 8, "head_dim": 128, "causal": True, "seed": 0, "inputs": "random", "kv_dtype": kv_dtype}
            return cell("fidelity", "full", made.FULL, axes, metrics={"relative_error": of, "weights_kl": of / 1e3, "cosine": 1.0, "flops": 1.0})

        cells = [error("int4", 64, 0.08), error("int4", 128, 0.09), error("int8", 128, 5e-6)]
        found = self.lines(decode_tables.errors(made.written(self.folder / "errors.jsonl", cells)))
        self.assertEqual(found, [["`int8`", "—", "5.0e-06", "—", "0"], ["`int4`", "8.0e-02", "9.0e-02", "8.0e-05", "9.0e-05"]])

    def test_windows_are_shares_in_rows_of_several_runs_too(self) -> None:
        """Where runs would give a cell twice, its parameters hold the name of the run."""
        cell = next(c for c in read_rows([self.rows()]).of("speed") if c.variant == "truncated")
        self.assertEqual(share_of(replace(cell, params=((RUN, "decoding 1"), *cell.params))), 1 / 8)

    def test_the_number_of_seeds_is_told_where_there_are_few(self) -> None:
        scores = [c for c in made.score_cells() if c["variant"]["name"] != "truncated" or c["axes"]["seed"] == 0]
        path = made.written(self.folder / "few.jsonl", scores)
        by = {line[0]: line[1:] for line in self.lines(decode_tables.states(self.rows(), path))}
        self.assertTrue(by["`truncated`, a window of 1/8"][-1].endswith("§ (1 seed)"), by)
        self.assertNotIn("seed", by["`gated_deltanet`"][-1])

    def test_the_rate_of_a_cache_is_of_the_cells_own_run(self) -> None:
        rows = read_rows([self.rows()])
        (cell, *_) = (c for c in rows.of("speed") if c.length == 4096 and c.axes["threads"] == 1)
        strange = replace(cell, run="another", witness={"copy_bytes_per_s": [1e15]})
        self.assertEqual(decode_tables.copy_of(cell, replace(rows, cells=[*rows.cells, strange])), (cell.metric("bytes") / 60e9, "L3"))

    def test_a_ratio_whose_interval_holds_one_is_undecided(self) -> None:
        told = {}
        for low, high in ((2.4, 2.6), (0.9, 2.6)):
            row = made.packed_cell()
            row["metrics"]["packed"] |= {"speedup_ci_low": low, "speedup_ci_high": high}
            told[low] = self.lines(decode_tables.packings(self.rows([row])))[0][-1]
        self.assertEqual(told, {2.4: "2.50 (2.40 to 2.60)", 0.9: "2.50 (0.90 to 2.60, undecided)"})

    def test_an_interval_is_told_by_its_wider_side(self) -> None:
        row = made.token("linear", {}, 4096, 1e6)
        row["metrics"]["time_s"] |= {"ci_low": 0.9e-3, "ci_high": 1.25e-3}
        self.assertEqual(decode_tables.time_text(read_rows([self.rows([row])]).cells[0]), "1 ms ±25 %")

    def test_a_share_that_nothing_like_it_was_scored_with_has_no_score(self) -> None:
        cells = made.time_cells() + [made.token("truncated", {"window": n // 2}, n, 4096.0) for n in made.LENGTHS]
        by = {line[0]: line[1:] for line in self.lines(decode_tables.states(self.rows(cells), self.scores()))}
        self.assertEqual(by["`truncated`, a window of 1/2"][-2:], ["—", "—"])

    def test_a_number_carries_its_marks(self) -> None:
        cells = made.time_cells()
        for row in cells:
            if row["axes"]["threads"] == 1 and row["axes"]["length"] == 4096 and "kv_dtype" not in row["axes"]:
                row["noisy"] = ["witness"]
            if row["variant"]["name"] == "linear":
                del row["verified"]
        path = self.rows(cells)
        first, second = self.lines(decode_tables.types(path))[:2]
        self.assertEqual((first[2], first[9], second[3]), ("8.39 ms ±1 %*", "0.02*", "0.50*"))
        by = {line[0]: line[1:] for line in self.lines(decode_tables.states(path, self.scores("linear")))}
        self.assertEqual((by["`linear`"][0], by["`linear`"][-1]), ("524 µs ±1 %?, 0.062?", "0.30† ± 0.00§‡"))
        told = decode_choice.marks_told(path, self.scores("linear"))
        self.assertEqual([line[:5] for line in told.splitlines()], ["- `†`", "- `?`", "- `*`", "- `§`", "- `‡`"])

    def test_what_gave_no_number_is_told_with_the_reason(self) -> None:
        refused = made.token("truncated", {"window": 2048}, 16384, 1.0)
        refused |= {"status": "skipped", "reason": "no room", "metrics": None, "samples": None}
        told = decode_tables.states(self.rows([c for c in made.time_cells() if c["variant"]["name"] == "full"] + [refused]), self.scores())
        self.assertIn("Skipped: no room (`truncated`, a window of 1/8 at 16,384).", told)

    def test_workloads_and_packed_sequences_have_the_figures_of_their_rows(self) -> None:
        path = self.rows(made.serving_cells() + [made.packed_cell()])
        self.assertEqual(self.lines(decode_tables.workloads(path)), [
            ["`q64_2q1kv1k`", "1", "`linear`", "80 ms", "4 ms", "90 ms", "500", "64 KiB"],
            ["`q64_2q1kv1k`", "2", "`linear`", "40 ms", "2 ms", "45 ms", "1k", "64 KiB"]])  # fmt: skip
        self.assertEqual(self.lines(decode_tables.packings(path)),
                         [["`full`", "`uniform`", "forward", "0.62", "10k", "4k", "2.50"]])  # fmt: skip

    def test_a_model_has_the_sum_of_its_layers(self) -> None:
        known = self.folder / "shapes.toml"
        layers = '{ count = 3, variant = "full", heads = 4, head_dim = 16 }, { count = 2, variant = "truncated[window=8]", heads = 4, head_dim = 16 }'
        known.write_text(f'[[shape]]\nname = "m"\nlayers = [{layers}]\n', encoding="utf-8")
        plain = {"heads": 4, "head_dim": 16, "kv_heads": None}
        cells = [made.token("full", made.FULL, 64, 1e6, **plain), made.token("truncated", {"window": 8}, 64, 1e5, **plain)]
        for row in cells:
            del row["axes"]["kv_heads"]
        (line,) = self.lines(decode_tables.shapes(self.rows(cells), known))
        self.assertEqual(line[2:], ["64", "1 ms ±1 % + 100 µs ±1 %", "3.2 ms", "3.05 MiB"])  # 3 x 1 ms + 2 x 0.1 ms, 3.2e6 bytes
        (line,) = self.lines(decode_tables.shapes(self.rows(cells[:1]), known))
        self.assertEqual(line[4:], ["—", "—"], "a layer is missing")
        others = [made.token("full", made.FULL, 64, 9e6, **plain | {"threads": 1}), made.token("full", made.FULL, 128, 9e6, **plain)]
        others.append(made.token("full", made.FULL, 64, 9e6, **plain | {"batch": 4}))
        for row in others:
            del row["axes"]["kv_heads"]
        (line,) = self.lines(decode_tables.shapes(self.rows([*others, *cells]), known))
        self.assertEqual(line[2:5], ["64", "1 ms ±1 % + 100 µs ±1 %", "3.2 ms"], "not of another length, batch or number of threads")


class Sentences(OnRows):
    def told(self, *unfinished: str) -> list[str]:
        return decode_choice.sentences(self.rows(), self.scores(*unfinished)).splitlines()

    def test_the_least_of_what_keeps_its_recall_is_named_for_each_length(self) -> None:
        short, long, constant, types = self.told()
        self.assertIn(f"At **4k** and 2 threads exact attention {TAKES}. Within 0.05 of its score", short)
        self.assertIn(CHOSEN, short)  # recent is as fast, and loses its recall
        self.assertTrue(short.endswith("`gated_deltanet`‡ with least time and fewest bytes, 524 µs (0.062 of its time) and 512 KiB (0.062 of its bytes)."))
        self.assertIn("At **16k**", long)
        self.assertIn("`linear` 524 µs (0.016 of its time) and 512 KiB (0.016 of its bytes), `mqar` 0.30 ± 0.00", constant)
        self.assertIn("`int8` 0.25 of the time (asked ≤ 0.35) and 0.25 of the bytes", types)

    def changed(self, name: str, change: Callable[[dict[str, Any]], Any]) -> list[dict[str, Any]]:
        """The made-up times, with cells of two threads of a variant changed."""
        cells = made.time_cells()
        for row in cells:
            if row["variant"]["name"] == name and row["axes"]["threads"] == 2:
                change(row)
        return cells

    def test_states_stand_beside_exact_attention_of_their_length(self) -> None:
        def refuse(row: dict[str, Any]) -> None:
            if row["axes"]["length"] == 16384:
                row |= {"status": "skipped", "reason": "no", "metrics": None, "samples": None}

        third = [made.token("linear", {}, 1024, 2.0**19), made.token("gated_deltanet", {}, 1024, 2.0**19), made.token("full", made.FULL, 1024, 2.0**21)]
        constant = decode_choice.sentences(self.rows(third + self.changed("linear", refuse)), self.scores()).splitlines()[3]
        self.assertIn("exact attention at 16k: `gated_deltanet` 524 µs (0.016 of its time)", constant)
        self.assertNotIn("`linear`", constant, "it has no time there")
        constant = decode_choice.sentences(self.rows(third + self.changed("full", refuse)), self.scores()).splitlines()[2]
        self.assertIn("exact attention at 4k: `linear` 524 µs (0.062 of its time)", constant, "where exact attention has no time itself")

    def test_too_few_seeds_and_an_interval_that_reaches_further_keep_no_recall(self) -> None:
        def without_the_last(row: dict[str, Any]) -> bool:
            return row["variant"]["name"] != "gated_deltanet" or row["axes"]["seed"] != 2

        few = [row for row in made.score_cells() if without_the_last(row)]
        apart = made.score_cells()
        for row in apart:
            if row["variant"]["name"] == "gated_deltanet":
                row["metrics"]["test"] = (0.95, 0.97, 0.99)[row["axes"]["seed"]]  # 0.97 ± 0.05
        for name, cells in (("few", few), ("apart", apart)):
            told = decode_choice.sentences(self.rows(), made.written(self.folder / f"{name}.jsonl", cells)).splitlines()[0]
            self.assertTrue(told.endswith("nothing that is trained for itself is."), told)

    def test_a_seed_whose_training_failed_takes_the_rank(self) -> None:
        cells = made.score_cells()
        for row in cells:
            if row["variant"]["name"] == "gated_deltanet" and row["axes"]["seed"] == 2:
                row |= {"status": "diverged", "reason": "no", "metrics": None, "samples": None}
        told = decode_choice.sentences(self.rows(), made.written(self.folder / "lost.jsonl", cells)).splitlines()[0]
        self.assertTrue(told.endswith("nothing that is trained for itself is."), told)

    def test_the_tasks_that_were_judged_are_named(self) -> None:
        scores = made.score_cells()
        for row in scores:
            if row["variant"]["name"] == "full" and row["task"]["name"] == "needle":
                row["metrics"]["ended_by"] = "steps"
        short = decode_choice.sentences(self.rows(), made.written(self.folder / "one.jsonl", scores)).splitlines()[0]
        self.assertIn("Within 0.05 of its score on `mqar`, of models trained without shared heads:", short)

    def test_what_is_not_surely_faster_is_not_said_to_be(self) -> None:
        def wide(row: dict[str, Any]) -> None:
            row["metrics"]["time_s"]["ci_high"] = 1.0

        short = decode_choice.sentences(self.rows(self.changed("gated_deltanet", wide)), self.scores()).splitlines()[0]
        self.assertIn("`gated_deltanet`‡ with fewest bytes", short)
        self.assertNotIn("`gated_deltanet`‡ with least time", short)

    def test_what_was_not_timed_at_a_length_is_not_said_to_be_slower(self) -> None:
        cells = [c for c in made.time_cells() if c["variant"]["params"].get("evict") != "h2o" or c["axes"]["length"] != 4096]
        short, long, *_ = decode_choice.sentences(self.rows(cells), self.scores()).splitlines()
        self.assertIn("no cache of the same weights that keeps this score was timed at this length;", short)
        self.assertIn("`full[evict=h2o]`", long)

    def test_a_training_that_was_cut_off_has_no_rank(self) -> None:
        short = self.told("gated_deltanet")[0]
        self.assertTrue(short.endswith("nothing that is trained for itself is."), short)

    def test_where_exact_attention_is_cut_off_nothing_is_ranked(self) -> None:
        cells = made.score_cells()
        for row in cells:
            if row["variant"]["name"] == "full":
                row["metrics"]["ended_by"] = "steps"
        short = decode_choice.sentences(self.rows(), made.written(self.folder / "cut.jsonl", cells)).splitlines()[0]
        self.assertIn("it has no finished scores of 3 seeds itself, and nothing is ranked", short)

    def test_what_the_intervals_do_not_tell_apart_is_named(self) -> None:
        scores = made.score_cells()
        for row in scores:
            if row["variant"]["name"] in ("linear", "truncated"):
                row["metrics"]["test"] = 0.99
        near = made.written(self.folder / "near.jsonl", scores)
        short = decode_choice.sentences(self.rows(), near).splitlines()[0]
        self.assertIn("`gated_deltanet`‡ with least time and fewest bytes, 524 µs (0.062 of its time) and 512 KiB (0.062 of its bytes) "
                      "(not told apart from `linear`) (as few: `linear`).", short, "a window of an eighth takes twice as long")  # fmt: skip
        cells = made.time_cells()
        for row in cells:
            if row["variant"]["name"] == "linear":
                row["metrics"]["time_s"] = {name: 1.03 * v for name, v in row["metrics"]["time_s"].items()}
        self.assertNotIn("not told apart", decode_choice.sentences(self.rows(cells), near).splitlines()[0], "1 % to either side do not meet")


class Page(unittest.TestCase):
    def test_rows_that_are_not_there_are_named(self) -> None:
        self.assertEqual(documents.printed("decode_types results/reference/none.jsonl"), "Not measured yet: there is no `results/reference/none.jsonl`.")

    def test_the_picture_has_a_link_once_it_is_drawn(self) -> None:
        drawn = "results/reference/plots/accuracy-state.png"
        self.assertTrue(decode_choice.picture(ROOT / "results/reference/quick.jsonl", drawn).endswith("](reference/plots/accuracy-state.png)"))
        self.assertIn("Not drawn yet", decode_choice.picture(ROOT / "results/reference/quick.jsonl", "results/reference/no-plots/accuracy-kept.png"))

    def test_the_sweep_times_what_the_page_compares(self) -> None:
        sweep = tomllib.loads((ROOT / "results" / "reference" / "decoding.toml").read_text(encoding="utf-8"))["sweep"]
        typed = [s["axes"] for s in sweep if "bfloat16" in s["axes"].get("kv_dtype", ())]
        self.assertEqual([axes["threads"] for axes in typed], [1])
        for axes in (s["axes"] for s in sweep if s["axes"].get("mode") == "decode"):
            self.assertEqual((axes["heads"], axes["head_dim"], axes["length"]), (8, 128, [4096, 16384, 65536]))


if __name__ == "__main__":
    unittest.main()
