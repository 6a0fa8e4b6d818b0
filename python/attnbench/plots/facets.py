"""Small multiples: the lines of a panel in parts that can be told apart, the others grey behind."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .groups import MOST
from .looks import COLORS
from .style import BASELINE, Series, Styles

MOST_LINES = 8  # in a panel beside exact attention


@dataclass(frozen=True)
class Facet:
    title: str  # empty where there is only one
    own: list[Series]  # drawn in full, exact attention among them
    others: list[Series]  # grey


def facets(series: list[Series], styles: Styles, *, by_variant: bool = False) -> list[Facet]:
    """One where few enough lines are drawn, else one for each group of families, with exact
    attention in each. `by_variant`: the parameterisations of a variant count as one line."""
    exact = {s.key for s in styles.baselines(series)}
    rest = [s for s in series if s.key not in exact]
    few = len({s.variant for s in rest}) <= MOST if by_variant else len(rest) <= MOST_LINES
    if few:
        return [Facet("", series, [])]
    parts: list[tuple[str, list[Series]]] = []
    for index, group in enumerate(styles.groups):
        names = (*group.variants, *((BASELINE,) if index == 0 else ()))
        own = [s for s in rest if s.variant in names]
        cut = [own] if by_variant else _cut(own)
        for number, part in enumerate(cut):
            several = f" ({number + 1} of {len(cut)})" if len(cut) > 1 else ""
            title = group.title or ", ".join(dict.fromkeys(s.variant for s in part))
            parts.append((title + (several if group.title else ""), part))
    out = []
    for title, part in parts:
        keys = {s.key for s in part} | exact
        own = [s for s in series if s.key in keys]
        out.append(Facet(title, own, [s for s in series if s.key not in keys]))
    return [f for f in out if any(s.key not in exact for s in f.own)]


def recolored(series: list[Series]) -> list[Series]:
    """With other colours where variants of different groups have the same, while any is free."""
    colors = {v: next(s.look.color for s in series if s.variant == v) for v in _variants(series)}
    taken: set[str] = set()
    for variant, color in colors.items():
        free = [c for c in COLORS[1:] if c not in colors.values() and c not in taken]
        colors[variant] = free[0] if color in taken and free else color
        taken.add(colors[variant])
    return [replace(s, look=replace(s.look, color=colors[s.variant])) for s in series]


def _variants(series: list[Series]) -> list[str]:
    return list(dict.fromkeys(s.variant for s in series))


def _cut(series: list[Series]) -> list[list[Series]]:
    """In parts of at most MOST_LINES, between variants where one has no more than that."""
    parts: list[list[Series]] = [[]]
    for variant in _variants(series):
        own = [s for s in series if s.variant == variant]
        if parts[-1] and len(parts[-1]) + len(own) > MOST_LINES:
            parts.append([])
        while len(own) > MOST_LINES:
            parts[-1] += own[:MOST_LINES]
            own = own[MOST_LINES:]
            parts.append([])
        parts[-1] += own
    return [p for p in parts if p]
