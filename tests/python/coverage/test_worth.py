"""Which cells `attnbench coverage --budget` takes, on planted rows where one choice is right."""

from __future__ import annotations

import random
import unittest
from dataclasses import replace

from attnbench.coverage.held import CANNOT, FAILED, NOISY, UNFINISHED, Held
from attnbench.coverage.worth import Survey

from .planted import chosen, every_candidate, measured, missing, names, surveyed, unit


class Choices(unittest.TestCase):
    def test_an_undecided_pair_beats_a_decided_one(self) -> None:
        """Both intervals are equally wide, and one of them overlaps that of exact attention."""
        survey = surveyed(measured("full", 0.0, 0.001), measured("gla", 0.01, 0.05), measured("topk", 1.0, 0.05))
        taken = chosen(survey, budget=1000)
        self.assertEqual([one.unit.variant for one in survey.undecided()], ["gla"])
        self.assertEqual(names(taken)[0], ("gla", 512))
        self.assertNotIn(("topk", 512), names(taken))
        self.assertEqual(taken[0].candidate.repetitions, 36)  # four times as many: half the interval
        self.assertAlmostEqual(taken[0].worth, 0.025)

    def test_a_pair_is_decided_where_its_intervals_do_not_overlap(self) -> None:
        for apart, undecided in ((0.059, ["gla"]), (-0.059, ["gla"]), (0.061, []), (-0.061, [])):
            survey = surveyed(measured("full", 0.0, 0.01), measured("gla", apart, 0.05))
            self.assertEqual([one.unit.variant for one in survey.undecided()], undecided, apart)

    def test_the_widest_undecided_interval_is_first(self) -> None:
        survey = surveyed(measured("full", 0.0, 0.0), measured("gla", 0.01, 0.05), measured("topk", 0.0, 0.2), measured("kda", 0.0, 0.1))
        self.assertEqual([name for name, _ in names(chosen(survey, budget=1000))], ["topk", "kda", "gla"])

    def test_a_wide_interval_of_exact_attention_counts_for_all_its_undecided_pairs(self) -> None:
        survey = surveyed(measured("full", 0.0, 0.1), measured("gla", 0.0, 0.15), measured("topk", 0.01, 0.15), measured("kda", 0.01, 0.15))
        taken = chosen(survey, budget=10)
        self.assertEqual(names(taken), [("full", 512)])
        self.assertIn("3 undecided pairs", taken[0].why)

    def test_a_missing_family_beats_a_fifth_member(self) -> None:
        members = [measured(name, 0.5, 0.01) for name in ("gla", "kda", "mamba2", "retention")]
        survey = surveyed(measured("full", 0.0, 0.01), *members, missing("lightning"), missing("topk"))
        taken = chosen(survey, budget=20)
        self.assertEqual(names(taken), [("topk", 512), ("lightning", 512)])
        self.assertIn("selection", taken[0].why)

    def test_a_missing_setting_beats_one_that_others_have(self) -> None:
        """Exact attention first, for which all pairs of the setting wait."""
        here = [measured(name, 0.5, 0.01) for name in ("full", "gla", "kda")]
        survey = surveyed(*here, missing("topk"), missing("full", 1024), missing("topk", 1024), missing("linear", 1024))
        self.assertEqual(names(chosen(survey, budget=30)), [("full", 1024), ("topk", 1024), ("linear", 1024)])

    def test_a_cheap_cell_beats_an_expensive_one_of_the_same_worth(self) -> None:
        survey = surveyed(measured("full", 0.0, 0.01), missing("topk", share_s=50.0), missing("linear", share_s=5.0))
        self.assertEqual(names(chosen(survey, budget=50)), [("linear", 512)])
        self.assertEqual(names(chosen(survey, budget=60)), [("linear", 512), ("topk", 512)])

    def test_a_disturbed_time_is_measured_again_and_a_failed_one_is_not(self) -> None:
        noisy = replace(measured("topk", 0.1, 0.01), state=NOISY)
        dead = [Held(unit("gla"), FAILED, (0,)), replace(measured("kda", 0.1, 0.5), state=UNFINISHED)]
        also = measured("linear", 1.0, 0.01)
        survey = surveyed(measured("full", 0.0, 0.01), also, noisy, replace(noisy, unit=unit("topk", 64)), *dead)
        taken = chosen(survey, budget=1000)
        self.assertEqual(names(taken), [("topk", 64), ("topk", 512)])
        self.assertEqual(taken[0].why, "the first at its setting")

    def test_nothing_is_chosen_when_all_is_decided(self) -> None:
        survey = surveyed(measured("full", 0.0, 0.01), measured("gla", 0.5, 0.01), measured("topk", -0.5, 0.1))
        self.assertEqual(survey.undecided(), [])
        self.assertEqual(chosen(survey, budget=1e9), [])

    def test_equal_figures_without_an_interval_leave_nothing_to_narrow(self) -> None:
        """Two counts of memory that are the same."""
        survey = surveyed(*(measured(name, 3.0, 0.0, measure="memory") for name in ("full", "gla")))
        self.assertEqual(chosen(survey, budget=1e9), [])

    def test_a_score_that_exact_attention_cannot_reach_tells_nothing(self) -> None:
        survey = surveyed(replace(measured("full", 0.1, 0.01), is_learned=False), replace(missing("gla"), is_learned=False))
        self.assertEqual(chosen(survey, budget=1e9), [])

    def test_a_time_is_repeated_more_often_than_before(self) -> None:
        again = replace(measured("gla", 0.01, 0.05), repetitions=36)
        taken = chosen(surveyed(measured("full", 0.0, 0.001), again), budget=1000)
        self.assertEqual([c.candidate.repetitions for c in taken if c.candidate.unit.variant == "gla"], [144])

    def test_where_exact_attention_cannot_run_a_figure_is_wanted_once(self) -> None:
        exact = Held(unit("full"), CANNOT)
        self.assertEqual(names(chosen(surveyed(exact, missing("gla")), budget=1000)), [("gla", 512)])
        self.assertEqual(chosen(surveyed(exact, measured("gla", 0.0, 0.5)), budget=1000), [])

    def test_an_error_is_a_distance_from_exact_attention_already(self) -> None:
        errors = [replace(measured(n, -1.0, None, measure="fidelity"), seeds=(0,)) for n in ("gla", "topk")]
        survey = surveyed(*errors, missing("full", measure="fidelity"), missing("kda", measure="fidelity"))
        self.assertEqual({h.unit.variant for h in survey.undecided()}, {"full", "kda"})
        self.assertEqual({c.worth for c in chosen(survey, budget=1000) if c.candidate.unit.variant == "full"}, {((1 / 3 + 1 + 1) / 3) ** 0.5})

    def test_more_seeds_follow_those_that_are_there(self) -> None:
        full, gla = (replace(measured(n, 0.5, 0.2, measure="accuracy"), seeds=(0, 1, 2)) for n in ("full", "gla"))
        taken = chosen(surveyed(full, gla), budget=1000)
        self.assertEqual([c.candidate.seeds for c in taken], [tuple(range(3, 12))] * 2)
        self.assertAlmostEqual(taken[0].worth, 0.1)

    def test_another_kernel_of_exact_attention_is_no_reference(self) -> None:
        other = measured("full", 0.9, 0.01)
        other = replace(other, unit=replace(other.unit, params=(("kernel", "materialized"),)))
        survey = surveyed(measured("full", 0.0, 0.01), other, measured("gla", 0.9, 0.01))
        self.assertEqual(survey.undecided(), [])
        self.assertEqual(len(survey.pairs()), 2)


class Budgets(unittest.TestCase):
    def drawn(self, rng: random.Random) -> Survey:
        held = []
        for length in (64, 128, 256, 512):
            for name in ("full", "gla", "kda", "mamba2", "topk", "linear"):
                price = rng.choice((0.5, 3.0, 20.0, 90.0))
                is_there = rng.random() < 0.5
                spread = measured(name, rng.uniform(-0.3, 0.3), rng.uniform(0.001, 0.3), length, share_s=price)
                held.append(spread if is_there else missing(name, length, share_s=price))
        return surveyed(*held)

    def test_the_budget_is_never_exceeded_and_what_is_left_fits_nothing(self) -> None:
        rng = random.Random(50)
        for _ in range(60):
            survey, budget = self.drawn(rng), rng.uniform(0.1, 400)
            taken = chosen(survey, budget, seconds=7.0)
            spent = sum(c.candidate.seconds for c in taken)
            self.assertLessEqual(spent, budget)
            taken_keys = {c.candidate.unit.key for c in taken}
            self.assertEqual(len(taken_keys), len(taken))
            self.assertTrue(all(c.worth > 0 for c in taken))
            undecided = {one.unit.key for one in survey.undecided()}
            for candidate in every_candidate(survey, 7.0):
                if candidate.unit.key in undecided - taken_keys:
                    self.assertGreater(candidate.seconds, budget - spent)

    def test_the_same_rows_give_the_same_choice(self) -> None:
        first = names(chosen(self.drawn(random.Random(3)), 100))
        self.assertEqual(first, names(chosen(self.drawn(random.Random(3)), 100)))
        self.assertGreater(len(first), 3)

    def test_each_choice_is_the_best_rate_of_what_fits(self) -> None:
        """Against a plain count of the definition, cell by cell."""
        survey = self.drawn(random.Random(11))
        candidates, left = every_candidate(survey, 7.0), 150.0
        known = {h.unit.key: h for h in survey.held if h.interval}
        undecided = {h.unit.key for h in survey.undecided()}
        taken = survey.choose(candidates, left)
        self.assertGreater(len(taken), 3)
        for choice in taken:
            rates = []
            for c in candidates:
                setting, family = c.unit.setting, c.unit.family
                at = [k for k in known if k[2] == setting]
                kin = [k for k in at if known[k].unit.family == family]
                wide = ((1 / (1 + len(at)) + 1 / (1 + len(kin)) + 1) / 3) ** 0.5
                fall = c.narrows or max(wide - survey.usual["speed"], 0.0)
                pairs = sum(k[2] == setting for k in undecided) if c.unit.variant == "full" else c.unit.key in undecided
                if c.seconds <= left:
                    rates.append(fall * pairs / c.seconds)
            self.assertAlmostEqual(choice.worth / choice.candidate.seconds, max(rates))
            candidates.remove(choice.candidate)
            left -= choice.candidate.seconds
            if choice.candidate.is_first:
                known[choice.candidate.unit.key] = Held(choice.candidate.unit, "verified")


if __name__ == "__main__":
    unittest.main()
