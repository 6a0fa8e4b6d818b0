"""What a picture shows where: all panels with all lines, or one panel with its lines in parts that
can be told apart, the others grey behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from matplotlib.axes import Axes

from ..rows.style import BASELINE, MOST, Series, Styles
from .page import Page

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
