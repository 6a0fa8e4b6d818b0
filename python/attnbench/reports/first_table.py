"""The table that a report opens with: what the overview picture shows, as HTML that needs no script."""

from __future__ import annotations

import html
from collections.abc import Iterable

from attnbench.plots.kinds.overview import shape_words
from attnbench.plots.kinds.overview_rows import NONE, Answer, Line, Overview, Task, overview_of
from attnbench.plots.rows.settings import MODE_WORDS, contract, mode_of, scope_of, scope_text
from attnbench.plots.rows.settings import name as metric_name
from attnbench.plots.rows.units import length_text

from .book import Book

WORDS = {  # what a stranger need not know, by what calls for it
    "shortcut": "<b>Shortcut</b>: a rule that needs no attention, such as always giving the most frequent answer. A score "
    "above the best shortcut (its <b>lift</b>) needs attention; one below it says that nothing was learned.",
    "tiled": "<b>Tiled</b>: exact attention computed block by block, without holding a number for each pair of positions; "
    "<b>materialized</b> holds them all.",
    "interval": "Small numbers below are 95 % intervals.",
}


def first_table(book: Book) -> str:
    """Returns HTML, or nothing where the rows hold too little for a table."""
    found = overview_of(book.rows, book.styles)
    if found is None:
        return ""
    heads, bodies = _heads(found), [_line(found, line) for line in found.lines]
    return (
        '<section id="overview" aria-labelledby="overview-title">\n'
        '<h2 id="overview-title">Which variant wins, from where, at what cost</h2>\n'
        f"<p>{_lead(found)}</p>\n"
        '<div class="broad" tabindex="0" role="region" aria-labelledby="overview-title">\n'
        f'<table class="first" aria-labelledby="overview-title">\n<thead><tr>{"".join(heads)}</tr></thead>\n<tbody>\n'
        + "\n".join(bodies)
        + f'\n</tbody></table>\n</div>\n<ul class="quiet notes">{"".join(f"<li>{note}</li>" for note in _notes(found))}</ul>\n</section>'
    )


def _lead(found: Overview) -> str:
    """What all costs have in common, and what they are compared with."""
    panel = found.time or found.memory
    words = [f"Compared with <code>{_text(found.baseline)}</code>, exact attention."]
    if panel is not None:
        cell = panel.cells[0]
        mode = MODE_WORDS.get(mode_of(cell), mode_of(cell))
        words.append(f"Time and memory are of {_text(scope_text(scope_of(cell)))}, {_text(mode)}, {contract(cell)}.")
        words.append(_text(shape_words(found)))
    if found.tasks:
        words.append("Scores are of small models that were trained with the same parameters, at the lengths in the headings.")
    return " ".join(words)


def _heads(found: Overview) -> list[str]:
    heads = ['<th scope="col">variant</th>']
    if found.time:
        heads.append(_head("less time", "from this length on, tokens"))
        heads.append(_head(f"time at {length_text(found.time_at)} tokens", "exact attention = 1"))
    if found.memory:
        heads.append(_head("less memory", "from this length on, tokens"))
        heads.append(_head(f"peak memory at {length_text(found.memory_at)} tokens", ""))
    return heads + [_head(task.title, _task(task)) for task in found.tasks]


def _head(title: str, below: str) -> str:
    return f'<th scope="col">{_text(title)}<span>{_text(below)}</span></th>'


def _task(task: Task) -> str:
    parts = [metric_name(task.group.metric), task.where, task.shape, task.warning, "" if task.is_bar else "less is better"]
    return "; ".join(filter(None, parts))


def _line(found: Overview, line: Line) -> str:
    cells = [f'<th scope="row">{_text(line.series.variant)}<span>{_text(line.params)}</span></th>']
    if found.time:
        most = max((one.time.value or 0.0 for one in found.lines), default=1.0) or 1.0
        cells.append(_number("less time from", line.time_from))
        cells.append(_number(f"time at {length_text(found.time_at)}", line.time, most, amount=not line.is_baseline))
    if found.memory:
        most = max((one.memory.value or 0.0 for one in found.lines), default=1.0) or 1.0
        cells.append(_number("less memory from", line.memory_from))
        cells.append(_number(f"memory at {length_text(found.memory_at)}", line.memory, most))
    for task, answer in zip(found.tasks, line.scores, strict=True):
        levels = task.group.levels.items() if task.is_bar else ()
        where = f" ({task.where})" if task.where else ""
        cells.append(_number(f"score on {task.title}{where}", answer, 1.0 if task.is_bar else 0.0, levels))
    kind = ' class="exact"' if line.is_baseline else ""
    return f"<tr{kind}>{''.join(cells)}</tr>"


def _number(
    label: str,
    answer: Answer,
    most: float = 0.0,
    levels: Iterable[tuple[str, float]] = (),
    *,
    amount: bool = False,
) -> str:
    """A cell of the table. `most` is the value of a whole bar, 0 for no bar; `label` names the column where a
    narrow page has no heading."""
    bar = ""
    if most and answer.value is not None:
        ticks = "".join(
            f'<i class="{"chance" if level == "chance" else "shortcut"}" style="left:{_percent(value)}" title="{level} {value:.2f}"></i>'
            for level, value in levels
        )
        bar = f'<span class="bar" aria-hidden="true"><b style="width:{_percent(answer.value / most)}"></b>{ticks}</span>'
    detail = " · ".join(filter(None, [answer.detail, answer.full if amount else ""]))
    below = f"<small>{_text(detail)}</small>" if detail else ""
    empty = ' class="empty"' if answer.text == NONE else ""
    return f'<td data-label="{_text(label)}"{empty}>{bar}<span class="value">{_text(answer.marked)}</span>{below}</td>'


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.1f}%"


def _notes(found: Overview) -> list[str]:
    notes = [f"<b>{_text(mark)}</b> {_text(words)}." for mark, words in found.marks.items()]
    if found.time and found.time.is_curve:
        how = "as the search found it" if found.is_searched else "interpolated between measured lengths"
        notes.append(f"<b>Less time from</b>: where the medians cross, {how}. {WORDS['interval']}")
    if any(task.group.levels for task in found.tasks):
        chance, dashed = '<i class="key chance"></i>', '<i class="key shortcut"></i>'
        notes.append(f"In the bars of scores {chance} is chance and {dashed} the best shortcut. {WORDS['shortcut']}")
    if "tiled" in found.baseline:
        notes.append(WORDS["tiled"])
    for task in found.tasks:
        if task.warning:
            notes.append(f"<b>{_text(task.title)}</b> compares nothing: {_text(task.warning)}.")
    return notes


def _text(words: str) -> str:
    return html.escape(words)
