"""The best score, or the least error, at equal time, memory, number of parameters and state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attnbench.plots.kinds.fidelity import EXACT, KINDS, kind_of, scale_of
from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import contract, decodes, dtype_of, is_error, key_of, marks_of, scope_of, unfinished, without_settings
from attnbench.plots.rows.style import BASELINE, Series
from attnbench.plots.rows.units import TEXTS, length_text, thousands_text

from .book import Book, Json, hollow, rounded, section, table
from .exactness import mean
from .scores import Tasks

BUDGETS = ((0.25, "1/4 of "), (0.5, "1/2 of "), (1.0, ""))  # of the cost of exact attention
COSTS = {  # title of the axis, kind of number
    "time": ("time per call", "seconds"),
    "token": ("time per token", "seconds"),
    "memory": ("peak memory", "bytes"),
    "parameters": ("learned parameters", "number"),
    "state": ("decode state", "bytes"),
}
MEASURES = {"time": "speed", "token": "speed", "memory": "memory", "state": "memory"}  # of costs
BEST = (
    ("panel", "text"),
    ("at no more than", "text"),
    ("budget", "text"),
    ("best variant", "series"),
    ("its score or error", "score"),
    ("mark", "text"),
    ("exact attention", "score"),
    ("mark of exact attention", "text"),
    ("cells", "cells"),
)


@dataclass(frozen=True)
class Candidate:
    """A parameterisation with its quality, which is a score or an error, and its costs by name."""

    series: Series
    quality: float
    half: float | None
    costs: dict[str, float | None]
    cells: tuple[Cell, ...]

    @property
    def is_unfinished(self) -> bool:
        return unfinished(c for c in self.cells if c.measure == "accuracy")

    def behind(self, cost: str) -> list[Cell]:
        """The cells of its quality and of this cost."""
        return [c for c in self.cells if c.measure in ("accuracy", "fidelity", MEASURES.get(cost))]


@dataclass(frozen=True)
class Contest:
    title: str
    label: str  # of the quality
    fewer: bool  # whether less is better
    metric: str
    candidates: list[Candidate]
    facet: dict[str, str]


def equal_cost(book: Book, tasks: Tasks) -> Json | None:
    panels, rows = [], []
    for contest in [*_of_tasks(tasks), *_of_fidelity(book)]:
        for cost in COSTS:
            held = [c for c in contest.candidates if c.costs.get(cost)]
            if len({c.costs[cost] for c in held}) > 1:
                panels.append(_panel(contest, cost, held, book))
                rows += _budgets(contest, cost, held, book)
    if not panels:
        return None
    return section(
        "equal-cost",
        "At equal cost",
        "Score, or error, against each cost. The line is the best at no more than this cost; read it "
        "upwards from a budget.",
        panels,
        table("best-at-cost", "Best at a share of the cost of exact attention", BEST, rows),
        note="The line and the table go by point estimates; intervals stand at the points. Errors are of "
        "random inputs of scale 1, means over seeds; time and memory are of the forward pass at the same shape.",
    )


def _of_tasks(tasks: Tasks) -> Iterator[Contest]:
    for trade in tasks.trades:
        if len(trade.groups) != 1:
            continue
        found = []
        for dot in trade.dots:
            if dot.score:
                done = [c for c in dot.scored if c.ok]
                costs = {
                    "token": 1 / dot.speed if dot.speed else None,
                    "memory": dot.peak,
                    "parameters": done[0].metric("parameters"),
                    "state": done[0].metric("state_bytes"),
                }
                cells = tuple(dot.cells)
                found.append(Candidate(dot.series, dot.score.mean, dot.score.half, costs, cells))
        label, task = trade.groups[0].label, str(trade.groups[0].cells[0].task)
        yield Contest(trade.title, label, is_error(trade.metric), trade.metric, found, {"task": task})


def _of_fidelity(book: Book) -> Iterator[Contest]:
    times = {_place(c): c for c in book.rows.of("speed") if c.ok and _is_forward(c)}
    peaks = {_place(c): c for c in book.rows.of("memory") if c.ok and _is_forward(c)}
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in book.rows.of("fidelity"):
        if cell.ok and not cell.task and scale_of(cell) == 1 and cell.metric("relative_error"):
            shape = cell.axes.get("heads"), cell.axes.get("head_dim")
            groups.setdefault((kind_of(cell), contract(cell), cell.length, shape), []).append(cell)
    for (kind, mask, length, _), cells in groups.items():
        found = []
        for s in book.styles.series(cells):
            cell, found_error = s.cells[0], mean(list(s.cells))
            if found_error is None:
                continue
            time, peak = times.get(_place(cell)), peaks.get(_place(cell))
            costs = {
                "time": time.metric("time_s.median") if time else None,
                "memory": peak.metric("peak_bytes") if peak else None,
                "state": peak.metric("state_bytes") if peak else None,
            }
            known = tuple(c for c in (*s.cells, time, peak) if c)
            found.append(Candidate(s, max(found_error.mean, EXACT), found_error.half, costs, known))
        title = f"{KINDS.get(kind, kind)}, {mask}, length {length_text(length or 0)}"
        facet = {"mask": mask, "inputs": KINDS.get(kind, kind)}
        yield Contest(title, "relative error", True, "mean_squared_error", found, facet)


def _is_forward(cell: Cell) -> bool:
    forward = cell.axes.get("mode") == "forward" and not decodes(cell)
    return forward and scope_of(cell) == "attention"


def _place(cell: Cell) -> tuple[Any, ...]:
    shape = tuple(cell.axes.get(k) for k in ("length", "heads", "head_dim", "kv_heads"))
    causal = bool(cell.axes.get("causal"))
    return cell.variant, without_settings(cell.params), causal, dtype_of(cell), *shape


def front(held: list[Candidate], cost: str, fewer: bool) -> list[tuple[float, Candidate]]:
    """Returns where the best at no more than a cost changes: the cost, and who is best from there. A training that was
    cut off is best nowhere."""
    out: list[tuple[float, Candidate]] = []
    for candidate in sorted((c for c in held if not c.is_unfinished), key=lambda c: c.costs[cost] or 0.0):
        if not out or _better(candidate.quality, out[-1][1].quality, fewer):
            at = candidate.costs[cost] or 0.0
            if out and out[-1][0] == at:
                out.pop()
            out.append((at, candidate))
    return out


def _better(one: float, other: float, fewer: bool) -> bool:
    return one < other if fewer else one > other


def _panel(contest: Contest, cost: str, held: list[Candidate], book: Book) -> Json:
    title, kind = COSTS[cost]
    steps = front(held, cost, contest.fewer)
    last = max(c.costs[cost] or 0.0 for c in held)
    stairs: list[list[float | None]] = []
    for index, (at, best) in enumerate(steps):
        until = steps[index + 1][0] if index + 1 < len(steps) else last
        stairs += [[rounded(x), *[rounded(best.quality)] * 3] for x in (at, until)]
    lines = []
    for c in held:
        ends = [None, None] if c.half is None else [c.quality - c.half, c.quality + c.half]
        point = [rounded(c.costs[cost]), rounded(c.quality), *map(rounded, ends), book.cells(c.cells)]
        line = {"series": book.series(c.series), "mark": marks_of(c.behind(cost)), "points": [point]}
        lines.append(line | hollow(c.is_unfinished))
    is_score = not contest.fewer
    return {
        "title": f"{contest.title}: {title}",
        "facets": {**contest.facet, "cost": title},
        "x": {"title": title, "kind": kind, "log": True},
        "y": {"title": contest.label, "kind": "score" if is_score else "number", "log": not is_score},
        "lines": lines,
        "front": stairs,
        "context": "; ".join(key_of(cell for c in held for cell in c.behind(cost))),
    }


def _budgets(contest: Contest, cost: str, held: list[Candidate], book: Book) -> Iterator[list[Any]]:
    exact = next((c for c in held if c.series.variant == BASELINE), None)
    if exact is None or not exact.costs[cost]:
        return
    title, kind = COSTS[cost]
    text = TEXTS.get(kind, thousands_text)
    for share, told in BUDGETS:
        most = share * (exact.costs[cost] or 0.0)
        within = [c for at, c in front(held, cost, contest.fewer) if at <= most * (1 + 1e-9)]
        if within:
            best = within[-1]
            yield [
                f"{contest.title} ({contest.label})",
                f"{told}the {title} of exact attention",
                text(most),
                book.series(best.series),
                rounded(best.quality),
                "; ".join(key_of(best.behind(cost))),
                rounded(exact.quality),
                "; ".join(key_of(exact.behind(cost))),
                book.cells([*best.cells, *exact.cells]),
            ]
