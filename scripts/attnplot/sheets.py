"""What a picture shows where: all panels with all lines, or of one panel the lines in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from .facets import facets
from .style import Series, Styles

COLUMNS = 3  # of small multiples
WIDE = 10.8  # inches, the width of a page of small multiples


class Selects(Protocol):
    @property
    def title(self) -> str: ...
    def select(self, series: list[Series]) -> list[Series]: ...


P = TypeVar("P", bound=Selects)


@dataclass(frozen=True)
class Place(Generic[P]):
    """A panel's place on the page: what it draws in full and what in grey behind."""

    panel: P
    title: str
    row: int
    column: int
    own: list[Series]
    others: list[Series]


@dataclass(frozen=True)
class Sheet(Generic[P]):
    """One picture; `panel` where it shows that one alone, its lines in parts."""

    panel: P | None
    places: list[Place[P]]

    @property
    def columns(self) -> int:
        return max(p.column for p in self.places) + 1

    @property
    def rows(self) -> int:
        return max(p.row for p in self.places) + 1


def sheets(
    panels: list[tuple[P, int, int]],
    series: list[Series],
    styles: Styles,
    *,
    by_variant: bool = False,
    columns: int = COLUMNS,
) -> list[Sheet[P]]:
    """One sheet of all `panels`, given with row and column, where they have few lines; otherwise a
    sheet for each panel."""
    if len(facets(series, styles, by_variant=by_variant)) == 1:
        every = [
            Place(panel, panel.title, row, column, _with_cells(panel, series), [])
            for panel, row, column in panels
        ]
        return [Sheet(None, every)]
    out = []
    for panel, _, _ in panels:
        parts = facets(_with_cells(panel, series), styles, by_variant=by_variant)
        wide = min(columns, len(parts))
        places = [
            Place(panel, part.title, i // wide, i % wide, part.own, part.others)
            for i, part in enumerate(parts)
        ]
        out.append(Sheet(panel, places))
    return out


def _with_cells(panel: Selects, series: list[Series]) -> list[Series]:
    return [s for s in panel.select(series) if s.cells]
