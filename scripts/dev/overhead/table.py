"""What calls cost, as tables of Markdown: what the command prints, and what results/performance.md holds."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from attnbench.plots.rows.units import markdown

Row = dict[str, Any]  # `times_s`: seconds a call by round, of each side


def ratio(ours: list[float], theirs: list[float]) -> str:
    """That of the fastest rounds, with the quartiles over the rounds in brackets."""
    low, _, high = statistics.quantiles([a / b for a, b in zip(ours, theirs)])
    return f"{min(ours) / min(theirs):.2f} ({low:.2f} to {high:.2f})"


def of_attention(row: Row) -> list[str]:
    times = row["times_s"]
    least = [f"{1e6 * min(times[side]):.1f}" for side in ("tensors", "arrays", "one number", "torch")]
    return [f"{row['heads']}", *least, ratio(times["tensors"], times["torch"])]


def of_tasks(row: Row) -> list[str]:
    times = row["times_s"]
    return [f"`{row['task']}`", f"{1e3 * min(times['batches']):.2f}", ratio(times["generator"], times["batches"])]


TABLES = {
    "attention": (
        ["heads", "on tensors, µs", "on NumPy arrays, µs", "on one number, µs", "torch, µs", "tensors / torch"],
        of_attention,
    ),
    "tasks": (["task", "batches, ms", "share of the generator's speed"], of_tasks),
}


def table(rows: list[Row], kind: str) -> str:
    header, line = TABLES[kind]
    return markdown(header, (line(row) for row in rows if row["kind"] == kind))


def of_file(path: Path, kind: str) -> str:
    """What was measured where, and the table, from the file that `-o` wrote."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    (where,) = (row["where"] for row in rows if row["kind"] == "run" and row["of"] == kind)
    return f"{where}:\n\n{table(rows, kind)}"
