"""All pictures that a set of rows has the data for."""

from __future__ import annotations

from .kinds.accuracy import accuracy
from .kinds.budget import budget
from .kinds.crossing import crossings, relative
from .kinds.curves import memory, speed
from .kinds.eviction import eviction
from .kinds.fidelity import fidelity
from .kinds.kept import kept
from .kinds.length import distance, length
from .kinds.overview import overview
from .kinds.reach import reach
from .kinds.slices import slices
from .kinds.state import state
from .kinds.tradeoff import tradeoff
from .kinds.training import effort, learning
from .layout.page import Picture
from .rows.read import NothingDrawn, Rows, RowsError
from .rows.style import Styles

KINDS = {
    "overview": overview,
    "speed": speed,
    "relative": relative,
    "crossing": crossings,
    "memory": memory,
    "accuracy": accuracy,
    "distance": distance,
    "slices": slices,
    "length": length,
    "learning": learning,
    "effort": effort,
    "state": state,
    "kept": kept,
    "eviction": eviction,
    "tradeoff": tradeoff,
    "fidelity": fidelity,
    "budget": budget,
    "reach": reach,
}
# How the names of their pictures begin, where not with the kind.
STEMS = {kind: f"accuracy-{kind}" for kind in ("distance", "slices", "length", "learning", "effort", "state", "kept", "eviction")} | {"relative": "speed-relative"}


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
        raise NothingDrawn(f"--kind {kind}: the rows hold nothing that it shows")
    return drawn
