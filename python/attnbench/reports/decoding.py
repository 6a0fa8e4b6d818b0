"""Decoding: the time of a token against the bytes that are kept, and scores against them under several caches."""

from __future__ import annotations

from typing import Any

from attnbench.plots.kinds.kept import NOTE, Panel, looks_of, panels_of
from attnbench.plots.rows.kept import BUDGET, evicts, is_whole, kept_text, kv_heads
from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import decodes, is_error, marks_of, scope_of, spec_text
from attnbench.plots.rows.style import BASELINE, Look, Series

from .book import Book, Json, facets, hollow, rounded, section, table
from .curves import ends

COLUMNS = (
    ("what is kept", "text"),
    ("heads", "text"),
    ("threads", "number"),
    ("length", "number"),
    ("a token", "seconds"),
    ("over exact attention", "ratio"),
    ("bytes", "bytes"),
    ("marks", "text"),
    ("cells", "cells"),
)
BYTES = {"title": "bytes kept of one sequence", "kind": "bytes", "log": True}
Places = dict[tuple[Any, ...], dict[str, list[Cell]]]  # by all that a comparison holds equal: cells by what is kept


def decoding(book: Book) -> Json | None:
    """None where the rows decode from one cache alone and score under one."""
    places = {place: own for place, own in _places(book).items() if len(own) > 1}
    scored = panels_of(book.rows)
    if not places and not scored:
        return None
    looks = looks_of(scored)
    return section(
        "decoding",
        "Decoding",
        "What a token takes, and what is still found, by the bytes that a cache or a state keeps: down and to the left is better for times, up and "
        "to the left for scores.",
        [*(_times(own, book) for own in places.values()), *(_scores(panel, looks, book) for panel in scored)],
        table("decoding", "A token by what is kept", COLUMNS, [line for own in places.values() for line in _rows(own, book)]),
        note=NOTE if scored else "Medians with their 95 % intervals, of attention alone.",
    )


def _places(book: Book) -> Places:
    found: Places = {}
    for cell in book.rows.of("speed"):
        if cell.ok and decodes(cell) and scope_of(cell) == "attention" and cell.metric("state_bytes"):
            place = tuple(cell.axes.get(name) for name in ("batch", "heads", "head_dim", "threads", "dtype"))
            found.setdefault(place, {}).setdefault(name_of(cell), []).append(cell)
    return {place: _by_heads(own) for place, own in found.items()}


def _by_heads(own: dict[str, list[Cell]]) -> dict[str, list[Cell]]:
    """A line has one number of heads of keys: where cells of a name have several, the names tell theirs."""
    out: dict[str, list[Cell]] = {}
    for name, cells in own.items():
        several = len({kv_heads(c)[0] for c in cells}) > 1
        for c in cells:
            heads, queries = kv_heads(c)
            out.setdefault(f"{name}, {queries} query heads over {heads}" if several else name, []).append(c)
    return out


def name_of(cell: Cell) -> str:
    """One name at every length: a window, a budget and keys by their number, not by their share of the positions."""
    params = dict(cell.params)
    if method := evicts(cell):
        return spec_text(cell.variant, [("evict", method), ("budget", f"{float(params[BUDGET]):g}")])
    return spec_text(cell.variant, cell.params) if "window" in params or "keys" in params else kept_text(cell).replace("`", "")


def _times(own: dict[str, list[Cell]], book: Book) -> Json:
    first = next(iter(own.values()))[0]
    return {
        "title": f"one token, {first.axes.get('heads')} heads, {first.axes.get('threads')} threads",
        "facets": facets(first),
        "x": BYTES,
        "y": {"title": "seconds a token", "kind": "seconds", "log": True},
        "lines": [
            {"series": book.series_of(cells[0]), "name": name, "points": [_point(c, book) for c in _by_length(cells)]}
            for name, cells in own.items()
        ],
    }


def _by_length(cells: list[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda c: c.length or 0)


def _point(cell: Cell, book: Book) -> list[Any]:
    return [cell.metric("state_bytes"), *(rounded(cell.metric(f"time_s.{name}")) for name in ("median", "ci_low", "ci_high")), book.cells([cell])]


def _rows(own: dict[str, list[Cell]], book: Book) -> list[list[Any]]:
    """Each beside exact attention of as many heads of keys, where it reads all keys; else beside any that is there."""
    whole = {(c.length, kv_heads(c)[0]): c for cells in own.values() for c in cells if is_whole(c)}
    lines = []
    for name, cells in own.items():
        for c in _by_length(cells):
            time, of = c.metric("time_s.median") or 0.0, whole.get((c.length, kv_heads(c)[0]))
            exact = of.metric("time_s.median") if of else None
            heads = f"{kv_heads(c)[1]} over {kv_heads(c)[0]}"
            shown = [name, heads, c.axes.get("threads"), c.length, rounded(time), rounded(time / exact) if exact else None]
            lines.append([*shown, c.metric("state_bytes"), marks_of([c]), book.cells([c])])
    return lines


def _scores(panel: Panel, looks: dict[str, Look], book: Book) -> Json:
    lines = []
    for name, own in panel.lines.items():
        series = Series(name, (), name, looks[name], own[0].cells)
        known = book.series_of(own[0].cells[0]) if name == BASELINE else book.series(series)
        for is_hollow in (False, True):
            points = [
                [p.size, rounded(p.score.mean), *ends(p.score.mean, p.score.half), book.cells_named(p.score.cell)]
                for p in own
                if p.score.is_unfinished == is_hollow
            ]
            if points:
                lines.append({"series": known, "name": name, "points": points} | hollow(is_hollow))
    return {
        "title": f"{panel.group.title.replace(chr(10), ', ').rstrip(', ')}: {panel.what}",
        "facets": {"task": str(panel.group.cells[0].task)},
        "x": BYTES,
        "y": {"title": panel.group.label, "kind": "score", "log": is_error(panel.group.metric)},
        "lines": lines,
        "levels": [[level, level, rounded(v)] for level, v in panel.group.levels.items()],
    }
