"""Sentences on the trainings behind a table of scores: how many were cut off, which learning rates were chosen among which, how many numbers the models
learn, and where exact attention stands beside a variant."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnbench.plots.rows.learned import published
from attnbench.plots.rows.learning import RATE, curve_of
from attnbench.plots.rows.read import Cell, Rows, read_rows
from attnbench.plots.rows.scores import stand_ins
from attnbench.plots.rows.settings import FAILURES, is_error, unfinished, winners
from attnbench.plots.rows.terms import EXACT

from .parameters import over_exact

FEWEST_RATES = 3  # of which one is at no end
LATE = 0.8  # of the steps: a best score after that may still grow


def trainings(path: Path) -> str:
    rows = published(read_rows([path]), without_control=False)
    won = [c for c in winners(rows.of("accuracy")) if c.status != "skipped"]
    told = (_ends(won), _lost(won), _edges(won, rows), _parameters(won), _stand_ins(won))
    return " ".join(sentence for sentence in told if sentence)


def _ends(won: list[Cell]) -> str:
    cut = [c for c in won if unfinished([c])]
    late = sum(_is_late(c) for c in cut)
    if not cut:
        return f"All {len(won)} trainings behind the scores ended by themselves."
    return (
        f"Of {len(won)} trainings behind the scores {len(cut)} were stopped by their steps, {late} of these with their best validation score in the "
        f"last fifth of them: with more steps their scores, and their order, may be others."
    )


def _is_late(cell: Cell) -> bool:
    curve = curve_of(cell)
    best = min if is_error(cell.scored_by) else max
    return bool(curve) and next(s for s, v in sorted(curve.items()) if v == best(curve.values())) > LATE * max(curve)


def _lost(won: list[Cell]) -> str:
    lost = [f"`{c.variant}` on `{c.task}`, {c.status}" for c in won if c.status in FAILURES]
    return f"Without a score: {'; '.join(lost)}." if lost else ""


def _edges(won: list[Cell], rows: Rows) -> str:
    """A best rate at an end of those tried may not be the best there is; of fewer than three every rate is at an end."""
    tried: dict[Any, set[float]] = {}
    for cell in (*rows.of("accuracy"), *rows.trials):
        if RATE in cell.tuned:
            tried.setdefault(_of(cell), set()).add(float(cell.training[RATE]))
    chosen = {_of(c): float(c.training[RATE]) for c in won if RATE in c.tuned and len(tried[_of(c)]) >= FEWEST_RATES}
    if not chosen:
        return ""
    least, most = (sum(rate == end(tried[key]) for key, rate in chosen.items()) for end in (min, max))
    sizes = sorted({len(tried[key]) for key in chosen})
    return f"Of {len(chosen)} choices among {_listed(sizes)} learning rates {most} fell on the largest and {least} on the smallest."


def _of(cell: Cell) -> tuple[Any, ...]:
    return cell.variant, cell.params, cell.task, cell.task_params


def _listed(sizes: Iterable[int]) -> str:
    return " or ".join(str(size) for size in sizes)


def _stand_ins(won: list[Cell]) -> str:
    """On which tasks a variant is not alone."""
    said = stand_ins(won)
    tasks = dict.fromkeys(f"`{c.task}`" for c in won if c.metrics.get("metric") == "exact_match")
    return f"On {', '.join(tasks)} {said[0].lower()}{said[1:]}" if said else ""


def _parameters(won: list[Cell]) -> str:
    """Of models of one task over that of exact attention."""
    tasks: dict[Any, list[Cell]] = {}
    for cell in won:
        tasks.setdefault((cell.task, cell.task_params), []).append(cell)
    shares = [(share, c) for cells in tasks.values() for c in cells if (share := over_exact([c], cells))]
    if not shares:
        return ""
    (least, small), (most, large) = (end(shares, key=lambda s: s[0]) for end in (min, max))
    if least == most:
        return f"All models of a task learn as many numbers as that of `{EXACT}`."
    return f"Models learn {least:.2f} (`{small.variant}`) to {most:.2f} times (`{large.variant}` on `{large.task}`) the numbers of that of `{EXACT}`."
