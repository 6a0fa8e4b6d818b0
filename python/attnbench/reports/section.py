"""The parts of a section as the page reads them: panels of lines, points or scores, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import MODE_WORDS, contract, mode_of, scope_of, scope_text, shape_text

Json = dict[str, Any]
Column = tuple[str, str]  # heading, kind: text series number seconds bytes ratio score cells
DIGITS = 5  # significant ones in the page


def rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def section(
    name: str, title: str, lead: str, panels: Sequence[Json], *tables: Json, note: str = ""
) -> Json:
    """`lead` says what is shown and how to read it, `note` how it was measured."""
    shown = [t for t in tables if t["rows"]]
    return {"id": name, "title": title, "lead": lead, "note": note, "panels": panels, "tables": shown}


def table(name: str, title: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Json:
    heads = [{"title": head, "kind": kind} for head, kind in columns]
    return {"id": name, "title": title, "columns": heads, "rows": [list(row) for row in rows]}


def facets(cell: Cell) -> dict[str, str]:
    """What panels are chosen by."""
    mode = mode_of(cell)
    return {
        "mode": MODE_WORDS.get(mode, mode),
        "mask": contract(cell),
        "scope": scope_text(scope_of(cell)),
        "shape": shape_text(cell),
    }
