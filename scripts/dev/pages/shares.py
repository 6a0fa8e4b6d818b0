"""A Markdown table of speed rows: each variant's time and its share of the multiply-add peak."""

from __future__ import annotations

from pathlib import Path

from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.units import markdown


def entry(cell: Cell | None) -> str:
    """`42.4, 0.86 (0.88)`: milliseconds, share of the peak by the median and by the best sample."""
    if cell is None or not cell.ok:
        return "—"
    median, least = cell.metric("time_s.median"), cell.metric("time_s.min")
    share = cell.metric("peak_fraction")
    if median is None or least is None or share is None:
        return "—"
    return f"{median * 1e3:.3g}, {share:.2f} ({share * median / least:.2f})"


def table(path: Path) -> str:
    """A line for each variant and mode, in the order of the rows; a column for each length."""
    cells = [cell for cell in read_rows([path]).cells if cell.measure == "speed"]
    lengths = sorted({cell.axes["length"] for cell in cells})
    by = {(cell.variant, cell.axes["mode"], cell.axes["length"]): cell for cell in cells}
    lines = (
        [f"`{variant}`", mode, *(entry(by.get((variant, mode, length))) for length in lengths)]
        for variant, mode in sorted({key[:2] for key in by})
    )
    return markdown(["variant", "", *map(str, lengths)], lines)
