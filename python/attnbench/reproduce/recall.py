"""Recall against the bytes of a decode state, from the rows of the reference runs: the figures of attnplot's picture `accuracy-state`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from attnbench.plots.kinds.state import found, lines
from attnbench.plots.rows.read import Rows, RowsError, read_rows
from attnbench.plots.rows.scores import Score
from attnbench.plots.rows.style import Styles

from .entries import ROOT
from .estimates import Estimate
from .page import figure

REFERENCE = ROOT / "results" / "reference"
# The sweep that trains every variant that decodes is recall.toml; its rows are used where they are there.
FILES = ("standard.jsonl", "recall.jsonl")
TASKS = ("mqar", "induction", "noisy_recall", "fuzzy_recall", "needle")  # the folder tasks/recall
HEADS = ("task", "variant", "bytes of state of a sequence", "accuracy", "seeds", "best shortcut", "rows")
SAID = """The state is what decoding keeps of one sequence, all layers together; training and tuning are the same for all variants of a task and a file.
What scores no more than the best shortcut recalls nothing. A variant without a line is not trained yet:
`scripts/bench run results/reference/recall.toml -o results/reference/recall.jsonl` trains every variant that decodes on `mqar`."""


def table(near: Path, files: Sequence[Path] = tuple(REFERENCE / name for name in FILES)) -> list[Sequence[str]]:
    """Lines of the rows files that are there, with links relative to `near`."""
    told = []
    for path in files:
        try:
            rows = read_rows([path])
        except RowsError:
            continue
        link = f"[{path.stem}]({os.path.relpath(path, near)})"
        told += [[*line, link] for line in _lines(rows)]
    return told


def _lines(rows: Rows) -> Iterator[list[str]]:
    """By task and state; settings are chosen on validation."""
    _, groups, families = found(rows, Styles(rows))
    for group in groups:
        if group.cells[0].task not in TASKS:
            continue
        shortcut = group.levels.get("best shortcut")
        series = group.select([s for _, own in families.values() for s in own])
        points = [point for _, _, own in lines(families, series) for point in own]
        for size, score, _, label in sorted(points, key=lambda p: (p[0], p[3])):
            yield [group.title.replace("\n", ", "), f"`{label}`", str(size), _figure(score), str(len(score.seeds)),
                   "–" if shortcut is None else f"{shortcut:.3g}"]  # fmt: skip


def _figure(score: Score) -> str:
    half = float("inf") if score.half is None else score.half
    return figure(Estimate(score.mean, score.mean - half, score.mean + half))
