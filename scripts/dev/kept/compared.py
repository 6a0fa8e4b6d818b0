"""Our choices beside those of other code, at prompts and steps, and the lines of the table. Needs no library of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Inputs = Any  # of inputs.py, which needs torch and has its choices from here; until(count) are the first rows
PROMPTS = (100, 333, 512)
BUDGETS = (16, 33, 64, 0.25)  # positions, or a share of the prompt
DECODED, STEPS = 128, 100  # a prompt, and the steps behind it
STEP_BUDGETS = (16, 33, 64)

# The positions that are held before each step, of each head: [steps][heads].
Choices = list[list[frozenset[int]]]
Ours = Callable[[str, Inputs, int], Choices]  # of a spec, inputs and the length of a prompt


@dataclass
class Line:
    method: str
    code: str
    when: str
    as_it_is: list[bool]
    difference: str = ""
    without: list[bool] | None = None  # with what differs left out

    @property
    def entries(self) -> list[str]:
        counts = ["" if c is None else f"{sum(c)} of {len(c)}" for c in (self.as_it_is, self.without)]
        return [f"`{self.method}`", self.code, self.when, counts[0], self.difference, counts[1]]

    @property
    def is_explained(self) -> bool:
        """Whether all choices are the same, with what is named left out; of no choices nothing is known."""
        decisive = self.as_it_is if self.without is None else self.without
        return bool(decisive) and all(decisive)


def exit_code(lines: Iterable[Line]) -> int:
    return int(not all(line.is_explained for line in lines))


def same(mine: Choices, theirs: Choices) -> list[bool]:
    """Of each step and head whether the sets are equal; ValueError where one side has more steps or heads."""
    pairs = list(zip(mine, theirs, strict=True))
    return [a == b for left, right in pairs for a, b in zip(left, right, strict=True)]


def prompts(ours: Ours, method: str, x: Inputs, theirs: Callable[[Inputs, int, int], Choices]) -> list[bool]:
    """Whether each choice is the same, at the end of all prompts, at all budgets; theirs(inputs, prompt, budget)."""
    found: list[bool] = []
    when = "" if method == "snapkv" else ",when=prompt"
    for prompt in PROMPTS:
        for budget in BUDGETS:
            mine = ours(f"full[evict={method},budget={budget}{when}]", x.until(prompt + 1), prompt)
            found += same(mine, theirs(x, prompt, int(budget * prompt) if budget < 1 else int(budget)))
    return found


def steps(ours: Ours, method: str, x: Inputs, theirs: Callable[[Inputs, int], Choices]) -> list[bool]:
    """The same at the end of a prompt, and after each step but the last."""
    found: list[bool] = []
    for budget in STEP_BUDGETS:
        found += same(ours(f"full[evict={method},budget={budget}]", x.until(DECODED + STEPS), DECODED), theirs(x, budget))
    return found
