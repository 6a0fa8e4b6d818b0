"""A place in a source that a mutant changes, and the rewriting of a source with switches.

A rewritten place reads `(attn_mutant(7) ? (changed) : (as it was))`: one build holds all mutants,
and the environment says at run time which of them is on.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import asdict, dataclass
from typing import Any

HEADER = "core/base/mutant.h"  # written into the copy alone
BEGIN = re.compile(rb"attn_mutant\((\d+)\)")
END = re.compile(rb"/\*end (\d+)\*/")
Piece = str | tuple[int, int]  # text, or bytes [begin, end) of the source


@dataclass(frozen=True)
class Place:
    """`pieces` are what replaces the bytes [start, end)."""

    id: int
    file: str
    line: int
    start: int
    end: int
    function: str
    operator: str  # the kind of change
    pieces: tuple[Piece, ...]
    statement: bool = False  # the bytes are a statement, and the mutant leaves it out

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Place:
        pieces = tuple(tuple(p) if isinstance(p, list) else p for p in entry["pieces"])
        return Place(**{**entry, "pieces": pieces})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def changed(self, source: bytes) -> bytes:
        """What the mutant reads, without other mutants."""
        return b"".join(
            p.encode() if isinstance(p, str) else source[slice(*p)] for p in self.pieces
        )


class Rewriter:
    """Writes a source with a switch at each of `places`, which may lie within each other."""

    def __init__(self, source: bytes, places: list[Place]) -> None:
        self.source = source
        self.places = sorted(places, key=lambda p: (p.start, -p.end, p.id))

    def text(self) -> bytes:
        return b'#include "%s"\n' % HEADER.encode() + self._range(0, len(self.source), frozenset())

    def _range(self, begin: int, end: int, inside: frozenset[int]) -> bytes:
        out, at = [], begin
        first = bisect.bisect_left(self.places, begin, key=lambda p: p.start)
        for place in self.places[first:]:
            if place.start >= end:
                break
            if place.start < at or place.end > end or place.id in inside:
                continue
            out += [self.source[at : place.start], self._switch(place, inside | {place.id})]
            at = place.end
        return b"".join([*out, self.source[at:end]])

    def _switch(self, place: Place, inside: frozenset[int]) -> bytes:
        """On lines of its own, so that a line of a compiler's error names the place."""
        as_it_was = self._range(place.start, place.end, inside)
        if place.statement:
            return b"\n{ if (!attn_mutant(%d)) { %s } }/*end %d*/\n" % (
                place.id,
                as_it_was,
                place.id,
            )
        changed = b"".join(
            p.encode() if isinstance(p, str) else self._range(p[0], p[1], inside)
            for p in place.pieces
        )
        return b"\n(attn_mutant(%d) ? (%s) : (%s))/*end %d*/\n" % (
            place.id,
            changed,
            as_it_was,
            place.id,
        )


def places_at(rewritten: bytes, line: int) -> set[int]:
    """The innermost mutants on that line of a rewritten source (from 1); empty outside of all."""
    open_ids: list[int] = []
    for number, text in enumerate(rewritten.split(b"\n"), 1):
        marks = sorted(
            [(m.start(), int(m[1]), True) for m in BEGIN.finditer(text)]
            + [(m.start(), int(m[1]), False) for m in END.finditer(text)]
        )
        touched = set(open_ids[-1:])
        for _, place, begins in marks:
            if begins:
                open_ids.append(place)
                touched = {place}
            elif place in open_ids:
                del open_ids[open_ids.index(place) :]
        if number == line:
            return touched
    return set()
