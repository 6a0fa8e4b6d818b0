"""History over commits: a line for each cell over the rows files of a folder, one a run, in the order
of their times.

Steps in a short series of values: binary segmentation with a permutation test of the largest CUSUM.

The statistic is the standardised difference of the two means at the best place to cut (Page 1954;
Hinkley 1970); its distribution where nothing changes comes from permutations of the same values, so
no shape of the noise is assumed, only that the order of the values says nothing (exchangeability).
O(permutations * n) for each segment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from attnbench.plots.rows.read import Cell, RowsError, read_rows
from attnbench.plots.rows.settings import MODE_WORDS, contract, mode_of, scope_of, scope_text, shape_text
from attnbench.plots.rows.units import length_text

from .book import Book, Json, rounded, section, table


@dataclass(frozen=True)
class Past:
    """One file: when and of which commit it is, and its cells."""

    file: Path
    head: dict[str, Any]
    cells: list[Cell]

    @property
    def commit(self) -> str:
        return str((self.head.get("environment") or {}).get("commit") or "unknown")[:9]


def read_history(folder: Path) -> list[Past]:
    """Returns the rows files of a folder in the order of their runs. Error where it holds fewer than
    two, or files of several runs."""
    files = sorted(folder.glob("*.jsonl"))
    if len(files) < 2:
        raise RowsError(f"--history {folder}: a history needs two rows files (*.jsonl), it has {len(files)}")
    out = []
    for file in files:
        rows = read_rows([file])
        if len(rows.runs) != 1:
            raise RowsError(f"--history {file}: holds {len(rows.runs)} runs; give a file for each")
        out.append(Past(file, rows.runs[0], rows.cells))
    return sorted(out, key=lambda p: (str(p.head.get("started_at") or ""), p.file.name))


LEAST = 6  # values of a segment that is tested: of 5 the smallest p is above 0.05
PERMUTATIONS = 1999
LEVEL = 0.05


@dataclass(frozen=True)
class Step:
    """Values from `at` on differ from those before it."""

    at: int
    before: float  # mean of the segment that ends at `at`
    after: float
    p: float


def largest(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns, of each row of `values` [series, n], the largest statistic and where it cuts."""
    n = values.shape[-1]
    k = np.arange(1, n)
    total = values.sum(axis=-1, keepdims=True)
    left = np.cumsum(values, axis=-1)[..., :-1]
    gap = np.abs(left / k - (total - left) / (n - k)) * np.sqrt(k * (n - k) / n)
    return gap.max(axis=-1), gap.argmax(axis=-1) + 1


@cache
def _orders(n: int) -> np.ndarray:
    """Permutations of n places [PERMUTATIONS, n], the same for every series of that length."""
    return np.argsort(np.random.default_rng(n).random((PERMUTATIONS, n)), axis=1)


def best_cut(values: Sequence[float]) -> tuple[float, int]:
    """Returns the p value of the best cut and its place. A permutation that ties counts as one that
    exceeds, so the share of false alarms is the level at most."""
    own = np.asarray(values, dtype=float)
    statistic, cut = largest(own[None, :])
    drawn, _ = largest(own[_orders(len(own))])
    exceeds = int((drawn >= statistic[0] * (1 - 1e-12)).sum())
    return (1 + exceeds) / (1 + PERMUTATIONS), int(cut[0])


def steps(values: Sequence[float], level: float = LEVEL) -> list[Step]:
    """Returns the steps of one series in their order; each segment on both sides of a step that is
    found is tested again."""
    cuts: dict[int, float] = {}
    segments = [(0, len(values))]
    while segments:
        begin, end = segments.pop()
        if end - begin < LEAST:
            continue
        p, cut = best_cut(values[begin:end])
        if p <= level:
            cuts[begin + cut] = p
            segments += [(begin, begin + cut), (begin + cut, end)]
    edges = [0, *sorted(cuts), len(values)]
    means = [float(np.mean(values[a:b])) for a, b in zip(edges, edges[1:])]
    return [Step(at, means[i], means[i + 1], cuts[at]) for i, at in enumerate(sorted(cuts))]


SMALLEST = 0.02  # steps up to it are of no interest, as in `attnbench compare`
VALUES = {"speed": "time_s.median", "memory": "peak_bytes", "accuracy": "test", "fidelity": "relative_error",
          "reach": "perturbation.past"}  # fmt: skip
TITLES = {"speed": "Time", "memory": "Peak memory", "accuracy": "Test score", "fidelity": "Relative error",
          "reach": "Reach"}  # fmt: skip
STEPS = (
    ("measure", "text"),
    ("cell", "text"),
    ("from commit", "text"),
    ("before", "number"),
    ("after", "number"),
    ("after over before", "ratio"),
    ("p", "number"),
)
COMMITS = (("number", "number"), ("commit", "text"), ("measured", "text"), ("file", "text"), ("cells", "number"))


def history(past: Sequence[Past], book: Book) -> Json | None:
    if not past:
        return None
    values: dict[tuple[Any, ...], dict[int, float]] = {}
    cells: dict[tuple[Any, ...], Cell] = {}
    for number, one in enumerate(past):
        for cell in one.cells:
            value = cell.metric(VALUES[cell.measure]) if cell.ok else None
            if value is not None and value > 0:
                key = _what(cell)
                values.setdefault(key, {})[number] = value
                cells[key] = cell
    kept = {key: line for key, line in values.items() if len(line) > 1}
    if not kept:
        return None
    groups: dict[tuple[Any, ...], list[Json]] = {}
    rows: list[list[Any]] = []
    for key, line in kept.items():
        cell = cells[key]
        numbers = sorted(line)
        found = steps([float(np.log(line[i])) for i in numbers])
        told = [s for s in found if abs(np.exp(s.after - s.before) - 1) > SMALLEST]
        rows += [_row(cell, past, numbers[s.at], s) for s in told]
        groups.setdefault(_group(cell), []).append(_line(cell, line, [numbers[s.at] for s in told], book))
    panels = [_panel(group, lines, past) for group, lines in groups.items()]
    commits = [[i + 1, p.commit, str(p.head.get("started_at") or ""), p.file.name, len(p.cells)] for i, p in enumerate(past)]
    return section(
        "history",
        "History",
        f"Every cell over {len(past)} runs, as multiples of its first value. A ring marks a step: from this "
        "run on the cell differs.",
        panels,
        table("steps", "Steps", STEPS, rows),
        table("commits", "Runs in order", COMMITS, commits),
        note=f"A step is where a permutation test of the largest CUSUM of the logarithms ({PERMUTATIONS} "
        f"permutations, level {LEVEL:g} for each cell, segments cut in two again) finds a change of more than "
        f"{SMALLEST:.0%}. Of {len(kept)} cells that never change about {LEVEL * len(kept):.0f} are "
        f"marked by chance. Fewer than {LEAST} runs are drawn and not tested. A machine that drifts "
        "looks like a step.",
    )


def _what(cell: Cell) -> tuple[Any, ...]:
    """What is measured, whatever the program was: neither the sources nor the run."""
    axes = {k: v for k, v in cell.axes.items() if k != "repetitions"}
    where = json.dumps([axes, cell.training], sort_keys=True)
    return cell.measure, cell.variant, cell.params, cell.task, cell.task_params, where


def _group(cell: Cell) -> tuple[Any, ...]:
    if cell.task:
        return cell.measure, cell.task, contract(cell), ""
    mode = MODE_WORDS.get(mode_of(cell), mode_of(cell))
    return cell.measure, f"{scope_text(scope_of(cell))}, {mode}", contract(cell), shape_text(cell)


def _name(cell: Cell, book: Book) -> str:
    label = book.label_of(cell)
    seed = cell.axes.get("seed")
    more = [f"length {length_text(cell.length)}"] if cell.length else []
    if cell.measure == "fidelity":
        more.append(f"{cell.axes.get('input')} {cell.axes.get('input_scale')}")
    if cell.measure == "reach":
        more.append(f"{cell.axes.get('layers')} layers")
    return ", ".join([label, *more, *([f"seed {seed}"] if seed not in (None, 0) else [])])


def _line(cell: Cell, line: dict[int, float], marked: list[int], book: Book) -> Json:
    first = line[min(line)]
    points = [[number + 1, rounded(line[number] / first), None, None, []] for number in sorted(line)]
    return {
        "series": book.series_named(cell),
        "name": _name(cell, book),
        "points": points,
        "steps": [number + 1 for number in marked],
    }


def _panel(group: tuple[Any, ...], lines: list[Json], past: Sequence[Past]) -> Json:
    measure, what, mask, shape = group
    return {
        "title": f"{TITLES[measure]}: {what}, {mask}",
        "facets": {"measure": measure, "mask": mask},
        "context": shape,
        "x": {"title": "run, by its time", "kind": "run", "log": False, "names": [p.commit for p in past]},
        "y": {"title": f"{TITLES[measure].lower()}, first run = \u00d71", "kind": "ratio", "log": True},
        "lines": lines,
    }


def _row(cell: Cell, past: Sequence[Past], at: int, step: Any) -> list[Any]:
    task = [f"{cell.task}"] if cell.task else []
    params = " ".join(f"{k}={v}" for k, v in cell.params)
    words = [cell.variant, params, *task, _group(cell)[1], contract(cell), f"length {cell.length}"]
    before, after = (float(np.exp(v)) for v in (step.before, step.after))
    ends = [rounded(before), rounded(after), rounded(after / before), rounded(step.p)]
    return [cell.measure, ", ".join(filter(None, words)), past[at].commit, *ends]
