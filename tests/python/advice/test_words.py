"""What a standing holds, in words: an amount, two that it lies between, and exact attention's beside those alone that compare."""

from __future__ import annotations

import unittest

from attnbench.advice.memory import Held
from attnbench.advice.standing import Standing
from attnbench.advice.words import memory_text

MIB = 2.0**20


def standing(low: float, high: float, what: str = "peak", shape: str = "a") -> Standing:
    held = Held(low * MIB, high * MIB, what, (64,), shape, ())
    return Standing(("some", ()), "some", None, "unknown", "", held, (), "", "", ())


class Memory(unittest.TestCase):
    def test_exact_attention_stands_beside_it(self) -> None:
        exact = standing(8, 16)
        self.assertEqual(memory_text(standing(2, 2), exact), "2 MiB (exact attention 8 MiB to 16 MiB)")
        self.assertEqual(memory_text(standing(2, 3), standing(8, 8)), "2 MiB to 3 MiB (exact attention 8 MiB)")
        self.assertEqual(memory_text(standing(1, 1, "state"), standing(4, 4, "state")), "1 MiB of state (exact attention 4 MiB)")

    def test_what_does_not_compare_is_left_out(self) -> None:
        exact = standing(8, 16)
        self.assertEqual(memory_text(exact, exact), "8 MiB to 16 MiB")
        self.assertEqual(memory_text(standing(2, 2), None), "2 MiB")
        self.assertEqual(memory_text(standing(2, 2, shape="b"), exact), "2 MiB")
        self.assertEqual(memory_text(standing(1, 1, "state"), exact), "1 MiB of state")


if __name__ == "__main__":
    unittest.main()
