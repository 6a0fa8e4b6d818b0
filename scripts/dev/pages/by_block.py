"""Markdown: test scores of mixers alone beside those of their papers' layers, of the settings chosen on validation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Cell, Params, read_rows
from attnbench.plots.rows.scores import TaskGroup, short_titles, task_groups
from attnbench.plots.rows.settings import spec_among
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import markdown

from .by_family import BLOCK, entry, is_layer, left_out


def table(path: Path) -> str:
    """A line a variant; of each task the score of the mixer alone and of the paper's layer, and in the end the
    numbers that the two models learn. The mixer of exact attention has no other layer."""
    rows = published(read_rows([path]), without_control=False)
    groups = task_groups(rows.of("accuracy"))
    every = [c for g in groups for c in g.cells]
    mixers = dict.fromkeys((s.variant, _mixer(s.params)) for s in Styles(rows).series(every))
    plain = [replace(c, params=_mixer(c.params)) for c in every]
    heads = ["variant"]
    for title in short_titles(groups):
        heads += [f"`{title}`: mixer", "layer"]
    lines = []
    for mixer in mixers:
        line = [f"`{spec_among(*mixer, plain)}`"]
        for group in groups:
            line += [entry(_of(group, mixer, layer)) for layer in (False, True)]
        lines.append([*line, *(_parameters(groups, mixer, layer) for layer in (False, True))])
    shortcuts = []
    for group in groups:
        best = group.best_shortcut()
        shortcuts += [f"{best[1]:.2f}" if best else "—", ""]
    return markdown([*heads, "parameters: mixer", "layer"], [*lines, ["best shortcut", *shortcuts, "", ""]]) + left_out(rows)


def _mixer(params: Params) -> Params:
    return tuple((name, value) for name, value in params if name != BLOCK)


def _of(group: TaskGroup, mixer: tuple[str, Params], layer: bool) -> list[Cell]:
    return [c for c in group.cells if (c.variant, _mixer(c.params)) == mixer and is_layer(c.params) == layer]


def _parameters(groups: list[TaskGroup], mixer: tuple[str, Params], layer: bool) -> str:
    """Of the model on the first task that has it: other tasks differ in their tokens alone."""
    found = next((int(cell.metric("parameters") or 0) for group in groups for cell in _of(group, mixer, layer)), 0)
    return f"{found:,}" if found else "—"
