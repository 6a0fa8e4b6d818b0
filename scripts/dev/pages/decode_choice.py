"""Markdown: five sentences on which cache or state to take, made from rows, and the picture that goes with them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from attnbench._place import ROOT
from attnbench.plots.rows.kept import TYPED, evicts, is_exact_cache, is_whole, kept_text
from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.scores import Score
from attnbench.plots.rows.settings import MEANINGS, mark_of, marks_of
from attnbench.plots.rows.units import bytes_text, length_text, seconds_text

from .by_family import entry
from .decode_rows import (
    ONE,
    OTHERWISE,
    RECALL,
    SEEDS,
    TWO,
    UNLIKE,
    bytes_of,
    counts,
    exact_line,
    few_seeds,
    is_surely_faster,
    lines_of,
    marks_of_score,
    ratio_of,
    scores_like,
    scores_of,
    time_of,
    tokens,
)
from .decode_tables import ASKED_TIME, FLOAT32, asked

KEPT = 0.05  # the least that the seeds leave open is so far below exact attention's score at most: its recall is kept
ALT = "Score against the bytes that decoding keeps, one line a family: exact attention that forgets above, other caches and states below"


def picture(scored: Path, drawn: str) -> str:
    """The link, as a page in results/ has it, where rows and picture are there."""
    if not (ROOT / drawn).exists():
        return f"Not drawn yet: `scripts/bench plot {os.path.relpath(scored, ROOT)} --kind kept -o {os.path.dirname(drawn)}`."
    return f"![{ALT}]({os.path.relpath(ROOT / drawn, ROOT / 'results')})"


def sentences(path: Path, scored: Path) -> str:
    """One for each length, one on states of constant size, one on types of numbers."""
    rows, scores = read_rows([path]), scores_of(scored)
    lines = lines_of(rows)
    exact = exact_line(lines)
    told = [_at(n, lines, exact, scores) for n in sorted(exact)]
    told += [_constant(lines, exact, scores), _types([c for c in tokens(rows, ONE) if is_whole(c) or c.axes.get(TYPED)])]
    return "\n".join(f"- {sentence}" for sentence in told if sentence)


def judged(scores: list[Cell]) -> dict[str, Score]:
    """The tasks of recall that exact attention, whose heads share no keys, has a score of, with that score."""
    found = {task: counts([c for c in scores if c.task == task and is_exact_cache(c)]) for task in RECALL}
    return {task: score for task, score in found.items() if score and len(score.seeds) >= SEEDS}


def keeps_recall(cell: Cell, scores: list[Cell]) -> bool:
    """Whether on every task that is judged the lower end of the interval is at most KEPT below exact attention's mean, of as many seeds. Of
    settings that were not scored, or whose trainings did not end by themselves, nothing is said."""
    references = judged(scores)
    for task, reference in references.items():
        own = counts(scores_like(cell, scores, task))
        if own is None or own.half is None or len(own.seeds) < len(reference.seeds) or not own.mean - own.half >= reference.mean - KEPT:
            return False
    return bool(references)


def _at(length: int, lines: dict[str, dict[int, Cell]], exact: dict[int, Cell], scores: list[Cell]) -> str:
    whole = exact[length]
    if not whole.ok:
        return ""
    said = f"At **{length_text(length)}** and {TWO} threads exact attention takes {_time(whole)} a token and keeps {bytes_text(bytes_of(whole) or 0)}"
    tasks = " and ".join(f"`{task}`" for task in judged(scores))
    if not tasks:
        return f"{said}; it has no finished scores of {SEEDS} seeds itself, and nothing is ranked."
    held = [own[length] for own in lines.values() if length in own and own[length].ok and own is not exact and keeps_recall(own[length], scores)]
    same = [c for c in held if evicts(c)]
    trained = [c for c in held if c not in same]
    if not held:
        return f"{said}; of nothing else that was timed do {SEEDS} finished seeds say that it is within {KEPT} of its score on {tasks}."
    found = [
        _best("of caches of the same weights", same, whole)
        or f"no cache of the same weights that keeps this score {'is surely faster, or smaller' if same else 'was timed at this length'}",
        _best("of what is trained for itself (with one learning rate for all)", trained, whole) or "nothing that is trained for itself is",
    ]
    return f"{said}. Within {KEPT} of its score on {tasks}, of models trained without shared heads: {found[0]}; {found[1]}."


def _best(of: str, held: list[Cell], whole: Cell) -> str:
    """The least time and the fewest bytes, each where it is less than exact attention's, of times surely; empty where neither is."""
    faster = [c for c in held if is_surely_faster(c, whole)]
    smaller = [c for c in held if (bytes_of(c) or 0) < (bytes_of(whole) or 0)]
    fast, small = (_least(own, value) if own else None for own, value in ((faster, time_of), (smaller, bytes_of)))
    if fast and small and bytes_of(fast) == bytes_of(small):
        return f"{of}, {_named(fast)} with least time and fewest bytes, {_figures(fast, whole)}{_near(fast, faster)}{_as_small(fast, smaller)}"
    told = [f"{_named(fast)} with least time, {_figures(fast, whole)}{_near(fast, faster)}"] if fast else []
    told += [f"{_named(small)} with fewest bytes, {_figures(small, whole)}{_as_small(small, smaller)}"] if small else []
    return f"{of}, {', and '.join(told)}" if told else ""


def _named(cell: Cell) -> str:
    return kept_text(cell) + marks_of_score(cell, [])


def _least(cells: list[Cell], value: Callable[[Cell], float | None]) -> Cell:
    return min(cells, key=lambda c: (value(c) or float("inf"), kept_text(c)))


def _time(cell: Cell) -> str:
    return f"{seconds_text(time_of(cell) or 0)}{mark_of(cell)}"


def _figures(cell: Cell, whole: Cell) -> str:
    """`120 µs (0.34 of it) and 1.2 MiB (0.15)`."""
    size, most = bytes_of(cell) or 0, bytes_of(whole) or 1
    return f"{_time(cell)} ({ratio_of(cell, whole)} of its time) and {bytes_text(size)} ({size / most:.2g} of its bytes)"


def _near(best: Cell, held: list[Cell]) -> str:
    """Names what the intervals do not tell apart from the best."""
    near = [kept_text(c) for c in held if c is not best and not is_surely_faster(best, c)]
    return f" (not told apart from {', '.join(near)})" if near else ""


def _as_small(best: Cell, held: list[Cell]) -> str:
    same = [kept_text(c) for c in held if c is not best and bytes_of(c) == bytes_of(best)]
    return f" (as few: {', '.join(same)})" if same else ""


def _constant(lines: dict[str, dict[int, Cell]], exact: dict[int, Cell], scores: list[Cell]) -> str:
    """States that keep as many bytes at every length, of those that were timed at the longest of exact attention."""
    last = max((n for n, c in exact.items() if c.ok), default=None)
    if last is None:
        return ""
    told = []
    for name, own in lines.items():
        cells = [c for c in own.values() if c.ok]
        cell = own.get(last)
        if cell is None or not cell.ok or len(cells) < 2 or len({bytes_of(c) for c in cells}) > 1 or is_whole(cell):
            continue
        found = {task: like for task in RECALL if (like := scores_like(cell, scores, task))}
        recall = ", ".join(f"`{task}` {entry(like)}{marks_of_score(cell, like)}{few_seeds(like)}" for task, like in found.items())
        told.append(f"{name} {_figures(cell, exact[last])}, {recall or 'not scored'}")
    return f"States of a size that no length changes, beside exact attention at {length_text(last)}: {'; '.join(told)}." if told else ""


def _types(cells: list[Cell]) -> str:
    """At the longest length that float32 and another type have."""
    by: dict[int, dict[str, Cell]] = {}
    for c in cells:
        if c.ok:
            by.setdefault(c.length or 0, {})[str(c.axes.get(TYPED) or FLOAT32)] = c
    length = max((n for n, own in by.items() if FLOAT32 in own and len(own) > 1), default=None)
    if length is None:
        return ""
    own = by[length]
    plain = own.pop(FLOAT32)
    told = [
        f"`{name}` {ratio_of(c, plain)} of the time{f' (asked {asked(ASKED_TIME[name])})' if name in ASKED_TIME else ''} and "
        f"{(bytes_of(c) or 0) / (bytes_of(plain) or 1):.2f} of the bytes"
        for name, c in sorted(own.items(), key=lambda item: -(bytes_of(item[1]) or 0))
    ]
    return f"Of a cache in float32, {length_text(length)} long and by one thread ({_time(plain)} a token), other numbers take: {'; '.join(told)}."


def marks_told(path: Path, scored: Path) -> str:
    """What the marks of this page mean, of those that its rows carry."""
    rows = read_rows([path])
    found = marks_of([*rows.of("speed"), *scores_of(scored)])
    told = [f"- `{mark}`: {MEANINGS[mark]}." for mark in found]
    told.append(f"- `{OTHERWISE}`: of trainings whose four heads share no keys, while those of the timed cell do.")
    told.append(f"- `{UNLIKE}`: of a state or latent that was scored on 32 to 128 positions, where it is a larger share of what exact attention keeps than where it was timed.")
    return "\n".join(told)
