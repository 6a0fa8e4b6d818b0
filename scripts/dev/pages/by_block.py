"""Markdown: test scores of mixers alone beside those of their papers' layers, of the settings chosen on validation; and how
surely, how soon and at which learning rates each of the two learned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attnbench.plots.rows.learned import published
from attnbench.plots.rows.learning import learning_of
from attnbench.plots.rows.read import Cell, Params, read_rows
from attnbench.plots.rows.scores import TaskGroup, short_titles, task_groups
from attnbench.plots.rows.settings import spec_among, winners
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import markdown

from .by_family import BLOCK, entry, is_layer, left_out


def table(path: Path) -> str:
    """A line a variant; of each task the score of the mixer alone and of the paper's layer, and in the end the
    numbers that the two models learn. The mixer of exact attention has no other layer."""
    rows = published(read_rows([path]), without_control=False)
    groups = task_groups(winners(rows.of("accuracy")))
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


def learning(path: Path) -> str:
    """A line a variant and what stands around it; of each task the seeds that learned, the steps that they took and the
    learning rates at which a training came so far, see attnbench.plots.rows.learning."""
    rows = published(read_rows([path]), without_control=False)
    groups = task_groups(winners(rows.of("accuracy")))
    trainings = [c for g in groups for c in g.cells]
    every = [*rows.of("accuracy"), *rows.trials]
    heads = ["variant"]
    for title in short_titles(groups):
        heads += [f"`{title}`: seeds", "steps", "learning rates"]
    lines = []
    plain = [replace(c, params=_mixer(c.params)) for c in trainings]
    for series in Styles(rows).series(trainings):
        name = spec_among(series.variant, _mixer(series.params), plain)
        layer = f"{name[:-1]},block=paper]" if name.endswith("]") else f"{name}[block=paper]"
        line = [f"`{layer if is_layer(series.params) else name}`"]
        for group in groups:
            own = [c for c in group.cells if (c.variant, c.params) == (series.variant, series.params)]
            found = learning_of(own, every) if own else None
            line += [f"{found.learned} of {found.seeds}", found.steps_text, found.rates_text] if found else ["—"] * 3
        lines.append(line)
    return markdown(heads, lines)


def _mixer(params: Params) -> Params:
    return tuple((name, value) for name, value in params if name != BLOCK)


def _of(group: TaskGroup, mixer: tuple[str, Params], layer: bool) -> list[Cell]:
    return [c for c in group.cells if (c.variant, _mixer(c.params)) == mixer and is_layer(c.params) == layer]


def _parameters(groups: list[TaskGroup], mixer: tuple[str, Params], layer: bool) -> str:
    """Of the model on the first task that has it: other tasks differ in their tokens alone."""
    found = next((int(cell.metric("parameters") or 0) for group in groups for cell in _of(group, mixer, layer)), 0)
    return f"{found:,}" if found else "—"
