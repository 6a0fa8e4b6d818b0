"""The marks of a number that fails one of three conditions: its answer was compared at its own shape, its
training ended by itself, its times were not disturbed. Tables of the program use the same signs."""

from __future__ import annotations

from collections.abc import Iterable

from .cell import Cell

CUT, IDENTITIES, UNKNOWN, DISTURBED = "\u2020", "~", "?", "*"
MEANINGS = {
    CUT: "the training was stopped by its number of steps, not by itself: what was learned by then",
    IDENTITIES: "no reference was compared at this length, only answers of the variant with each other",
    UNKNOWN: "the answer was not compared at this length",
    DISTURBED: "measured on a disturbed machine",
}
SHORT = {
    CUT: "training cut off by its steps",
    IDENTITIES: "compared with its own answers alone",
    UNKNOWN: "answer not compared at this length",
    DISTURBED: "disturbed",
}
STOPPED = ("steps", "time")  # how a training that did not end by itself ended


def mark_of(cell: Cell) -> str:
    """Returns the marks of a cell's own number."""
    if not cell.ok:
        return ""
    if cell.measure == "accuracy":
        return CUT if str(cell.metrics.get("stopped_by", "")) in STOPPED else ""
    if cell.measure not in ("speed", "memory"):
        return ""
    noisy = DISTURBED if cell.noisy else ""
    by = cell.verified.get("by")
    if by == "identities":
        return (IDENTITIES if cell.verified.get("identities") else UNKNOWN) + noisy
    return noisy if by else UNKNOWN + noisy


def marks_of(cells: Iterable[Cell | None]) -> str:
    """Returns each mark of the cells behind a number once, in the order of MEANINGS."""
    found = {mark for cell in cells if cell for mark in mark_of(cell)}
    return "".join(mark for mark in MEANINGS if mark in found)
