"""`python -m dev.kept --clones FOLDER` prints the table of results/equivalence.md: which positions caches that forget keep, here
and in published code, on the same queries, keys and values.

FOLDER holds clones of the authors' repositories; what is missing is cloned. Exit code 1 where choices differ for another reason
than those that the table names. Some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path

from attnbench._place import BUILT
from attnbench.plots.rows.units import markdown

from . import by_authors, in_kvpress
from .by_authors import Clones
from .compared import DECODED, STEPS, Choices, Line, exit_code, prompts, same, steps
from .inputs import HEADS, Inputs, inputs_of, model_of, ours

LENGTH = 520
LONG, LONG_STEPS = 300, 50  # of quest
PAGE_BUDGETS = (48, 64, 128)  # in pages of 16

# What differs in kvpress: at the end of a prompt, and after a step.
IN_KVPRESS = {
    "sinks": ("", "it takes slots for positions, and leaves what it keeps in no order"),
    "h2o": (
        "means over the queries that see a key, where the paper and ours sum; no last half that stays",
        "weights of the last step alone, which are not added up; no last half that stays",
    ),
    "tova": ("the last position always stays",) * 2,
    "snapkv": ("the last 64 queries vote; ours the last 32, or half the budget", None),  # it forgets no step
    "norm": ("", ""),
}


def of_kvpress(program: Path, x: Inputs) -> Iterator[Line]:
    mine = partial(ours, program)
    for method, (of_prompt, of_step) in IN_KVPRESS.items():
        as_it_is, changed = in_kvpress.AS_IT_IS[method], in_kvpress.CHANGED.get(method)
        code = f"kvpress {version('kvpress')} `{type(as_it_is(0)).__name__}`"

        def at_end(made: in_kvpress.Made, method: str = method) -> list[bool]:
            return prompts(mine, method, x, partial(in_kvpress.of_prompt, made))

        def after_steps(made: in_kvpress.Made, method: str = method) -> list[bool]:
            return steps(mine, method, x, lambda x, budget: in_kvpress.of_steps(made, x, DECODED, budget, STEPS))

        yield Line(method, code, "prompt", at_end(as_it_is), of_prompt, at_end(changed) if changed and of_prompt else None)
        if of_step is not None:
            yield Line(method, code, "steps", after_steps(as_it_is), of_step, after_steps(changed) if changed else None)


def of_authors(program: Path, clones: Clones, x: Inputs) -> Iterator[Line]:
    mine = partial(ours, program)
    for method, (source, made) in by_authors.REDUCING.items():
        code = f"{source.repository} {source.commit}"

        def kept(x: Inputs, prompt: int, budget: int, count: int = 1, made: Callable = made) -> Choices:
            return by_authors.kept(made(clones, x, budget), x, prompt, count)

        yield Line(method, code, "prompt", prompts(mine, method, x, kept))
        yield Line(method, code, "steps", steps(mine, method, x, lambda x, budget: kept(x, DECODED, budget, STEPS)))


def of_snapkv(program: Path, clones: Clones, shared: Inputs, own: Inputs) -> Iterator[Line]:
    def compared(x: Inputs, as_one: bool) -> list[bool]:
        def kept(x: Inputs, prompt: int, budget: int) -> Choices:
            return by_authors.snapkv(clones, x, prompt, budget, in_kvpress.window_of(budget), as_one)

        return prompts(partial(ours, program, by_query=True), "snapkv", x, kept)

    code = f"{by_authors.SNAPKV.repository} {by_authors.SNAPKV.commit}"
    yield Line(
        "snapkv", f"{code}, 4 query heads share keys", "prompt", compared(shared, False),
        "each query head keeps positions of its own; ours keeps one set, by the sum of the votes of all that share keys", compared(shared, True),
    )  # fmt: skip
    yield Line("snapkv", f"{code}, no shared keys", "prompt", compared(own, False))


def of_quest(program: Path, clones: Clones, x: Inputs) -> Iterator[Line]:
    def compared(theirs: Callable[[Clones, Inputs, int, int], list[frozenset[int]]]) -> list[bool]:
        found: list[bool] = []
        part = x.until(LONG + LONG_STEPS)
        for budget in PAGE_BUDGETS:
            mine = ours(program, f"full[evict=quest,budget={budget}]", part, LONG, by_query=True, own=True, dtype="float32")
            found += same(mine, [theirs(clones, part, i, budget) for i in range(LONG, LONG + LONG_STEPS)])
        return found

    code = f"{by_authors.QUEST.repository} {by_authors.QUEST.commit}"
    yield Line(
        "quest", f"{code}, its evaluation", "steps", compared(partial(by_authors.quest, own_first=False)),
        "the page of the step competes with the others; ours is always read", compared(partial(by_authors.quest, own_first=True)),
    )  # fmt: skip
    yield Line("quest", f"{code}, the reference of its kernels", "steps", compared(by_authors.quest_kernel))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clones", type=Path, required=True)
    parser.add_argument("--program", type=Path, default=BUILT)
    given = parser.parse_args()
    shared, own = (inputs_of(model_of(heads), LENGTH) for heads in (2, HEADS))
    clones, lines = Clones(given.clones), []
    for made in (
        of_kvpress(given.program, shared),
        of_authors(given.program, clones, shared),
        of_snapkv(given.program, clones, shared, own),
        of_quest(given.program, clones, shared),
    ):
        for line in made:
            print(line.entries, file=sys.stderr, flush=True)
            lines.append(line)
    order = [*IN_KVPRESS, "quest"]
    lines.sort(key=lambda line: order.index(line.method))
    heads = ["method", "code", "when", "equal as it is", "the difference", "equal without it"]
    print(markdown(heads, (line.entries for line in lines)))
    return exit_code(lines)


if __name__ == "__main__":
    sys.exit(main())
