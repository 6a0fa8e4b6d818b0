"""All pictures that a set of rows has the data for."""

from __future__ import annotations

from .accuracy import accuracy
from .budget import budget
from .crossing_page import crossings
from .distance import distance
from .effort import effort
from .fidelity import fidelity
from .learning import learning
from .length import length
from .memory import memory
from .overview import overview
from .page import Picture
from .reach import reach
from .relative import relative
from .rows import Rows, RowsError
from .speed import speed
from .state import state
from .style import Styles
from .tradeoff import tradeoff


KINDS = {
    "overview": overview,
    "speed": speed,
    "relative": relative,
    "crossing": crossings,
    "memory": memory,
    "accuracy": accuracy,
    "distance": distance,
    "length": length,
    "learning": learning,
    "effort": effort,
    "state": state,
    "tradeoff": tradeoff,
    "fidelity": fidelity,
    "budget": budget,
    "reach": reach,
}
# How the names of their pictures begin, where not with the kind.
STEMS = {kind: f"accuracy-{kind}" for kind in ("distance", "length", "learning", "effort", "state")} | {"relative": "speed-relative"}


def draw_named(rows: Rows, start: str) -> list[Picture]:
    """The pictures whose names begin so; no other kind is drawn."""
    styles = Styles(rows)
    stems = ((STEMS.get(kind, kind), draw) for kind, draw in KINDS.items())
    drawn = (p for stem, draw in stems if stem.startswith(start) or start.startswith(stem) for p in draw(rows, styles))
    return [p for p in drawn if p.name.startswith(start)]


def draw_all(rows: Rows, kind: str | None = None) -> list[Picture]:
    """Every kind where `kind` is None. Error where there is no such kind, or nothing that it shows."""
    if kind is not None and kind not in KINDS:
        raise RowsError(f"--kind {kind}: expected one of {', '.join(KINDS)}, heat-scores, heat-speedup")
    styles = Styles(rows)
    drawn = [p for name, draw in KINDS.items() if kind in (None, name) for p in draw(rows, styles)]
    if kind is not None and not drawn:
        raise RowsError(f"--kind {kind}: the rows hold nothing that it shows")
    return drawn
