"""Twenty and more questions of users, asked of planted rows whose right answer is known."""

from __future__ import annotations

import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from attnbench.advice import command

from .asking import answered
from .planted import EXACT, World, power, square

LINEAR, FAST = power(4e-7, 1.0), power(2e-7, 1.0)
GOOD, SAME, BAD = (0.990, 0.992, 0.991, 0.990, 0.993), (0.988, 0.990, 0.991, 0.989, 0.990), (0.42, 0.38, 0.45, 0.40, 0.41)


class Questions(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        without_program = mock.patch.object(command, "forecast", lambda _: "")
        without_program.start()
        self.addCleanup(without_program.stop)

    def ask(self, world: World, *words: str) -> dict[str, Any]:
        return answered(world.write(self.folder), *words)

    def variants(self, found: Sequence[dict[str, Any]], place: int | None = None) -> list[str]:
        return [line["variant"] for line in found if place in (None, line.get("place"))]

    def reasons(self, answer: dict[str, Any]) -> dict[str, list[str]]:
        return {found["reason"]: self.variants(found["variants"]) for found in answer["undecided"]}

    def test_a_clear_winner_is_taken_with_an_interval_that_holds_the_truth(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": LINEAR, "performer": power(9e-7, 1.0)}), "--length", "4096")
        self.assertEqual((answer["verdict"], self.variants(answer["lines"])), ("take", ["linear", "performer"]))
        self.assertEqual([line["place"] for line in answer["lines"]], [1, 2])
        ratio, truth = answer["lines"][0]["ratio"], LINEAR(4096) / EXACT(4096)
        self.assertTrue(ratio["low"] < truth < ratio["high"] < 1.1 * truth, (ratio, truth))
        self.assertEqual((len(ratio["by_machine"]), len(answer["rests_on"]["machines"])), (3, 3))

    def test_of_a_tie_neither_is_the_first(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": LINEAR, "performer": LINEAR}), "--length", "4096")
        self.assertEqual(sorted(self.variants(answer["lines"], 1)), ["linear", "performer"])
        self.assertIn("do not tell them apart", answer["text"])

    def test_a_tie_with_exact_attention_is_undecided(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": EXACT}), "--length", "4096")
        self.assertEqual((answer["verdict"], answer["lines"]), ("undecided", []))
        self.assertEqual(self.reasons(answer), {"too close to exact attention's time": ["linear"]})
        self.assertIn("--precision", answer["undecided"][0]["run"])

    def test_rows_of_other_axes_are_never_compared(self) -> None:
        """Exact attention of another shape, mode or mask leaves its machine out: no ratio, and no word that the answer rests on it."""
        others = {"dtype": "bfloat16", "kv_heads": 1, "threads": 5, "batch": 3, "heads": 7, "head_dim": 48, "scope": "layer", "mode": "train",
                  "causal": True}  # fmt: skip
        for name, value in others.items():

            def other(row: dict[str, Any], name: str = name, value: object = value) -> dict[str, Any]:
                moves = row["machine"] == 2 and row["variant"]["name"] == "full"
                return {"axes": {**row["axes"], name: value}} if moves else {}

            with self.subTest(axis=name):
                answer = self.ask(World({"full": EXACT, "linear": LINEAR}, spoil=other, lengths=(4096,)), "--length", "4096")
                self.assertEqual(len(answer["lines"][0]["ratio"]["by_machine"]), 2)
                self.assertTrue(answer["rests_on"]["text"].startswith("rests on 2 machines ("), answer["rests_on"])
                self.assertIn("; 4 times at length 4096", answer["rests_on"]["text"])
                self.assertEqual(len(answer["rests_on"]["machines"]), 2)

    def test_the_winner_changes_with_the_length(self) -> None:
        world = World({"full": EXACT, "linear": power(1e-6, 1.0)})  # they cross at 800
        short, long = (self.ask(world, "--length", n) for n in ("512", "2048"))
        self.assertEqual((short["verdict"], self.variants(short["lines"])), ("exact", ["full"]))
        self.assertEqual(self.variants(short["slower"]), ["linear"])
        self.assertEqual((long["verdict"], self.variants(long["lines"])), ("take", ["linear"]))

    def test_between_lengths_it_interpolates_and_near_a_crossing_it_does_not_decide(self) -> None:
        world = World({"full": EXACT, "linear": power(1e-6, 1.0)})
        near, far = self.ask(world, "--length", "800"), self.ask(world, "--length", "6000")
        self.assertEqual(near["verdict"], "undecided")
        ratio, truth = far["lines"][0]["ratio"], 1e-6 * 6000 / EXACT(6000)
        self.assertTrue(ratio["low"] < truth < ratio["high"], (ratio, truth))
        self.assertIn("lengths 4096, 8192 about 6000", far["rests_on"]["text"])

    def test_interpolation_over_a_wide_gap_says_how_little_it_knows(self) -> None:
        narrow = self.ask(World({"full": EXACT, "linear": LINEAR}), "--length", "2000")["lines"][0]["ratio"]
        wide = self.ask(World({"full": EXACT, "linear": LINEAR}, lengths=(256, 16384)), "--length", "2000")
        found = wide["undecided"][0]["variants"][0]["ratio"]
        self.assertGreater(found["high"] / found["low"], 5 * narrow["high"] / narrow["low"])
        self.assertTrue(found["low"] < LINEAR(2000) / EXACT(2000) < found["high"])

    def test_memory_leaves_the_fastest_out(self) -> None:
        peaks = {"full": power(4e3, 1), "linear": power(6e4, 1), "performer": power(2e3, 1)}
        world = World({"full": EXACT, "linear": FAST, "performer": LINEAR}, peaks=peaks)
        answer = self.ask(world, "--length", "4096", "--memory", "32M")
        self.assertEqual((self.variants(answer["lines"]), self.variants(answer["over_memory"])), (["performer"], ["linear"]))
        self.assertEqual(self.variants(self.ask(world, "--length", "4096")["lines"]), ["linear", "performer"])

    def test_where_exact_attention_does_not_fit_a_slower_variant_is_taken(self) -> None:
        peaks = {"full": power(2.0, 2), "linear": power(100, 1)}
        world = World({"full": EXACT, "linear": square(2e-9, 2e-7)}, peaks=peaks)
        answer = self.ask(world, "--length", "8192", "--memory", "16M")
        self.assertEqual((answer["verdict"], self.variants(answer["lines"])), ("take", ["linear"]))
        self.assertEqual(answer["lines"][0]["time"], "slower")

    def test_nothing_fits(self) -> None:
        world = World({"full": EXACT, "linear": LINEAR}, peaks={"full": power(4e3, 1), "linear": power(3e3, 1)})
        answer = self.ask(world, "--length", "4096", "--memory", "1M")
        self.assertEqual((answer["verdict"], sorted(self.variants(answer["over_memory"]))), ("none", ["full", "linear"]))

    def test_memory_that_nobody_measured_decides_nothing(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}), "--length", "4096", "--memory", "1G")
        self.assertEqual((answer["verdict"], self.reasons(answer)), ("undecided", {"its memory was not measured": ["linear"]}))
        self.assertIn("--measure memory", answer["undecided"][0]["run"])

    def test_memory_of_another_shape_decides_no_limit(self) -> None:
        def spoil(row: dict[str, Any]) -> dict[str, Any]:
            return {"axes": {**row["axes"], "heads": 1}} if row["measure"] == "memory" else {}

        world = World({"full": EXACT, "linear": LINEAR}, peaks={"full": power(1e2, 1), "linear": power(1e3, 1)}, spoil=spoil)
        answer = self.ask(world, "--length", "4096", "--memory", "1G")
        self.assertEqual((answer["verdict"], self.reasons(answer)), ("undecided", {"its memory was measured at another shape alone": ["linear"]}))
        self.assertIn("1 head", answer["rests_on"]["text"])

    def test_memory_between_two_lengths_decides_where_both_bounds_do(self) -> None:
        world = World({"full": EXACT, "linear": LINEAR}, peaks={"full": power(1e2, 1), "linear": power(1e3, 1)})
        tight, enough, over = (self.ask(world, "--length", "3000", "--memory", m) for m in ("2.5M", "3.5M", "1.5M"))
        self.assertEqual(self.reasons(tight), {"its memory between two measured lengths may be more": ["linear"]})
        self.assertEqual((self.variants(enough["lines"]), self.variants(over["over_memory"])), (["linear"], ["linear"]))
        self.assertEqual((over["verdict"], self.variants(over["lines"])), ("exact", ["full"]))

    def test_a_loss_of_score_disqualifies(self) -> None:
        tests = {"mqar": {"full": GOOD, "linear": BAD, "performer": SAME}}
        world = World({"full": EXACT, "linear": FAST, "performer": LINEAR}, causal=True, tests=tests)
        answer = self.ask(world, "--length", "4096", "--causal", "--task", "recall")
        self.assertEqual((self.variants(answer["lines"]), self.variants(answer["losing_score"])), (["performer"], ["linear"]))
        self.assertLess(answer["losing_score"][0]["scores"][0]["kept"], 0.5)

    def test_a_causal_task_asks_for_causal_times(self) -> None:
        tests = {"mqar": {"full": GOOD, "linear": SAME}}
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}, causal=True, tests=tests), "--length", "4096", "--task", "mqar")
        self.assertEqual((answer["question"]["causal"], self.variants(answer["lines"])), (True, ["linear"]))

    def test_no_rows_of_the_mode(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}), "--length", "4096", "--mode", "train")
        self.assertEqual((answer["verdict"], list(self.reasons(answer))), ("undecided", ["no time of train, not causal, is in these rows"]))
        self.assertIn("--mode train", answer["undecided"][0]["run"])

    def test_causal_times_do_not_answer_for_others(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}, causal=True), "--length", "4096")
        self.assertEqual((answer["verdict"], list(self.reasons(answer))), ("undecided", ["no time of forward, not causal, is in these rows"]))

    def test_beyond_the_measured_lengths_it_says_what_to_run(self) -> None:
        world = World({"full": EXACT, "linear": LINEAR})
        for length in ("32768", "128"):
            answer = self.ask(world, "--length", length)
            self.assertEqual(list(self.reasons(answer)), [f"length {length} lies outside what was measured, 256 to 16384"])
            self.assertEqual(answer["lines"], [])
            for word in (f"--length {length}", "-v full", "-v linear", "--heads 4"):
                self.assertIn(word, answer["undecided"][0]["run"])

    def test_disturbed_times_do_not_count(self) -> None:
        def spoil(row: dict[str, Any]) -> dict[str, Any]:
            return {"noisy": ["witness"]} if row["measure"] == "speed" and row["variant"]["name"] == "linear" else {}

        answer = self.ask(World({"full": EXACT, "linear": LINEAR, "performer": power(9e-7, 1)}, spoil=spoil), "--length", "4096")
        self.assertEqual((self.variants(answer["lines"]), answer["rests_on"]["disturbed"]), (["performer"], 21))

    def test_where_every_time_is_disturbed_all_variants_are_to_be_measured_again(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}, spoil=lambda row: {"noisy": ["witness"]}), "--length", "4096")
        self.assertEqual(len(answer["undecided"]), 1)
        self.assertRegex(answer["undecided"][0]["reason"], r"^no time of forward, not causal, counts; left out: \d+ of a machine that did other work")
        self.assertIn("-v full -v linear", answer["undecided"][0]["run"])
        self.assertRegex(answer["rests_on"]["text"], r"^rests on no row; \d+ disturbed times left out$")

    def test_one_machine_speaks_for_itself(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}, machines=({},)), "--length", "4096")
        self.assertEqual((self.variants(answer["lines"]), len(answer["lines"][0]["ratio"]["by_machine"])), (["linear"], 1))
        self.assertIn("rests on 1 machine (", answer["rests_on"]["text"])

    def test_machines_that_disagree_decide_nothing(self) -> None:
        machines = ({}, {"linear": 0.4}, {"linear": 4.0})
        answer = self.ask(World({"full": EXACT, "linear": power(2e-6, 1)}, machines=machines), "--length", "4096")
        self.assertEqual((answer["verdict"], self.reasons(answer)), ("undecided", {"machines disagree": ["linear"]}))

    def test_machines_that_agree_in_sign_and_differ_widely_decide_nothing(self) -> None:
        machines = ({"linear": 0.05}, {"linear": 0.5}, {"linear": 0.9})
        answer = self.ask(World({"full": EXACT, "linear": EXACT}, machines=machines), "--length", "4096")
        self.assertEqual(self.reasons(answer), {"machines differ too much": ["linear"]})

    def test_two_machines_speak_for_both(self) -> None:
        machines = ({"linear": 0.3}, {"linear": 0.4})
        answer = self.ask(World({"full": EXACT, "linear": EXACT}, machines=machines), "--length", "4096")
        ratio = answer["lines"][0]["ratio"]
        self.assertTrue(ratio["low"] < 0.3 < 0.4 < ratio["high"] < 0.45, ratio)

    def test_faster_on_one_of_two_machines_is_not_faster(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": EXACT}, machines=({"linear": 0.5}, {})), "--length", "4096")
        self.assertEqual((answer["verdict"], self.variants(answer["lines"])), ("undecided", []))

    def test_machines_of_other_code_are_not_pooled(self) -> None:
        def spoil(row: dict[str, Any]) -> dict[str, Any]:
            return {"source": {"variant": "0" * 16 if row["machine"] < 2 else "1" * 16}}

        machines = ({"linear": 0.3}, {"linear": 0.3}, {"linear": 0.1})
        ratio = self.ask(World({"full": EXACT, "linear": EXACT}, machines=machines, spoil=spoil), "--length", "4096")["lines"][0]["ratio"]
        self.assertEqual(sorted(name[:13] for name in ratio["by_machine"]), ["Planted CPU 1", "Planted CPU 2"])
        self.assertAlmostEqual(ratio["value"], 0.3, 1)

    def test_unfinished_trainings_do_not_count(self) -> None:
        def spoil(row: dict[str, Any]) -> dict[str, Any]:
            cut = row["measure"] == "accuracy" and row["variant"]["name"] == "linear"
            return {"metrics": {**row["metrics"], "ended_by": "steps"}} if cut else {}

        world = World({"full": EXACT, "linear": LINEAR}, tests={"listops": {"full": GOOD, "linear": SAME}}, spoil=spoil)
        answer = self.ask(world, "--length", "4096", "--task", "hierarchy")
        self.assertEqual((answer["verdict"], self.reasons(answer)), ("undecided", {"listops: training cut off by its steps": ["linear"]}))

    def test_a_setting_that_the_control_has_not_learned_does_not_count(self) -> None:
        tests = {"listops": {"full": (0.12, 0.11, 0.13), "linear": (0.90, 0.91, 0.92)}}
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}, tests=tests), "--length", "4096", "--task", "listops")
        self.assertEqual(answer["verdict"], "undecided")
        self.assertIn("listops: full scores 0.120, and reached the bar", answer["undecided"][0]["reason"])

    def test_a_red_check_does_not_count(self) -> None:
        def spoil(row: dict[str, Any]) -> dict[str, Any]:
            return {"gate": "red"} if row["variant"]["name"] == "linear" else {}

        answer = self.ask(World({"full": EXACT, "linear": LINEAR, "performer": power(9e-7, 1)}, spoil=spoil), "--length", "4096")
        self.assertEqual(self.variants(answer["lines"]), ["performer"])

    def test_decoding_is_causal_and_its_state_is_its_memory(self) -> None:
        states = {"full": power(512, 1), "linear": lambda n: 16640.0}
        world = World({"full": power(1.3e-8, 1), "linear": lambda n: 4e-6}, mode="decode", causal=True, states=states)
        answer = self.ask(world, "--length", "8192", "--mode", "decode", "--memory", "64K")
        self.assertEqual((answer["question"]["causal"], self.variants(answer["lines"])), (True, ["linear"]))
        self.assertEqual((answer["lines"][0]["memory"]["what"], self.variants(answer["over_memory"])), ("state", ["full"]))

    def test_two_seeds_do_not_decide_a_score(self) -> None:
        for linear in ((0.99, 0.12), (0.99, 0.99)):
            world = World({"full": EXACT, "linear": LINEAR}, tests={"listops": {"full": GOOD, "linear": linear}})
            answer = self.ask(world, "--length", "4096", "--task", "listops")
            self.assertEqual(self.reasons(answer), {"listops: 2 seeds alone": ["linear"]})
            self.assertIn("--seed 0,1,2,3,4", answer["undecided"][0]["run"])

    def test_seeds_of_two_minds_do_not_decide_a_score(self) -> None:
        tests = {"listops": {"full": GOOD, "linear": (0.99, 0.12, 0.99, 0.99, 0.15)}}
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}, tests=tests), "--length", "4096", "--task", "listops")
        self.assertEqual(self.reasons(answer), {"seeds do not tell whether it keeps 95%": ["linear"]})

    def test_a_kind_without_a_score(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}, tests={"listops": {"full": GOOD}}), "--length", "4096", "--task", "copying")
        self.assertEqual(self.reasons(answer), {"no score for copying": ["linear"]})
        self.assertIn("-t copy", answer["undecided"][0]["run"])

    def test_a_variant_must_keep_every_task_of_the_kind(self) -> None:
        tests = {"mqar": {"full": GOOD, "linear": SAME, "performer": SAME}, "needle": {"full": GOOD, "linear": BAD, "performer": SAME}}
        world = World({"full": EXACT, "linear": FAST, "performer": LINEAR}, causal=True, tests=tests)
        self.assertEqual(self.variants(self.ask(world, "--length", "4096", "--task", "recall")["lines"]), ["performer"])
        self.assertEqual(self.variants(self.ask(world, "--length", "4096", "--task", "mqar")["lines"]), ["linear", "performer"])

    def test_what_is_kept_on_one_task_is_not_kept_on_another_that_seeds_do_not_decide(self) -> None:
        tests = {"mqar": {"full": GOOD, "linear": SAME}, "needle": {"full": GOOD, "linear": (0.99, 0.12, 0.99, 0.99, 0.15)}}
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}, causal=True, tests=tests), "--length", "4096", "--task", "recall")
        self.assertEqual((answer["verdict"], self.reasons(answer)), ("undecided", {"seeds do not tell whether it keeps 95%": ["linear"]}))

    def test_where_exact_attention_cannot_a_slower_variant_that_can_is_taken(self) -> None:
        def spoil(row: dict[str, Any]) -> dict[str, Any]:
            return {"metrics": {**row["metrics"], "solver": "recurrent"}} if row["measure"] == "accuracy" else {}

        tests = {"states": {"full": BAD, "recurrent": GOOD}}
        world = World({"full": EXACT, "recurrent": square(2e-9, 2e-7)}, causal=True, tests=tests, spoil=spoil)
        answer = self.ask(world, "--length", "4096", "--task", "tracking")
        self.assertEqual((self.variants(answer["lines"]), answer["lines"][0]["time"]), (["recurrent"], "slower"))
        self.assertEqual(self.variants(answer["losing_score"]), ["full"])

    def test_a_single_visit_has_no_interval(self) -> None:
        answer = self.ask(World({"full": EXACT, "linear": LINEAR}, visits=1), "--length", "4096")
        self.assertEqual((answer["verdict"], list(self.reasons(answer))), ("undecided", ["no time of forward, not causal, counts; left out: 42 of a single visit"]))

    def test_other_parameters_are_another_variant(self) -> None:
        def spoil(row: dict[str, Any]) -> dict[str, Any]:
            return {"variant": {"name": "linear", "params": {"width": 2}}} if row["measure"] == "accuracy" and row["variant"]["name"] == "linear" else {}

        world = World({"full": EXACT, "linear": LINEAR}, tests={"listops": {"full": GOOD, "linear": SAME}}, spoil=spoil)
        answer = self.ask(world, "--length", "4096", "--task", "listops")
        self.assertEqual((answer["verdict"], self.reasons(answer)["no score for listops"]), ("undecided", ["linear"]))


if __name__ == "__main__":
    unittest.main()
