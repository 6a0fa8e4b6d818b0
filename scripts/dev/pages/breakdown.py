"""A Markdown table of speed rows with `--breakdown`: where the time of each variant's pass goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.units import markdown

LEAST = 0.02  # parts below it are left out
MODES = ("forward", "train")


def shares_of(cell: Cell) -> dict[str, Any]:
    """The share of the threads' time of each part; empty without `--breakdown`."""
    return (cell.metrics.get("breakdown") or {}).get("shares") or {}


def entry(cell: Cell | None) -> str:
    """`products 85, softmax 10, other 3`: percent of the threads' time, the largest part first;
    `other`, what no mark names, last."""
    if cell is None or not cell.ok:
        return "—"
    shares = shares_of(cell)
    parts = [part for part in shares if part != "other" and shares[part] >= LEAST]
    parts.sort(key=lambda part: -shares[part])
    if shares.get("other", 0) >= LEAST:
        parts.append("other")
    return ", ".join(f"{part.replace('_', ' ')} {100 * shares[part]:.0f}" for part in parts) or "—"


def table(path: Path, length: int) -> str:
    """A line for each variant, a column for each mode."""
    cells = [cell for cell in read_rows([path]).cells if cell.measure == "speed"]
    by = {(cell.variant, cell.axes["mode"]): cell for cell in cells if cell.length == length}
    variants = sorted({name for name, _ in by})
    return markdown(["variant", *MODES], ([f"`{v}`", *(entry(by.get((v, mode))) for mode in MODES)] for v in variants))
