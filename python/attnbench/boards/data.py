"""What the board's script reads: numbers as columns of indices, and the split into pages that stay small."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from attnbench.plots.rows.read import Params
from attnbench.plots.rows.settings import MODE_WORDS, SETTING, shown
from attnbench.plots.rows.units import length_text

from .groups import Block
from .numbers import MEMORY, SCORES, SPEED, Number
from .submissions import Submission

DIGITS = 5  # significant ones of a number in the page
MOST_BYTES = 4_000_000  # of the data of a page; style and script have 40 kB more
# What pages are split by, one after the other, until each is small enough.
KEYS: tuple[Callable[[Number], str], ...] = (
    lambda n: f"{n.place.instruction_set}, {n.place.protocol}",
    lambda n: {SPEED: "times", SCORES: "scores", MEMORY: "memory"}[n.measure],
    lambda n: n.task if n.measure == SCORES else MODE_WORDS.get(n.mode, n.mode),
    lambda n: "causal" if n.causal else "not causal",
    lambda n: f"length {length_text(n.length or 0)}",
)


@dataclass(frozen=True)
class Part:
    """Numbers of one page; `title` has a word for each key by which it was split, none for the whole board."""

    title: tuple[str, ...]
    numbers: list[Number]


def parts_of(numbers: list[Number], most: int = MOST_BYTES, keys: Sequence[Callable[[Number], str]] = KEYS) -> list[Part]:
    """Pages whose numbers have at most so many bytes, as far as splitting reaches."""
    if not keys or len(json.dumps(lines_of(numbers, Names()))) <= most:
        return [Part((), numbers)]
    groups: dict[str, list[Number]] = {}
    for n in numbers:
        groups.setdefault(keys[0](n), []).append(n)
    return [
        Part((*((title,) if len(groups) > 1 else ()), *part.title), part.numbers)
        for title, own in sorted(groups.items())
        for part in parts_of(own, most, keys[1:])
    ]


class Names:
    """Gives each value a number, in the order of its first use."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return self._places.setdefault(value, len(self._places))

    @property
    def all(self) -> list[Any]:
        return list(self._places)


def rounded(value: float | None) -> float | int | None:
    """A whole number stays one: bytes are exact."""
    if value is None or isinstance(value, int):
        return value
    found = float(f"{value:.{DIGITS}g}")
    return int(value) if value.is_integer() and abs(value) < 2**53 else found


def lines_of(numbers: Iterable[Number], texts: Names) -> list[list[Any]]:
    """A line for each number; board.js names the fields in the same order. Texts are indices of `texts`."""
    return [
        [
            n.measure,
            texts(n.place.instruction_set),
            texts(n.place.protocol),
            texts(n.submission.file),
            texts((n.variant, n.params)),
            texts(n.family),
            texts(n.mode),
            int(n.causal),
            n.length,
            texts(n.task),
            texts(n.setting),
            texts(n.machine.text),
            *map(rounded, (n.value, n.low, n.high)),
            *map(rounded, _more(n)),
            n.marks,
            texts(n.member),
            *map(texts, n.cells),
        ]
        for n in numbers
    ]


def _more(n: Number) -> tuple[float | None, float | None]:
    """Of a score: the best rule without attention, and seeds. Of memory: the ratio to exact attention, and bytes of the state."""
    if n.measure == SCORES:
        return n.more.get("floor"), n.more.get("seeds")
    return n.more.get("ratio"), n.more.get("state")


class Labels:
    """Names of variants among others: with the parameters in which those of the board differ."""

    def __init__(self, keys: Iterable[tuple[str, Params]]) -> None:
        seen: dict[str, list[Params]] = {}
        for variant, params in keys:
            seen.setdefault(variant, []).append(params)
        self._differ = {variant: _differing(own) for variant, own in seen.items()}

    def __call__(self, key: tuple[str, Params]) -> str:
        variant, params = key
        told = [f"{shown(k)}={v}" for k, v in params if k in self._differ.get(variant, ())]
        return f"{variant}[{', '.join(told)}]" if told else variant


def _differing(seen: list[Params]) -> set[str]:
    every = [dict(params) for params in dict.fromkeys(seen)]
    names = {name for params in every for name in params}
    return {name for name in names if name.startswith(SETTING) or len({params.get(name) for params in every}) > 1}


def data_of(numbers: list[Number], blocks: Iterable[Block], labels: Labels) -> dict[str, Any]:
    """All that a page's script reads."""
    texts = Names()
    lines = lines_of(numbers, texts)
    settings = {(n.place, n.measure, *((n.mode, n.causal, n.length, n.setting) if n.measure == SPEED else ())) for n in numbers}
    shown_blocks = [b for b in blocks if _at(b) in settings]
    submissions = dict.fromkeys(n.submission for n in numbers)
    return {
        "numbers": lines,
        "texts": [labels(t) if isinstance(t, tuple) else t for t in texts.all],
        "bundles": {s.file: bundle_of(s) for s in submissions},
        "blocks": [block_of(b, labels) for b in shown_blocks],
        "modes": MODE_WORDS,
    }


def _at(block: Block) -> tuple[Any, ...]:
    own = (block.mode, block.causal, block.length, block.setting) if block.measure == SPEED else ()
    return (block.place, block.measure, *own)


def bundle_of(s: Submission) -> dict[str, Any]:
    return {"page": f"bundles/{s.page}.html", "digest": s.digest, "statement": s.statement, "signed": s.signature,
            "state": s.verdict.state, "mark": s.verdict.mark, "words": s.verdict.words,
            "anew": s.verdict.cells, "sources": len(s.sources)}  # fmt: skip


def block_of(block: Block, labels: Labels) -> dict[str, Any]:
    return {
        "measure": block.measure,
        "set": block.place.instruction_set,
        "protocol": block.place.protocol,
        "mode": block.mode,
        "causal": block.causal,
        "length": block.length,
        "setting": block.setting,
        "verified": block.only_verified,
        "judges": block.judges,
        "difference": rounded(block.difference),
        "lines": [
            [labels(line.key), rounded(line.rank), [int(m) for m in line.members], *map(rounded, (line.ratio, line.low, line.high)), line.faster]
            for line in block.lines
        ],
        "dropped": [labels(key) for key in block.dropped],
        "unverified": block.unverified,
    }
