"""Score against the bytes that decoding keeps: a line through the sizes of each variant."""

from __future__ import annotations

from attnbench.plots.kinds.state import NOTE, found, lines
from attnbench.plots.rows.settings import is_error

from .book import Book
from .section import Json, rounded, section


def state(book: Book) -> Json | None:
    _, groups, families = found(book.rows, book.styles)
    panels = []
    for group in groups:
        drawn = []
        every = [s for _, own in families.values() for s in own]
        for name, _, points in lines(families, group.select(every)):
            first = families[name][1][0]
            drawn.append(
                {
                    "series": book.series(first),
                    "name": name,
                    "points": [
                        [
                            size,
                            rounded(score.mean),
                            *_ends(score.mean, score.half),
                            book.cells_named(score.cell),
                        ]
                        for size, score, _, _ in points
                    ],
                }
            )
        panels.append(
            {
                "title": group.title.replace("\n", ", ").rstrip(", "),
                "facets": {"task": str(group.cells[0].task)},
                "x": {"title": "decode state of one sequence", "kind": "bytes", "log": True},
                "y": {"title": group.label, "kind": "score", "log": is_error(group.metric)},
                "lines": drawn,
                "levels": [[level, level, rounded(v)] for level, v in group.levels.items()],
            }
        )
    if not panels:
        return None
    return section(
        "state",
        "Recall against state",
        "Test score by the bytes that decoding keeps of one sequence: up and to the left is better.",
        panels,
        note=NOTE,
    )


def _ends(mean: float, half: float | None) -> list[float | None]:
    return [None, None] if half is None else [rounded(mean - half), rounded(mean + half)]
