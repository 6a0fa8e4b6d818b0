"""Scores on tasks: beside chance and the best shortcut, by distance, by slice, by length, against speed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any

from attnbench.plots.kinds import length, slices, training
from attnbench.plots.kinds.panel_kinds import with_ends
from attnbench.plots.kinds.tradeoff import trade_note
from attnbench.plots.kinds.trades import Trade, trade_panels
from attnbench.plots.layout.axes import LEVELS
from attnbench.plots.layout.caption import left_out_text, not_learned
from attnbench.plots.rows import learning
from attnbench.plots.rows.agreement import NOTE as AGREEMENT_NOTE
from attnbench.plots.rows.agreement import agreements
from attnbench.plots.rows.joined import Front
from attnbench.plots.rows.read import FAILURES, Cell
from attnbench.plots.rows.scores import ONE_SEED, TaskGroup, controls, score, series_of, shortcut_words, task_groups
from attnbench.plots.rows.settings import chosen_on_validation, is_error, key_of, marks_of, tuning_note, unfinished, written
from attnbench.plots.rows.settings import name as metric_name
from attnbench.plots.rows.style import Series

from .book import Book, Json, hollow, rounded, section, table

SCORES = (
    ("task", "text"),
    ("variant", "series"),
    ("status", "text"),
    ("test", "score"),
    ("\u00b1 half interval", "score"),
    ("seeds", "number"),
    ("best shortcut", "text"),
    ("its score", "score"),
    ("chance", "score"),
    ("metric", "text"),
    ("mark", "text"),
    ("cells", "cells"),
)
LEARNED = (
    ("task", "text"),
    ("variant", "series"),
    ("seeds that learned", "text"),
    (f"steps to {learning.LIFT_SHARE * 100:.0f} % of the way", "text"),
    ("learning rates", "text"),
    ("cells", "cells"),
)
AGREEMENT = (("task", "text"), ("with", "text"), ("variants", "number"), ("tau", "score"), ("95 % interval", "text"))
TRADES = (
    ("panel", "text"),
    ("variant", "series"),
    ("status", "text"),
    ("score", "score"),
    ("tokens per second", "number"),
    ("peak memory", "bytes"),
    ("on the front", "score"),
    ("costs measured at", "text"),
    ("mark", "text"),
    ("cells", "cells"),
)
NOT_JUDGED = (
    "A score says nothing of a variant where the control, exact attention unless the task names another, has not learned the "
    "task: train longer (--train steps=N), or take an easier setting."
)
Spread = Callable[[Sequence[Cell]], Sequence[tuple[float, float, float, float]]]  # x, mean, low, high


class Tasks:
    """The accuracy cells by task, with what was chosen on validation, read once."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.cells = chosen_on_validation(book.rows.of("accuracy"))
        self.groups = task_groups(self.cells)
        self.series = series_of(self.groups, book.styles)

    @cached_property
    def trades(self) -> list[Trade]:
        return trade_panels(self.book.rows, self.book.styles)


def accuracy(tasks: Tasks) -> Json | None:
    rows = tasks.book.rows
    if not tasks.groups:
        return section("accuracy", "Accuracy", f"No score is shown. {left_out_text(rows)} {NOT_JUDGED}", []) if rows.left_out else None
    found = [(g, s) for g in tasks.groups for s in g.select(tasks.series)]
    return section(
        "accuracy",
        "Accuracy",
        "Test score of the weights that were best on validation, beside the score of the best "
        "trivial shortcut (dashed) and of chance (dotted) on the same test split. A score at the "
        "shortcut says nothing of the variant.",
        [_scores(g, tasks) for g in tasks.groups],
        table("scores", "Scores", SCORES, (_score_row(g, s, tasks.book) for g, s in found)),
        note=" ".join(
            filter(
                None,
                (
                    f"Bars are 95 % intervals: {ONE_SEED}, of several t-intervals over the seeds.",
                    controls(tasks.groups),
                    not_learned(rows, tasks.cells),
                    tuning_note(tasks.cells),
                ),
            )
        ),
    )


def _task(group: TaskGroup) -> str:
    return group.title.replace("\n", ", ").rstrip(", ")


def _scores(group: TaskGroup, tasks: Tasks) -> Json:
    shortcut, told = group.best_shortcut(), ""
    if shortcut:
        told = f"best shortcut: {shortcut_words(shortcut[0])}, {written(shortcut[1], group.metric)}"
    lines = []
    for s in group.select(tasks.series):
        if found := score(s.cells):
            ends = [None, None] if found.half is None else _ends(found.mean, found.half)
            own = tasks.book.cells(s.cells)
            point = [rounded(found.mean), None, *map(rounded, ends), own]
            line = {"series": tasks.book.series(s), "mark": marks_of(s.cells), "points": [point]}
            lines.append(line | hollow(found.is_unfinished))
    return {
        "kind": "scores",
        "title": _task(group),
        "facets": {"task": str(group.cells[0].task)},
        "x": {"title": group.label, "kind": "score", "log": is_error(group.metric)},
        "y": {"title": "", "kind": "series"},
        "lines": lines,
        "levels": [[level, level, rounded(v)] for level, v in group.levels.items()],
        "context": "; ".join(filter(None, [told, *key_of(group.cells)])),
        "failed": [[tasks.book.series(s), None, _status(s)] for s in _failed(group, tasks.series)],
    }


def _ends(mean: float, half: float) -> list[float]:
    return [mean - half, mean + half]


def _failed(group: TaskGroup, series: list[Series]) -> list[Series]:
    own = group.select(series)
    return [s for s in own if not score(s.cells) and any(c.status in FAILURES for c in s.cells)]


def _status(series: Series) -> str:
    return ", ".join(sorted({c.status for c in series.cells})) or "not run"


def _score_row(group: TaskGroup, series: Series, book: Book) -> list[Any]:
    found, shortcut = score(series.cells), group.best_shortcut()
    return [
        _task(group),
        book.series(series),
        _status(series),
        rounded(found.mean) if found else None,
        rounded(found.half) if found else None,
        len(found.seeds) if found else 0,
        shortcut[0].replace("_", " ") if shortcut else "",
        rounded(group.levels.get("best shortcut")),
        rounded(group.levels.get("chance")),
        metric_name(group.metric),
        "; ".join(key_of(series.cells)),
        book.cells(series.cells),
    ]


def by_distance(tasks: Tasks) -> Json | None:
    x = {"title": "distance, positions", "kind": "number", "log": False}
    groups = length.by_distance(tasks.book.rows)
    panels = _lines(tasks, groups, with_ends(length.points_by_distance), x)
    return panels and section(
        "distance",
        "Accuracy by distance",
        "Test score of labels whose evidence lies so far apart; a line that falls forgets.",
        panels,
        note=" ".join(length.distance_notes(groups)),
    )


def by_slice(tasks: Tasks) -> Json | None:
    panels = []
    for group in slices.by_slice(tasks.book.rows):
        x = {"title": group.words, "kind": "number", "log": False}
        panels += _lines(tasks, [group], with_ends(slices.points_of(group)), x) or []
    if not panels:
        return None
    return section(
        "slices",
        "Accuracy by slice",
        "Test score of the groups that a task names, of examples or of labels; a line that falls loses there.",
        panels,
        note=slices.NOTE,
    )


def by_length(tasks: Tasks) -> Json | None:
    x = {"title": "sequence length (tokens)", "kind": "length"}
    points = with_ends(length.points_by_length)
    panels = _lines(tasks, length.beyond_training(tasks.book.rows), points, x, ("chance",))
    return panels and section(
        "length",
        "Accuracy by length",
        "Test score beyond the length of training; a line that falls does not generalise.",
        panels,
        note=length.LENGTH_NOTE,
    )


def while_training(tasks: Tasks) -> Json | None:
    x = {"title": training.STEPS, "kind": "number", "log": False}
    panels = _lines(tasks, training.while_training(tasks.book.rows), training.spread, x, cuts=False)
    return panels and section(
        "learning",
        "Learning curves",
        "Validation score by steps of training; a line that rises early learns fast.",
        [panel | {"ends": "seeds"} for panel in panels],
        table("learned", "How surely, how soon and at which rates", LEARNED, _learned_rows(tasks)),
        note=f"{training.LEARNING_NOTE} {learning.NOTE}",
    )


def _learned_rows(tasks: Tasks) -> Iterable[list[Any]]:
    rows = tasks.book.rows
    every = [*rows.of("accuracy"), *rows.trials]
    for group in tasks.groups:
        for series in group.select(tasks.series):
            if found := learning.learning_of(series.cells, every):
                own = [found.share_text, found.steps_text, found.rates_text]
                yield [_task(group), tasks.book.series(series), *own, tasks.book.cells(series.cells)]


def carries_over(tasks: Tasks) -> Json | None:
    found = agreements(tasks.groups)
    if not found:
        return None
    rows = [[a.task, a.with_task, a.variants, rounded(a.tau), a.interval_text] for a in found]
    return section(
        "carries-over",
        "Does it carry over?",
        "Whether variants stand in the same order on a task as on one that is scored in bits a token.",
        [],
        table("agreement", "Kendall's tau of each task with language", AGREEMENT, rows),
        note=AGREEMENT_NOTE,
    )


def against_effort(tasks: Tasks) -> Json | None:
    groups = training.efforts(tasks.book.rows)
    panels = []
    for kind, title in training.EFFORTS.items():
        own = [g for g in groups if g.kind == kind]
        x = {"title": title, "kind": "seconds" if kind == "seconds" else "number", "log": True}

        panels += _lines(tasks, own, partial(training.points_by_effort, kind=kind), x, cuts=False) or []
    if not panels:
        return None
    return section(
        "effort",
        "Score against effort",
        "Validation score while the model trains, against seconds and against FLOPs of training: up and to the "
        "left is better.",
        [panel | {"ends": "seeds"} for panel in panels],
        note=training.EFFORT_NOTE,
    )


def _lines(
    tasks: Tasks,
    groups: Iterable[TaskGroup],
    points: Spread,
    x: Json,
    known: Sequence[str] = tuple(LEVELS),
    *,
    cuts: bool = True,
) -> Any:
    """`known`: the levels that hold along the whole axis. `cuts`: whether trainings that were cut off are hollow; a line
    over a training is not."""
    groups, book = list(groups), tasks.book
    panels = []
    for group in groups:
        lines = []
        for s in group.select(series_of(groups, book.styles)):
            if s.cells:
                own = book.cells(s.cells)
                found = [[*map(rounded, point), own] for point in points(s.cells)]
                line = {"series": book.series(s), "mark": marks_of(s.cells), "points": found}
                lines.append(line | hollow(cuts and unfinished(s.cells)))
        panels.append(
            {
                "title": _task(group),
                "facets": {"task": str(group.cells[0].task)},
                "x": x,
                "y": {"title": group.label, "kind": "score", "log": is_error(group.metric)},
                "lines": lines,
                "context": "; ".join(key_of(group.cells)),
                "levels": [[level, level, rounded(v)] for level, v in group.levels.items() if level in known],
            }
        )
    return panels or None


def tradeoff(tasks: Tasks) -> Json | None:
    trades = tasks.trades
    if not any(d.whole for t in trades for d in t.dots):
        return None
    shown = [t for t in trades if any(d.whole for d in t.dots)]
    return section(
        "tradeoff",
        "Trade-off",
        "Score against speed: up and to the right is better. The line is the best score among the "
        "variants at least as fast (the Pareto front), the band its 95 % interval.",
        [_trade(t, tasks.book) for t in shown],
        table("trades", "Scores and costs", TRADES, (r for t in shown for r in _records(t, tasks.book))),
        note=trade_note(shown),
    )


def _trade(trade: Trade, book: Book) -> Json:
    lines = []
    for dot in trade.dots:
        if dot.whole and dot.score:
            mean, half = dot.score.mean, dot.score.half
            ends = [None, None] if half is None else _ends(mean, half)
            values = map(rounded, (dot.speed, mean, *ends))
            line = {"series": book.series(dot.series), "mark": marks_of(dot.cells), "points": [[*values, book.cells(dot.cells)]]}
            lines.append(line | hollow(dot.is_unfinished))
    metric = trade.metric
    return {
        "title": trade.title,
        "facets": {"task": trade.slug},
        "x": {"title": trade.axis, "kind": "number", "log": True},
        "y": {"title": trade.label, "kind": "score", "log": is_error(metric), "down": is_error(metric)},
        "lines": lines,
        "levels": [[level, level, rounded(value)] for level, value in trade.levels.items()],
        "front": _front(trade.front) if trade.front else [],
        "context": "; ".join(key_of(c for d in trade.dots if d.whole for c in d.cells)),
    }


def _front(front: Front) -> list[list[float | None]]:
    """Returns [speed, best, low, high] where one of the three changes."""
    table = list(zip(front.speeds, front.best, front.low, front.high, strict=True))
    kept = [
        line
        for i, line in enumerate(table)
        if i in (0, len(table) - 1) or line[1:] != table[i - 1][1:] or line[1:] != table[i + 1][1:]
    ]
    return [[rounded(float(v)) if math.isfinite(v) else None for v in line] for line in kept]


def _records(trade: Trade, book: Book) -> list[list[Any]]:
    chances = trade.front.chance if trade.front else {}
    return [
        [
            trade.title,
            book.series(d.series),
            d.status,
            rounded(d.mean),
            rounded(d.speed),
            rounded(d.peak),
            rounded(chances.get(d.series.key)),
            trade.speed.text(),
            "; ".join(key_of(d.cells)) if d.whole else "",
            book.cells(d.cells),
        ]
        for d in trade.dots
    ]
