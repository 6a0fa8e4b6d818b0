"""Which speed and memory stand beside an accuracy: one operating point for a whole panel."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from .context import SCOPES, decodes, dtype_of, mode_of, scope_of, scope_text
from .rows import Cell, Params
from .style import Series
from .trained import without_settings
from .units import length_text

Context = tuple[Any, ...]


@dataclass(frozen=True)
class Point:
    """A place on the axes, the cell of each series there, and cells of other parameters."""

    context: Context
    cells: dict[tuple[str, Params], Cell]
    others: tuple[Cell, ...] = ()

    @property
    def axes(self) -> dict[str, Any]:
        return next(iter(self.cells.values())).axes

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
        *(axes.get(k) or 0 for k in ("batch", "heads", "head_dim")),
        axes.get("kv_heads") or axes.get("heads") or 0,  # the rank prefers heads of their own
        dtype_of(cell) == "float32",  # and float32
        -(axes.get("layers") or 2),  # and shallow models
    )


def operating_point(
    cells: Iterable[Cell],
    series: list[Series],
    *,
    causal: bool | None = None,
    near: int | None = None,
    also: Collection[Context] = (),
) -> Point | None:
    """Returns the context in which most series have a value. Of equals it prefers one of `also`,
    where another measure was taken, then the widest scope, the length nearest to `near`, a training
    step, the longest length."""
    groups: dict[Context, list[Cell]] = {}
    for cell in cells:
        if decodes(cell):  # one token's time says nothing of a whole sequence's
            continue
        if cell.status != "skipped" and (causal is None or bool(cell.axes.get("causal")) == causal):
            groups.setdefault(context_of(cell), []).append(cell)
    best: tuple[Any, Context] | None = None
    for context, members in groups.items():
        covered = sum(m.ok for s in series if (m := _match(s, members)))
        scope, mode, _, length = context[:4]
        rank = (
            covered,
            context in also,
            SCOPES.index(scope) if scope in SCOPES else -1,
            -abs(math.log(length / near)) if near and length else 0.0,
            mode == "train",
            length,
            context[4:],
        )
        if covered and (best is None or rank > best[0]):
            best = rank, context
    return point_at(best[1], groups[best[1]], series) if best else None


def point_at(context: Context, cells: Iterable[Cell], series: list[Series]) -> Point | None:
    """Returns the point of this context, or None where no series was measured there."""
    members = [c for c in cells if context_of(c) == context and c.status != "skipped"]
    matched = {s.key: m for s in series if (m := _match(s, members))}
    taken = {c.id for c in matched.values()}
    others = tuple(c for c in members if c.ok and c.id not in taken)
    return Point(context, matched, others) if matched else None


def _match(series: Series, cells: list[Cell]) -> Cell | None:
    """Returns the cell with the series' parameters."""
    wanted = series.variant, without_settings(series.params)
    return next((c for c in reversed(cells) if (c.variant, c.params) == wanted), None)
