"""Distance from exact attention: on drawn inputs against their scale, and on what models read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attnbench.plots.kinds.fidelity import EXACT, KINDS, kind_of, scale_of
from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.scores import Score, over_seeds
from attnbench.plots.rows.settings import contract, dtype_of
from attnbench.plots.rows.style import Series
from attnbench.plots.rows.units import length_text

from .book import Book, Json, rounded, section, table

MODELS = ("initial", "trained")  # kinds of inputs that a model reads
OVER_SEEDS = "Means over seeds with 95 % t-intervals between them; no interval where n = 1."
CAPTURED = (
    ("task", "text"),
    ("inputs", "text"),
    ("mask", "text"),
    ("variant", "series"),
    ("scale", "number"),
    ("relative error", "number"),
    ("\u00b1 half interval", "number"),
    ("cosine", "score"),
    ("KL of weights", "number"),
    ("weight kept", "share"),
    ("keys read", "number"),
    ("rank of weights", "number"),
    ("error by layer", "text"),
    ("effective rank by layer", "text"),
    ("of positions", "number"),
    ("score of the model", "score"),
    ("seeds", "number"),
    ("cells", "cells"),
)
FIGURES = ("cosine", "weights_kl", "mass_kept", "keys_read", "weights_rank")  # columns after the error
Key = tuple[Any, ...]
LISTS: tuple[tuple[str, str, str, bool], ...] = (  # metric, title, kind of axis, logarithmic
    ("relative_error", "relative error", "number", True),
    ("mass_kept", "weight kept", "share", False),
)


def fidelity(book: Book) -> Json | None:
    cells = [c for c in book.rows.of("fidelity") if c.status != "skipped" and kind_of(c) not in MODELS]
    if not any(c.ok for c in cells):
        return None
    return section(
        "fidelity",
        "Fidelity",
        "Relative error \u2016out \u2212 exact\u2016 / \u2016exact\u2016 by the standard deviation of "
        "queries and keys; exact attention is computed in double precision; lower is better.",
        [_panel(key, members, book) for key, members in groups(cells).items()],
        note=f"{OVER_SEEDS} Errors below {EXACT:g} are rounding and drawn on the edge named exact.",
    )


def captured(book: Book) -> Json | None:
    """On queries, keys and values that a model with exact attention reads, before and after training."""
    cells = [c for c in book.rows.of("fidelity") if c.status != "skipped" and kind_of(c) in MODELS]
    if not any(c.ok for c in cells):
        return None
    tasks = list(dict.fromkeys(c.task for c in cells))
    found = groups(sorted(cells, key=lambda c: (tasks.index(c.task), MODELS.index(kind_of(c)))))
    made = [p for of in LISTS for key, own in found.items() if (p := _list(of, key, own, book))]
    return section(
        "captured",
        "Fidelity on models",
        "Distance from exact attention on the queries, keys and values that a model with exact attention "
        "reads on a task, before and after it was trained. Weight kept is the share of exact attention's "
        "weight on keys that the variant gives any weight.",
        made,
        table("captured", "On what models read", CAPTURED, _records(found, book)),
        note=f"{OVER_SEEDS} Over the queries of all layers. Errors below {EXACT:g} are rounding; such variants, and "
        "weight kept where it is all, stand in the table alone. The effective rank is that of exact attention's weights: the "
        "exponential of the entropy of their singular values; keys read and rank of weights are the variant's own.",
    )


def groups(cells: list[Cell]) -> dict[Key, list[Cell]]:
    """By everything but variant, scale and seed."""
    out: dict[Key, list[Cell]] = {}
    for c in cells:
        shape = c.axes.get("heads"), c.axes.get("head_dim")
        key = kind_of(c), contract(c), c.length, shape, c.task, c.task_params, dtype_of(c)
        out.setdefault(key, []).append(c)
    return out


def mean(cells: list[Cell], name: str = "relative_error") -> Score | None:
    """Over the seeds among cells that differ in nothing else."""
    values = [v for c in cells if c.ok and (v := c.metric(name)) is not None]
    return over_seeds(values, None) if values else None


def _title(key: Key) -> str:
    kind, mask, length, _, task, _, dtype = key
    told = f"length {length_text(length)}" if length else ""
    what = KINDS.get(kind, kind) + (f" on {task}" if task else "")
    return ", ".join(filter(None, (what, mask, told, dtype if dtype != "float32" else "")))


def _facets(key: Key) -> dict[str, str]:
    kind, mask, _, (heads, width), task, *_ = key
    shape = f"{heads} heads, head width {width}"
    return {"mask": mask, "inputs": KINDS.get(kind, kind), "shape": shape, **({"task": task} if task else {})}


def _by_scale(series: Series) -> Iterator[tuple[float, list[Cell]]]:
    for scale in sorted({scale_of(c) for c in series.cells if c.ok}):
        yield scale, [c for c in series.cells if c.ok and scale_of(c) == scale]


def _point(at: float | None, found: Score, *more: Any) -> list[Any]:
    ends = (None, None) if found.half is None else (found.mean - found.half, found.mean + found.half)
    middle = rounded(found.mean)
    return [*((middle, None) if at is None else (at, middle)), *map(rounded, ends), *more]


def _panel(key: Key, cells: list[Cell], book: Book) -> Json:
    series = book.styles.series(cells)
    return {
        "title": _title(key),
        "facets": _facets(key),
        "x": {"title": "scale of the inputs", "kind": "number", "log": True, "base": 2},
        "y": {"title": "relative error", "kind": "number", "log": True, "floor": EXACT},
        "lines": [
            {
                "series": book.series(s),
                "points": [
                    _point(scale, found, book.cells(own))
                    for scale, own in _by_scale(s)
                    if (found := mean(own))
                ],
            }
            for s in series
            if any(c.ok for c in s.cells)
        ],
        "failed": [
            [book.series(s), scale, status]
            for s in series
            for scale, status in sorted({(scale_of(c), c.status) for c in s.cells if not c.ok})
        ],
    }


def _list(of: tuple[str, str, str, bool], key: Key, cells: list[Cell], book: Book) -> Json | None:
    """One figure of each variant at scale 1, or None where none says more than that it is exact."""
    name, title, kind, is_log = of
    tells: Callable[[float], bool] = (lambda v: v >= EXACT) if name == "relative_error" else (lambda v: v < 1 - EXACT)
    lines = []
    for s in book.styles.series([c for c in cells if scale_of(c) == 1]):
        found = mean(list(s.cells), name)
        if found and tells(found.mean):
            lines.append({"series": book.series(s), "points": [_point(None, found, book.cells(s.cells))]})
    if not lines:
        return None
    return {
        "kind": "scores",
        "title": f"{title}: {_title(key)}",
        "facets": _facets(key),
        "x": {"title": title, "kind": kind, "log": is_log},
        "y": {"title": "", "kind": "series"},
        "lines": lines,
    }


def _records(found: dict[Key, list[Cell]], book: Book) -> Iterator[list[Any]]:
    for key, cells in found.items():
        for s in book.styles.series(cells):
            for scale, own in _by_scale(s):
                if error := mean(own):
                    figures = [mean(own, name) for name in FIGURES]
                    test = mean(own, "model_test")
                    yield [
                        str(key[4] or ""),
                        KINDS.get(key[0], key[0]),
                        key[1],
                        book.series(s),
                        scale,
                        rounded(error.mean),
                        rounded(error.half),
                        *(rounded(f.mean) if f else None for f in figures),
                        by_layer(own, "relative_error"),
                        by_layer(own, "effective_rank"),
                        key[2],
                        rounded(test.mean) if test else None,
                        len(error.seeds),
                        book.cells(own),
                    ]


def by_layer(cells: list[Cell], name: str) -> str:
    """The means over seeds, layer by layer: `77, 59`."""
    layers = zip(*(c.metrics.get("layers") or [] for c in cells if c.ok))
    each = ([v for layer in same if (v := layer.get(name)) is not None] for same in layers)
    return ", ".join(f"{over_seeds(values, None).mean:.3g}" for values in each if values)
