"""What a picture shows where: all panels with all lines, or one panel with its lines in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from matplotlib.axes import Axes

from .facets import facets
from .page import Page
from .style import Series, Styles

COLUMNS = 3  # of small multiples
WIDE = 10.8  # inches, the width of a page of small multiples
OTHERS = "the variants of the other panels are grey"


class Selects(Protocol):
    @property
    def title(self) -> str: ...
    @property
    def slug(self) -> str: ...
    def select(self, series: list[Series]) -> list[Series]: ...


class Scored(Selects, Protocol):
    @property
    def label(self) -> str:
        """Names the axis of scores."""
        ...


P = TypeVar("P", bound=Selects)
S = TypeVar("S", bound=Scored)


@dataclass(frozen=True)
class Place(Generic[P]):
    """A panel's place on the page, the series drawn in full and those drawn in grey behind."""

    panel: P
    title: str
    row: int
    column: int
    own: list[Series]
    others: list[Series]


@dataclass(frozen=True)
class Sheet(Generic[P]):
    """One picture. `panel` is set where the picture shows that panel alone, its lines in parts."""

    panel: P | None
    places: list[Place[P]]
    suffix: str = ""  # of its files: `-image`, of a second panel with this name `-image-2`

    @property
    def panels(self) -> list[P]:
        return [self.panel] if self.panel else [p.panel for p in self.places]

    @property
    def in_parts(self) -> bool:
        return self.panel is not None and len(self.places) > 1

    @property
    def columns(self) -> int:
        return max(p.column for p in self.places) + 1

    @property
    def rows(self) -> int:
        return max(p.row for p in self.places) + 1

    def width(self, narrow: float) -> float:
        """Returns the inches of the page: `narrow`, or WIDE for small multiples."""
        return WIDE if self.columns > 2 else narrow

    def told(self, before: str) -> str:
        """Returns what the page's title says of the panel that stands alone."""
        lines = self.panel.title.split("\n") if self.panel else []
        return before + ", ".join(filter(None, lines)) if lines else ""


def in_rows(panels: Sequence[P], most: int) -> list[tuple[P, int, int]]:
    """Places panels in rows of at most `most`, each given as (panel, row, column)."""
    columns = min(most, len(panels))
    return [(panel, i // columns, i % columns) for i, panel in enumerate(panels)]


def sheets(
    panels: list[tuple[P, int, int]],
    series: list[Series],
    styles: Styles,
    *,
    by_variant: bool = False,
    columns: int = COLUMNS,
) -> list[Sheet[P]]:
    """Returns one sheet of all `panels`, given as (panel, row, column), if few lines are drawn.
    Otherwise returns a sheet for each panel."""
    if len(facets(series, styles, by_variant=by_variant)) == 1:
        every = [
            Place(panel, panel.title, row, column, _with_cells(panel, series), [])
            for panel, row, column in panels
        ]
        return [Sheet(None, every)]
    out, slugs = [], []
    for panel, _, _ in panels:
        parts = facets(_with_cells(panel, series), styles, by_variant=by_variant)
        wide = min(columns, len(parts))
        places = [
            Place(panel, part.title, i // wide, i % wide, part.own, part.others)
            for i, part in enumerate(parts)
        ]
        slugs.append(panel.slug)
        again = slugs.count(panel.slug)
        suffix = f"-{panel.slug}" + (f"-{again}" if again > 1 else "")
        out.append(Sheet(panel, places, suffix))
    return out


def scored_panels(page: Page, sheet: Sheet[S]) -> Iterator[tuple[Axes, Place[S]]]:
    """Yields the axes of each place. The axis of scores is labelled unless the panel at the left
    has the same label."""
    left: dict[int, str] = {}
    for place in sheet.places:
        axes = page.panel(place.row, place.column)
        label = place.panel.label
        if label != left.get(place.row):
            axes.set_ylabel(label)
        left[place.row] = label
        yield axes, place


def _with_cells(panel: Selects, series: list[Series]) -> list[Series]:
    return [s for s in panel.select(series) if s.cells]
