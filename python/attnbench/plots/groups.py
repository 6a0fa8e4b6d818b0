"""Which variants share a panel where there are too many for one: those of a family, in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST = 7  # variants in a panel beside exact attention: as many as there are colours
JOINED = 5  # up to which small families that follow each other share a panel
TITLE = 34  # characters that a panel's title has room for


@dataclass(frozen=True)
class Group:
    title: str
    variants: tuple[str, ...]


def grouped(families: Sequence[tuple[str, Sequence[str]]]) -> list[Group]:
    """Panels of variants for families in the catalog's order; "" is no family's name."""
    everything = [name for _, names in families for name in names]
    if len(everything) <= MOST:
        return [Group("", tuple(everything))]
    out: list[Group] = []
    joinable = False
    for family, names in families:
        parts = math.ceil(len(names) / MOST)
        both = f"{out[-1].title}, {family}" if joinable else ""
        few = joinable and len(out[-1].variants) + len(names) <= JOINED
        if few and len(both) <= TITLE:
            out[-1] = Group(both, (*out[-1].variants, *names))
            continue
        size = math.ceil(len(names) / parts)
        for part in range(parts):
            own = tuple(names[part * size : (part + 1) * size])
            title = family if parts == 1 else f"{family} ({part + 1} of {parts})"
            out.append(Group(title if family else f"{own[0]} to {own[-1]}", own))
        joinable = parts == 1 and bool(family)
    return out
