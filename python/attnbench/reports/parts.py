"""Where time goes: the share of attention in a layer and in a model, and the parts of a pass."""

from __future__ import annotations

from typing import Any

from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import MODE_WORDS, SCOPE_WORDS, contract, mode_of, scope_of, shape_text
from attnbench.plots.rows.style import Series
from attnbench.plots.rows.units import length_text

from .book import Book, Json, facets, rounded, section, table
from .curves import LENGTH

LAYERS = {"layer": 1, "model": 2}  # of the workload of this scope, harness/measure/workload.cc
LEAST = 0.02  # parts below it count as other, as in results/performance.md
SHARES = (
    ("variant", "series"),
    ("of", "text"),
    ("pass", "text"),
    ("length", "number"),
    ("share", "share"),
    ("low", "share"),
    ("high", "share"),
    ("cells", "cells"),
)


Panels = dict[tuple[Any, ...], list[tuple[Cell, Cell]]]  # by scope, mode, mask and shape: attention alone, the whole


def attention_and_whole(book: Book) -> Panels:
    """Times of attention alone beside those of a layer, or of a model, at the same shape."""
    by_place: dict[tuple[Any, ...], dict[str, Cell]] = {}
    for cell in book.rows.of("speed"):
        if cell.ok and cell.length:
            by_place.setdefault(_place(cell), {})[scope_of(cell)] = cell
    panels: Panels = {}
    for scopes in by_place.values():
        for scope in LAYERS:
            if "attention" in scopes and scope in scopes:
                whole = scopes[scope]
                key = scope, mode_of(whole), contract(whole), shape_text(whole)
                panels.setdefault(key, []).append((scopes["attention"], whole))
    return panels


def share_of_model(book: Book) -> Json | None:
    """The time of attention alone over that of a layer, or of a model."""
    panels = attention_and_whole(book)
    if not panels:
        return None
    rows = [_row(pair, scope, book) for (scope, *_), pairs in panels.items() for pair in pairs]
    return section(
        "share",
        "Share of attention",
        "What share of the time of an encoder layer, or of a model of two layers, attention alone takes. "
        "What is left no attention variant can save.",
        [_shares(key, pairs, book) for key, pairs in panels.items()],
        table("shares", "Shares of attention", SHARES, rows),
        note="The median of attention alone, times the number of layers, over the median of the whole at "
        "the same shape. Ends: the least over the most, and the most over the least, that the two 95 % "
        "intervals allow: at least 90 % together. A share above 1 is noise, or a cost that the layer saves.",
    )


def _place(cell: Cell) -> tuple[Any, ...]:
    axes = {k: v for k, v in cell.axes.items() if k not in ("scope", "repetitions")}
    return cell.variant, cell.params, tuple(sorted((k, str(v)) for k, v in axes.items()))


def share(part: Cell, whole: Cell) -> tuple[float, float, float]:
    """Returns the share, its low and its high end."""
    layers = LAYERS[scope_of(whole)]

    def time(cell: Cell, name: str) -> float:
        return cell.metric(f"time_s.{name}") or cell.metric("time_s.median") or float("nan")

    middle, low, high = (
        layers * time(part, a) / time(whole, b)
        for a, b in (("median", "median"), ("ci_low", "ci_high"), ("ci_high", "ci_low"))
    )
    return middle, low, high


def _shares(key: tuple[Any, ...], pairs: list[tuple[Cell, Cell]], book: Book) -> Json:
    scope, mode, mask, _ = key
    whole = pairs[0][1]
    by_series: dict[int, list[Any]] = {}
    for part, own in sorted(pairs, key=lambda p: p[1].length or 0):
        ends = map(rounded, share(part, own))
        point = [own.length, *ends, book.cells([part, own])]
        by_series.setdefault(book.series_of(own), []).append(point)
    return {
        "title": f"{SCOPE_WORDS[scope]}: {MODE_WORDS.get(mode, mode)}, {mask}",
        "facets": facets(whole),
        "x": LENGTH,
        "y": {"title": f"attention's share of the {SCOPE_WORDS[scope]}", "kind": "share", "log": False},
        "lines": [{"series": s, "points": points} for s, points in sorted(by_series.items())],
    }


def _row(pair: tuple[Cell, Cell], scope: str, book: Book) -> list[Any]:
    whole = pair[1]
    mode = MODE_WORDS.get(mode_of(whole), mode_of(whole))
    ends = map(rounded, share(*pair))
    what = [book.series_of(whole), SCOPE_WORDS[scope], f"{mode}, {contract(whole)}", whole.length]
    return [*what, *ends, book.cells(pair)]


def parts_of_pass(book: Book) -> Json | None:
    """What `run --breakdown` measured: one picture for each shape and length."""
    cells = [c for c in book.rows.of("speed") if c.ok and _parts(c)]
    if not cells:
        return None
    names = list(dict.fromkeys(name for c in cells for name in _parts(c) if name != "other"))
    names.sort(key=lambda name: -sum(_parts(c).get(name, 0.0) for c in cells))
    names = [n for n in names if any(_parts(c).get(n, 0.0) >= LEAST for c in cells)] + ["other"]
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        key = mode_of(cell), contract(cell), scope_of(cell), shape_text(cell), cell.length
        groups.setdefault(key, []).append(cell)
    columns = (
        *(("variant", "series"), ("pass", "text"), ("length", "number")),
        *((name.replace("_", " "), "share") for name in names),
        *(("marks cost", "share"), ("cells", "cells")),
    )
    rows = [
        [
            book.series_of(c),
            f"{MODE_WORDS.get(mode_of(c), mode_of(c))}, {contract(c)}, {shape_text(c)}",
            c.length,
            *map(rounded, _shown(c, names)),
            rounded(c.metric("breakdown.overhead")),
            book.cells([c]),
        ]
        for c in cells
    ]
    return section(
        "parts",
        "Parts of a pass",
        "Where the time of a pass goes, as shares of the threads' time, the largest part first. 'other' is "
        "what no mark names.",
        [_bars(members, names, book) for members in groups.values()],
        table("parts-of-pass", "Parts of a pass", columns, rows),
        note=f"Measured by further passes with marks on (run --breakdown); 'marks cost' says how much longer "
        f"marks make a pass. Parts below {LEAST:.0%} everywhere count as other.",
    )


def _parts(cell: Cell) -> dict[str, float]:
    return (cell.metrics.get("breakdown") or {}).get("shares") or {}


def _shown(cell: Cell, names: list[str]) -> list[float]:
    parts = _parts(cell)
    known = [max(parts.get(name, 0.0), 0.0) for name in names[:-1]]
    return [*known, max(1 - sum(known), 0.0)]


def _bars(cells: list[Cell], names: list[str], book: Book) -> Json:
    first = cells[0]
    mode = MODE_WORDS.get(mode_of(first), mode_of(first))
    series: list[Series] = book.styles.series(cells)
    return {
        "kind": "parts",
        "title": f"{mode}, {contract(first)}, {length_text(first.length or 0)} tokens",
        "facets": {**facets(first), "length": length_text(first.length or 0)},
        "x": {"title": "share of the pass", "kind": "share", "log": False},
        "y": {"title": "", "kind": "series"},
        "parts": [name.replace("_", " ") for name in names],
        "lines": [
            {
                "series": book.series(s),
                "points": [[*map(rounded, (None,) * 4), book.cells(s.cells)]],
                "parts": [rounded(v) for v in _shown(s.cells[-1], names)],
            }
            for s in series
        ],
    }
