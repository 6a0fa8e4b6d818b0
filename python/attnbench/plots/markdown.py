"""Tables of Markdown, as the pages of docs/ hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table with these heads; an entry may be empty."""
    return "\n".join([_line(heads), "|" + "---|" * len(heads), *map(_line, lines)])


def _line(entries: Sequence[str]) -> str:
    return "|" + "|".join(f" {entry} " if entry else " " for entry in entries) + "|"
