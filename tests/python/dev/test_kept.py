"""scripts/dev/kept counts choices that are the same, at which budgets, and which lines explain what differs."""

from __future__ import annotations

import unittest

from dev.kept import compared
from dev.kept.compared import Line, exit_code, prompts, same, steps

A, B = frozenset({0, 1}), frozenset({0, 2})


class Length:
    """Inputs of which only the length is asked."""

    def __init__(self, length: int = 0) -> None:
        self.length = length

    def until(self, length: int) -> Length:
        return Length(length)


class Same(unittest.TestCase):
    def test_each_step_and_head_counts_by_itself(self) -> None:
        self.assertEqual(same([[A, B], [A, A]], [[A, A], [A, B]]), [True, False, True, False])

    def test_a_side_with_fewer_steps_or_heads_is_an_error(self) -> None:
        for theirs in ([[A, B]], [[A, B], [A]], []):
            with self.subTest(theirs), self.assertRaises(ValueError):
                same([[A, B], [A, B]], theirs)


class Compared(unittest.TestCase):
    def test_prompts_are_compared_at_each_length_and_budget(self) -> None:
        asked, told = [], []

        def ours(spec: str, x: Length, prompt: int) -> compared.Choices:
            asked.append((spec, x.length, prompt))
            return [[A, A]]

        def theirs(x: Length, prompt: int, budget: int) -> compared.Choices:
            told.append((prompt, budget))
            return [[A, B if (prompt, budget) == (333, 83) else A]]

        self.assertEqual(prompts(ours, "tova", Length(), theirs), [True] * 15 + [False] + [True] * 8)
        self.assertEqual(told, [(p, b) for p in (100, 333, 512) for b in (16, 33, 64, p // 4)])
        self.assertEqual(asked[:4], [(f"full[evict=tova,budget={b},when=prompt]", 101, 100) for b in (16, 33, 64, 0.25)])
        asked.clear()
        prompts(ours, "snapkv", Length(), lambda *_: [[A, A]])
        self.assertEqual(asked[-1], ("full[evict=snapkv,budget=0.25]", 513, 512))

    def test_steps_are_compared_at_each_budget(self) -> None:
        asked = []

        def ours(spec: str, x: Length, prompt: int) -> compared.Choices:
            asked.append((spec, x.length, prompt))
            return [[A]] * 100

        found = steps(ours, "h2o", Length(), lambda _, budget: [[A if budget == 16 else B]] * 100)
        self.assertEqual(found, [True] * 100 + [False] * 200)
        self.assertEqual(asked, [(f"full[evict=h2o,budget={b}]", 228, 128) for b in (16, 33, 64)])


class Lines(unittest.TestCase):
    def test_what_is_named_must_explain_every_choice(self) -> None:
        for as_it_is, without, explained in (
            ([True, True], None, True),
            ([True, False], None, False),
            ([False, False], [True, True], True),
            ([True, True], [True, False], False),
            ([], None, False),
            ([False], [], False),
        ):
            with self.subTest(as_it_is=as_it_is, without=without):
                line = Line("tova", "code", "steps", as_it_is, "a difference" if without is not None else "", without)
                self.assertIs(line.is_explained, explained)
                self.assertEqual(exit_code([Line("sinks", "code", "steps", [True]), line]), int(not explained))

    def test_both_counts_are_told(self) -> None:
        self.assertEqual(Line("tova", "c", "prompt", [True, False]).entries, ["`tova`", "c", "prompt", "1 of 2", "", ""])
        self.assertEqual(Line("tova", "c", "prompt", [True, False], "d", [True] * 2).entries[-2:], ["d", "2 of 2"])


if __name__ == "__main__":
    unittest.main()
