"""How far an input moves an output, against their distance: the panels of the picture."""

from __future__ import annotations

import math

from attnbench.plots.kinds import reach as picture

from .book import Book
from .section import Json, rounded, section


def reach(book: Book) -> Json | None:
    panels = [
        _panel(depth, which, told, book)
        for which, told, depths in picture.depths(book.rows)
        for depth in depths
    ]
    if not panels:
        return None
    floor = min(picture.floor_of(c) for c in book.rows.of("reach") if c.ok)
    return section(
        "reach",
        "Reach",
        "Relative change of an output where one input is replaced, by their distance, in a stack of encoder layers with "
        "initial weights: what can arrive, not what a trained model uses.",
        panels,
        note=f"Medians over pairs of positions and over the seeds; changes below {floor:g} are not drawn.",
    )


def _panel(depth: picture.Depth, which: str, told: str, book: Book) -> Json:
    lines = []
    for s in depth.select(book.styles.series(list(depth.cells))):
        points = [(d, v) for d, v in depth.points(s.cells) if math.isfinite(v)]
        if points:
            own = book.cells(s.cells)
            drawn = [[d, rounded(v), None, None, own] for d, v in points]
            lines.append({"series": book.series(s), "points": drawn})
    return {
        "title": f"{depth.title}, {which}",
        "facets": {"mask": which, "shape": told},
        "x": {"title": "distance, positions", "kind": "number", "log": True, "base": 2},
        "y": {"title": "relative change", "kind": "number", "log": True},
        "lines": lines,
    }
