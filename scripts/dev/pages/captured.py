"""A Markdown table of fidelity on what models read, before and after training; and the summary of a report, a
sentence a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attnbench.plots.kinds.fidelity import EXACT
from attnbench.plots.rows.read import Cell, read_rows
from attnbench.plots.rows.settings import spec_among
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import markdown
from attnbench.reports.book import Book
from attnbench.reports.scores import Tasks
from attnbench.reports.summary import summary

STATES = ("initial", "trained")


def table(path: Path) -> str:
    """The means over seeds; a line for each task and variant."""
    cells = [c for c in read_rows([path]).cells if c.ok and c.axes.get("input") in STATES]
    if not cells:
        raise ValueError(f"{path.name} has no fidelity with input initial or trained")
    lines: list[list[str]] = []
    notes = []
    for task in dict.fromkeys(c.task for c in cells):
        own = [c for c in cells if c.task == task]
        for key in sorted({(c.variant, c.params) for c in own}, key=lambda k: (k[0] != "full", k)):
            of = {s: [c for c in own if (c.variant, c.params) == key and c.axes["input"] == s] for s in STATES}
            figures = [_mean(of[s], name) for name in ("relative_error", "mass_kept") for s in STATES]
            lines.append([f"`{task}`", f"`{spec_among(*key, own)}`", *figures])
        notes.append(_of_model(task or "", own))
    heads = ["task", "variant", "relative error: initial", "trained", "weight kept: initial", "trained"]
    return markdown(heads, lines) + "\n\n" + "\n".join(notes)


def _mean(cells: list[Cell], name: str) -> str:
    values = [c.metric(name) for c in cells]
    if not values or any(v is None for v in values):
        return "—"
    mean = float(np.mean([float(v or 0) for v in values]))
    return "exact" if name == "relative_error" and mean < EXACT else f"{mean:.2f}"


def _of_model(task: str, cells: list[Cell]) -> str:
    """What the models learned, and the effective rank of exact attention's weights in each layer."""
    trained = [c for c in cells if c.axes["input"] == "trained"]
    tests = [float(c.metric("model_test") or 0) for c in trained]
    length = cells[0].length
    ranks = []
    for state in STATES:
        layers = [c.metrics["layers"] for c in cells if c.axes["input"] == state]
        by_layer = np.array([[layer["effective_rank"] or np.nan for layer in each] for each in layers]).mean(axis=0)
        ranks.append(" and ".join(f"{r:.1f}" for r in by_layer))
    return (
        f"- `{task}`: the models score {min(tests):.2f} to {max(tests):.2f}; the effective rank of exact attention's weights over {length} positions is "
        f"{ranks[0]} by layer before training, {ranks[1]} after."
    )


def sentences(path: Path) -> str:
    rows = read_rows([path])
    book = Book(rows, Styles(rows))
    return "\n".join(f"- {sentence}" for sentence in summary(book, Tasks(book)))
