"""What the reference rows tell of each variant: times as a multiple of exact attention's, and the scores that may be published."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnbench.plots.kinds.crossing import ratios
from attnbench.plots.layout.panels import pages
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Cell, Params, Rows, read_rows
from attnbench.plots.rows.scores import TaskGroup, one_line, task_groups
from attnbench.plots.rows.settings import chosen_on_validation, mode_of, scope_of
from attnbench.plots.rows.style import Styles

FOLDER = Path("results", "reference")
SPEEDS = ("performance-avx512", "selection")  # the second has the variants that are defined for causal attention alone
SCORES = ("standard", "survey", "recurrences", "blocks")
Ratio = tuple[float, float, float]  # with the ends of its 95 % interval


@dataclass(frozen=True)
class Speeds:
    """The times of attention alone in one file. `ratios` are multiples of exact attention's time, by the cell's id."""

    file: Path  # from the repository's root
    environment: dict[str, Any]
    cells: tuple[Cell, ...]
    ratios: dict[str, Ratio]

    def of(self, variant: str) -> list[Cell]:
        return [c for c in self.cells if c.variant == variant]


@dataclass(frozen=True)
class Scored:
    """Scores of one variant with one set of parameters on one task, a cell a seed."""

    file: Path
    task: str
    params: Params
    cells: tuple[Cell, ...]
    shortcut: float | None  # the best score without attention


@dataclass(frozen=True)
class Measured:
    speeds: tuple[Speeds, ...]
    scores: dict[str, list[Scored]]  # by variant
    left_out: dict[Path, tuple[str, ...]]  # settings that their control has not learned

    def at(self, variant: str, length: int) -> Cell | None:
        """The forward pass of the variant at `length`, not causal, in the first file; None where that holds several sets of
        parameters."""
        found = [c for c in self.speeds[0].of(variant) if c.ok and c.length == length and mode_of(c) == "forward" and not c.axes.get("causal")]
        return found[0] if len(found) == 1 else None


def measured(root: Path) -> Measured:
    scores: dict[str, list[Scored]] = {}
    left_out = {}
    for name in SCORES:
        file = FOLDER / f"{name}.jsonl"
        rows = published(read_rows([root / file]), without_control=False)
        left_out[file] = rows.left_out
        for group in task_groups(chosen_on_validation(rows.of("accuracy"))):
            for variant, own in _scored(file, group):
                scores.setdefault(variant, []).append(own)
    return Measured(tuple(_speeds(root, FOLDER / f"{name}.jsonl") for name in SPEEDS), scores, left_out)


def _speeds(root: Path, file: Path) -> Speeds:
    rows: Rows = read_rows([root / file])
    styles = Styles(rows)
    found: dict[str, Ratio] = {}
    for _, panels in pages("speed", rows.of("speed")):
        for panel in panels:
            found |= ratios(panel, styles)
    alone = tuple(c for c in rows.of("speed") if scope_of(c) == "attention")
    return Speeds(file, rows.runs[0]["environment"], alone, found)


def _scored(file: Path, group: TaskGroup) -> list[tuple[str, Scored]]:
    by: dict[tuple[str, Params], list[Cell]] = {}
    for cell in group.cells:
        if cell.status != "skipped":
            by.setdefault((cell.variant, cell.params), []).append(cell)
    best = group.best_shortcut()
    level = best[1] if best else None
    return [(variant, Scored(file, one_line(group), params, tuple(own), level)) for (variant, params), own in by.items()]
