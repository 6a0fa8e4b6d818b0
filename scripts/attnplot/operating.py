"""Which speed and memory stand beside an accuracy: one operating point for a whole panel."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .context import SCOPES, decodes, mode_of, scope_of, scope_text
from .rows import Cell, Params
from .style import Series
from .trained import without_settings
from .units import length_text

Context = tuple[Any, ...]


@dataclass(frozen=True)
class Point:
    """A place on the axes and the cell of each series there."""

    context: Context
    cells: dict[tuple[str, Params], Cell]

    def text(self) -> str:
        """Returns `attention alone, forward, length 16k, not causal`."""
        scope, mode, causal, length = self.context[:4]
        return (
            f"{scope_text(scope)}, {mode}, length {length_text(length)}, "
            f"{'causal' if causal else 'not causal'}"
        )


def context_of(cell: Cell) -> Context:
    axes = cell.axes
    return (
        scope_of(cell),
        mode_of(cell),
        bool(axes.get("causal")),
        cell.length or 0,
        *(axes.get(k) or 0 for k in ("batch", "heads", "head_dim", "threads")),
    )


def operating_point(
    cells: Iterable[Cell],
    series: list[Series],
    *,
    causal: bool | None = None,
    like: Context | None = None,
    near: int | None = None,
) -> Point | None:
    """Returns the context in which most series have a value. Of equals it prefers the nearest to
    `like`, then the widest scope, the length nearest to `near`, a training step, the longest
    length."""
    groups: dict[Context, list[Cell]] = {}
    for cell in cells:
        if decodes(cell):  # one token's time says nothing of a whole sequence's
            continue
        if cell.status != "skipped" and (causal is None or bool(cell.axes.get("causal")) == causal):
            groups.setdefault(context_of(cell), []).append(cell)
    best: tuple[Any, Point] | None = None
    for context, members in groups.items():
        matched = {s.key: m for s in series if (m := _match(s, members)) is not None}
        covered = sum(m.ok for m in matched.values())
        same = -sum(a != b for a, b in zip(context, like)) if like else 0
        scope, mode, _, length = context[:4]
        rank = (
            covered,
            same,
            SCOPES.index(scope) if scope in SCOPES else -1,
            -abs(math.log(length / near)) if near and length else 0.0,
            mode == "train",
            length,
            context[4:],
        )
        if covered and (best is None or rank > best[0]):
            best = rank, Point(context, matched)
    return best[1] if best else None


def _match(series: Series, cells: list[Cell]) -> Cell | None:
    """Returns the cell with the series' parameters, or the variant's only cell: a task may set its
    own parameters."""
    own = [c for c in cells if c.variant == series.variant]
    exact = [c for c in own if c.params == without_settings(series.params)]
    if exact:
        return exact[-1]
    return own[0] if len({c.params for c in own}) == 1 else None
