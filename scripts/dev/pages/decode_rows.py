"""The rows behind results/decoding.md: which cells its tables compare, what tells a line, and the scores that belong to it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnbench.plots.rows.kept import TYPED, evicts, is_growing, is_whole, kept_text, kv_heads, line_of, scored, share_of
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Cell, Rows, read_rows
from attnbench.plots.rows.scores import Score, score
from attnbench.plots.rows.settings import CUT, LOST, decodes, mark_of, marks_of, scope_of, winners
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import seconds_text

HEADS, HEAD_DIM, SHARED = 8, 128, 2  # of results/reference/decoding.toml: query heads, their width, heads of keys where nothing else is said
ONE, TWO = 1, 2  # threads of the table of types, and of all others
OTHERWISE = "§"  # beside a score of trainings whose heads do not share keys as the timed ones do
RECALL = ("mqar", "needle")  # tasks whose scores say what a cache still finds
UNLIKE = "‡"  # beside a score of a state or latent, whose share of exact attention's bytes follows from the length
SEEDS = 3  # of a score that is judged; of fewer their number is told
ALIKE = 1.3  # a share of the positions and another one, of a shorter sequence, at most so many times apart, are one setting


def tokens(rows: Rows, threads: int) -> list[Cell]:
    """One decoded token of attention alone, with the heads of this page."""
    return [
        c
        for c in rows.of("speed")
        if decodes(c)
        and scope_of(c) == "attention"
        and (c.axes.get("heads"), c.axes.get("head_dim"), c.axes.get("threads")) == (HEADS, HEAD_DIM, threads)
    ]


def time_of(cell: Cell | None) -> float | None:
    return cell.metric("time_s.median") if cell and cell.ok else None


def interval_of(cell: Cell) -> tuple[float, float]:
    """95 %, of the median; not numbers where none is told."""
    low, high = cell.metric("time_s.ci_low"), cell.metric("time_s.ci_high")
    return (low, high) if low is not None and high is not None else (math.nan, math.nan)


def half_of(cell: Cell) -> float:
    """The wider side of the interval over the median: it comes from logarithms, and reaches further up than down."""
    time, (low, high) = time_of(cell) or math.nan, interval_of(cell)
    return max(high - time, time - low) / time


def time_text(cell: Cell | None) -> str:
    """`353 µs ±2 %*`: the median, the wider side of its interval and the marks."""
    time = time_of(cell)
    if cell is None or time is None:
        return "—"
    half = half_of(cell)
    return f"{seconds_text(time)} ±{f'{100 * half:.0f}' if half < 1 else 'over 100'} %{mark_of(cell)}"


def bytes_of(cell: Cell | None) -> float | None:
    return cell.metric("state_bytes") if cell and cell.ok else None


def ratio_of(cell: Cell | None, of: Cell | None) -> str:
    """Of two medians, with the marks of both; undecided where their intervals meet."""
    own, other = time_of(cell), time_of(of)
    if not own or not other:
        return "—"
    ratio = own / other
    said = f"{f'{ratio:.2f}' if ratio >= 0.1 else f'{ratio:.2g}'}{marks_of((cell, of))}"
    return said if cell and of and (is_surely_faster(cell, of) or is_surely_faster(of, cell)) else f"{said} (undecided)"


def is_surely_faster(a: Cell, b: Cell) -> bool:
    """Whether the interval of its time ends below that of the other one."""
    return interval_of(a)[1] < interval_of(b)[0]


def lines_of(rows: Rows, threads: int = TWO) -> dict[str, dict[int, Cell]]:
    """Cells by what is kept and by length; in the catalogue's order, then by the size of what is kept."""
    styles = Styles(rows)

    def order(cell: Cell) -> tuple[Any, ...]:
        return styles.place(cell.variant), evicts(cell), bool(cell.axes.get(TYPED)), -kv_heads(cell)[0], -(share_of(cell) or 0), str(cell.axes.get(TYPED))

    found: dict[str, dict[int, Cell]] = {}
    for cell in sorted(tokens(rows, threads), key=order):
        found.setdefault(kept_text(cell), {})[cell.length or 0] = cell
    return found


def exact_line(lines: dict[str, dict[int, Cell]]) -> dict[int, Cell]:
    """Exact attention from all that was kept, with the heads that the others have: what they are compared with."""
    return next((own for own in lines.values() if is_whole(next(iter(own.values()))) and kv_heads(next(iter(own.values())))[0] == SHARED), {})


def scores_of(path: Path) -> list[Cell]:
    """Every score that counts, those under other caches too."""
    return scored(winners(published(read_rows([path]), without_control=False).of("accuracy")))


def scores_like(cell: Cell, scores: Iterable[Cell], task: str) -> list[Cell]:
    """The scores of a task under what keeps the same share of its positions, or has heads shared alike; a cell a seed. A budget that is a number
    of positions and one that is a share of those so far are not alike: while a sequence is short they forget other positions."""
    if cell.axes.get(TYPED):
        return []
    own = [c for c in scores if c.task == task and line_of(c) == line_of(cell) and c.variant == cell.variant and is_growing(c) == is_growing(cell)]
    share = share_of(cell)
    if is_whole(cell):
        own = [c for c in own if _sharing(c) == _sharing(cell)]
    elif share is not None:
        apart = {c.params: abs(math.log((share_of(c) or math.inf) / share)) for c in own}
        nearest = min(apart, key=lambda params: apart[params], default=())
        own = [c for c in own if c.params == nearest and apart[nearest] <= math.log(ALIKE)]
    return own if len({c.params for c in own}) == 1 else []


def _sharing(cell: Cell) -> float:
    own, heads = kv_heads(cell)
    return own / heads


def is_shared_otherwise(cell: Cell, own: Iterable[Cell]) -> bool:
    """Whether the timed heads share keys otherwise than those of the trainings that were scored."""
    return any(_sharing(c) != _sharing(cell) for c in own)


def marks_of_score(cell: Cell, own: list[Cell]) -> str:
    """What differs between the cell that was timed and those that were scored."""
    unlike = share_of(cell) is None and not is_whole(cell)
    return (OTHERWISE if is_shared_otherwise(cell, own) else "") + (UNLIKE if unlike else "")


def few_seeds(own: list[Cell]) -> str:
    """` (1 seed)` where there are too few."""
    count = len({c.axes.get("seed") for c in own})
    return "" if count >= SEEDS else f" ({count} seed{'s' if count > 1 else ''})"


def counts(cells: list[Cell]) -> Score | None:
    """The score where it has a rank: every training ended by itself, and none failed."""
    return None if {CUT, LOST} & set(marks_of(cells)) else score(cells)


def not_measured(cells: Iterable[Cell]) -> str:
    """Below a table: cells that gave no number, by the reason."""
    why: dict[str, list[str]] = {}
    for c in cells:
        if not c.ok:
            where = f" at {c.length:,}" if c.length else ""
            why.setdefault(f"{c.status}: {c.reason}", []).append(f"{kept_text(c)}{where}")
    return "".join(f"\n\n{reason[0].upper()}{reason[1:]} ({'; '.join(dict.fromkeys(what))})." for reason, what in why.items())
