"""Markdown: test scores of mixers alone beside those of their papers' layers, of the settings chosen on validation; and how
surely, how soon and at which learning rates each of the two learned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attnbench.plots.rows.learned import published
from attnbench.plots.rows.learning import Learning, learning_of
from attnbench.plots.rows.read import Cell, Params, read_rows
from attnbench.plots.rows.scores import TaskGroup, short_titles, task_groups
from attnbench.plots.rows.settings import spec_among, winners
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import markdown

from .by_family import entry, left_out
from .orders import BLOCK, is_layer
from .parameters import parameters_of

MOST_COLUMNS = 4  # tasks
ENOUGH = 8  # seeds, where some learn and others do not


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
    """How surely, how soon and at which learning rates each variant learned each task, see attnbench.plots.rows.learning: a line
    a variant and three columns a task, or, of many tasks, a line for each of both. Below, where seeds differ and are few."""
    rows = published(read_rows([path]), without_control=False)
    groups = task_groups(winners(rows.of("accuracy")))
    trainings = [c for g in groups for c in g.cells]
    every = [*rows.of("accuracy"), *rows.trials]
    plain = [replace(c, params=_mixer(c.params)) for c in trainings]
    found = {}  # by name and task
    for series in Styles(rows).series(trainings):
        name = spec_among(series.variant, _mixer(series.params), plain)
        layer = f"{name[:-1]},block=paper]" if name.endswith("]") else f"{name}[block=paper]"
        for title, group in zip(short_titles(groups), groups, strict=True):
            own = [c for c in group.cells if (c.variant, c.params) == (series.variant, series.params)]
            found[layer if is_layer(series.params) else name, title] = learning_of(own, every) if own else None
    return _by_task(found) if len(groups) > MOST_COLUMNS else _by_variant(found)


def _by_variant(found: dict[tuple[str, str], Learning | None]) -> str:
    names, titles = (list(dict.fromkeys(key[i] for key in found)) for i in (0, 1))
    heads = ["variant"]
    for title in titles:
        heads += [f"`{title}`: seeds", "steps", "learning rates"]
    learned = [name for name in names if any(found[name, title] for title in titles)]
    lines = [[f"`{name}`", *(word for title in titles for word in _words(found[name, title]))] for name in learned]
    return markdown(heads, lines) + _of_two_minds(found)


def _by_task(found: dict[tuple[str, str], Learning | None]) -> str:
    titles = list(dict.fromkeys(title for _, title in found))
    told = [(name, title, own) for at in titles for (name, title), own in found.items() if own and title == at]
    lines = [[f"`{title}`", f"`{name}`", *_words(own)] for name, title, own in told]
    return markdown(["task", "variant", "seeds", "steps", "learning rates"], lines) + _of_two_minds(found)


def _words(found: Learning | None) -> list[str]:
    return [found.share_text, found.steps_text, found.rates_text] if found else ["—"] * 3


def _of_two_minds(found: dict[tuple[str, str], Learning | None]) -> str:
    """The line on variants of which some seeds learned and others did not, with fewer seeds than tell how often."""
    few: dict[str, list[str]] = {}
    for (name, title), own in found.items():
        if own and 0 < own.learned < own.seeds < ENOUGH:
            few.setdefault(title, []).append(f"`{name}`")
    told = "; ".join(f"on `{title}` {', '.join(names)}" for title, names in few.items())
    return f"\n\nSome seeds learned and others did not, of fewer than {ENOUGH}: {told}. Their means say little." if few else ""


def _mixer(params: Params) -> Params:
    return tuple((name, value) for name, value in params if name != BLOCK)


def _of(group: TaskGroup, mixer: tuple[str, Params], layer: bool) -> list[Cell]:
    return [c for c in group.cells if (c.variant, _mixer(c.params)) == mixer and is_layer(c.params) == layer]


def _parameters(groups: list[TaskGroup], mixer: tuple[str, Params], layer: bool) -> str:
    """Of the model on the first task that has it: other tasks differ in their tokens alone."""
    found = next(filter(None, (parameters_of(_of(group, mixer, layer)) for group in groups)), None)
    return f"{found:,}" if found else "—"
