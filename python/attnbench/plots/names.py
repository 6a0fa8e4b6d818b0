"""Names of variants among others."""

from __future__ import annotations

from collections.abc import Iterable

from .rows import Cell, Params


def spec_among(variant: str, params: Params, cells: Iterable[Cell]) -> str:
    """`truncated[window=4]`: with those parameters in which the cells of the variant differ."""
    every = [dict(c.params) for c in cells if c.variant == variant]
    words = ",".join(f"{n}={v}" for n, v in params if len({str(p.get(n)) for p in every}) > 1)
    return f"{variant}[{words}]" if words else variant
