"""Distance from exact attention against the scale of the inputs."""

from __future__ import annotations

from typing import Any

from attnplot.context import contract
from attnplot.fidelity import KINDS, kind_of
from attnplot.fidelity_panels import EXACT, scale_of
from attnplot.rows import Cell
from attnplot.units import length_text

from .book import Book
from .section import Json, rounded, section


def fidelity(book: Book) -> Json | None:
    cells = [c for c in book.rows.of("fidelity") if c.status != "skipped"]
    if not any(c.ok for c in cells):
        return None
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for c in cells:
        shape = c.axes.get("heads"), c.axes.get("head_dim")
        groups.setdefault((kind_of(c), contract(c), c.length, shape, c.task, c.task_params), []).append(c)
    return section(
        "fidelity",
        "Fidelity",
        "Relative error \u2016out \u2212 exact\u2016 / \u2016exact\u2016 by the standard deviation of "
        "queries and keys; exact attention is computed in double precision; lower is better.",
        [_panel(key, members, book) for key, members in groups.items()],
        note=f"n = 1 draw of inputs, no interval. Errors below {EXACT:g} are rounding and drawn on the edge named exact.",
    )


def _panel(key: tuple[Any, ...], cells: list[Cell], book: Book) -> Json:
    kind, mask, length, (heads, width), task, _ = key
    told = f"length {length_text(length)}" if length else ""
    return {
        "title": ", ".join(filter(None, (KINDS.get(kind, kind) + (f" on {task}" if task else ""), mask, told))),
        "facets": {
            "mask": mask,
            "inputs": KINDS.get(kind, kind),
            "shape": f"{heads} heads, head width {width}",
        },
        "x": {"title": "scale of the inputs", "kind": "number", "log": True, "base": 2},
        "y": {"title": "relative error", "kind": "number", "log": True, "floor": EXACT},
        "lines": [
            {
                "series": book.series(s),
                "points": sorted(
                    [scale_of(c), rounded(c.metric("relative_error")), None, None, book.cells([c])]
                    for c in s.cells
                    if c.ok
                ),
            }
            for s in book.styles.series(cells)
            if any(c.ok for c in s.cells)
        ],
        "failed": [
            [book.series(s), scale_of(c), c.status]
            for s in book.styles.series(cells)
            for c in s.cells
            if not c.ok
        ],
    }
