"""The summary in sentences, made from the numbers of the sections, with their uncertainty. Names of
variants and tasks stand in backticks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from attnbench.plots.kinds.crossing import Verdict, verdicts
from attnbench.plots.kinds.curves import PEAK
from attnbench.plots.kinds.fidelity import EXACT, kind_of, scale_of
from attnbench.plots.kinds.overview_rows import telling_panel
from attnbench.plots.layout.caption import in_python, unique
from attnbench.plots.rows.crossing import Crossing
from attnbench.plots.rows.read import FAILURES, Cell, run_of
from attnbench.plots.rows.scores import PLACES, Score, TaskGroup, absent_places, score, shortcut_words
from attnbench.plots.rows.settings import (
    CUT,
    LOST,
    MEANINGS,
    MODE_WORDS,
    contract,
    dtype_of,
    is_error,
    marks_of,
    mode_of,
    scope_of,
    scope_text,
    unfinished,
    written,
)
from attnbench.plots.rows.style import BASELINE, Series
from attnbench.plots.rows.units import bytes_text, length_text

from .book import Book
from .curves import measured
from .exactness import by_layer, groups, mean
from .parts import attention_and_whole, share
from .scores import Tasks

MOST = 12  # sentences of one kind; the tables hold the others
LEAST_LOSS = 0.0005  # of a score that is written; less is no difference
INTERVAL = "95 % interval"


def summary(book: Book, tasks: Tasks) -> list[str]:
    parts = (speeds(book, tasks), shares(book), peaks(book), scores(book, tasks), errors(book), quality(book))
    told = [sentence for part in parts for sentence in part]
    marks = [f"{mark}: {MEANINGS[mark]}." for mark in (CUT, LOST) if any(mark in sentence for sentence in told)]
    return [*told, *marks, *filter(None, [in_python(book.rows)])]


def speeds(book: Book, tasks: Tasks) -> Iterator[str]:
    """From which length on each variant is faster, in the panel that says most of attention alone;
    at last the scores of the same variants."""
    panel = telling_panel("speed", book.rows)
    if panel is None or not panel.is_curve:
        return
    told = verdicts(panel, measured(panel, book), book.styles, book.rows)
    where = _where(panel.cells[0])
    shown = told if len(told) <= MOST else sorted(told, key=lambda v: v.crossing.length)[:MOST]
    for verdict in shown:
        words = crossing_words(book.label(verdict.series), verdict, where)
        yield f"{words}{_score_clause(verdict.series, tasks)}."
    if len(told) > MOST:
        yield f"{len(told) - MOST} more variants stand in the table 'Where variants overtake exact attention'; those above are the first."


def crossing_words(label: str, verdict: Verdict, where: str) -> str:
    c, named = verdict.crossing, f"`{label}`"
    first, last = length_text(c.first), length_text(c.last)
    span = f"{where}, {first} to {last} tokens"
    if c.unclear:
        return f"Whether {named} is faster than exact attention cannot be told from these times ({span})"
    if not c.is_found:
        place = f"somewhere between {c.low:,.0f} and" if math.isfinite(c.low) else "at most"
        return f"{named} is faster than exact attention from {place} {c.high:,.0f} tokens on ({where})"
    if c.length == -math.inf:
        words = f"{named} is faster than exact attention at every measured length"
        if c.high is None or c.high == -math.inf:
            return f"{words} ({span})"
        return f"{words} by its median{_ends(c)}{_sure(verdict)} ({span})"
    if c.length == math.inf:
        sure = "" if c.low is None or c.low == math.inf else _ends(c)
        return f"{named} is not faster than exact attention at the longest measured length{sure} ({span})"
    if verdict.faster_from.startswith("not up to"):
        return (
            f"The median of {named} falls below that of exact attention from {c.length:,.0f} tokens "
            f"on{_ends(c)}, but by less than its uncertainty at {last} tokens ({where})"
        )
    words = f"{named} is faster than exact attention from {c.length:,.0f} tokens on{_ends(c)}"
    return f"{words}{_sure(verdict)} ({where})"


def _sure(verdict: Verdict) -> str:
    """From which length on the tables call the variant faster."""
    found = verdict.faster_from
    if not found or verdict.is_searched:
        return ""
    if not found.isdigit():
        return ", but nowhere beyond the noise"
    return f", and beyond the noise from the measured length {found} on"


def _ends(c: Crossing) -> str:
    if c.low is None or c.high is None:
        return " (too few repetitions for an interval)"
    low = f"{c.low:,.0f}" if math.isfinite(c.low) else f"below {length_text(c.first)}"
    high = f"{c.high:,.0f}" if math.isfinite(c.high) else f"beyond {length_text(c.last)}"
    return f" ({INTERVAL} {low}\u2013{high})"


def _where(cell: Cell) -> str:
    mode = MODE_WORDS.get(mode_of(cell), mode_of(cell))
    return f"{scope_text(scope_of(cell))}, {mode}, {contract(cell)}"


def _score_clause(series: Series, tasks: Tasks) -> str:
    """What the same parameters lose: `; its accuracy on `mqar` is 0.36 where exact attention has
    0.99`, of several tasks on how many, and where most."""
    found = losses(series, tasks)
    if not found:
        scored = any(not is_error(g.metric) for g in tasks.groups)
        is_cut = any(unfinished(s.cells) for g in tasks.groups for s in g.select(tasks.series) if s.key == series.key)
        why = "its training was cut off" if is_cut else "its score was not measured with these parameters"
        return f"; {why}" if scored else ""
    worse = [f for f in found if f[2].mean - f[1].mean > (f[1].half or 0) + (f[2].half or 0)]
    group, own, exact = max(worse or found, key=lambda f: f[2].mean - f[1].mean)
    own_marks, exact_marks = (_marks(group, score) for score in (own, exact))
    both = f"{_score(own, group)}{own_marks} where exact attention has {_score(exact, group)}{exact_marks}{_stand_in(group, own)}"
    if len(found) == 1:
        return f"; its {group.label.removeprefix('test ')} on `{group.cells[0].task}` is {both}{_cut_clause(series, tasks)}"
    where = "most" if worse else "the largest difference is"
    most = f", {where} on `{group.cells[0].task}`: {both}" if exact.mean - own.mean >= LEAST_LOSS else ""
    return (
        f"; it scores less than exact attention, beyond both intervals, on {len(worse) or 'none'} of {len(found)} tasks{most}{_cut_clause(series, tasks)}"
    )


def _stand_in(group: TaskGroup, own: Score) -> str:
    """Where the score is not of this variant alone."""
    places = dict.fromkeys(place for c in group.cells if c.id in own.cell.split() for place in absent_places(c))
    return f" (in {' and in '.join(PLACES[p] for p in places)} exact attention stands in for the variant)" if places else ""


def _cut_clause(series: Series, tasks: Tasks) -> str:
    """On how many tasks more the two cannot be compared: where trainings end at a target, those that ended are the good ones."""
    cut = sum(any(s.is_unfinished for s in both) for _, both in _pairs(series, tasks))
    return f"; on {cut} more {'task' if cut == 1 else 'tasks'} a training of either was cut off" if cut else ""


def losses(series: Series, tasks: Tasks) -> list[tuple[TaskGroup, Score, Score]]:
    """Returns the tasks on which these parameters and exact attention have a score, with both. A training that was cut off
    says nothing of a loss."""
    return [(group, *both) for group, both in _pairs(series, tasks) if not any(s.is_unfinished for s in both)]


def _pairs(series: Series, tasks: Tasks) -> Iterator[tuple[TaskGroup, tuple[Score, Score]]]:
    """Cut off or not. An error is no score, and a task that a shortcut solves by design says nothing of a loss."""
    for group in tasks.groups:
        members = group.select(tasks.series)
        exact = tasks.book.styles.baseline(members, run_of(series.params))
        own = next((s for s in members if s.key == series.key), None)
        both = [found for s in (own, exact) if s and (found := score(s.cells))]
        if len(both) == 2 and not group.control and not is_error(group.metric):
            yield group, (both[0], both[1])


def _marks(group: TaskGroup, found: Score) -> str:
    """The marks of the cells behind a score."""
    return marks_of(c for c in group.cells if c.id in found.cell.split())


def _score(found: Score, group: TaskGroup) -> str:
    """Writes as many digits as the interval leaves; three decimals of a share at most."""
    if found.half is None:
        return written(found.mean, group.metric)
    if is_error(group.metric):
        return _error(found)
    places = 2 if found.half >= 0.0095 and found.mean < 0.99 else 3  # 0.996 is not 1.00
    half = f"{found.half:.{places}f}" if found.half >= 0.0005 else "<0.001"
    return f"{found.mean:.{places}f} \u00b1 {half}"


def shares(book: Book) -> Iterator[str]:
    """Of a layer or a model with exact attention, how much of its time attention is, at the longest length."""
    for (_, mode, mask, shape), pairs in list(attention_and_whole(book).items())[:MOST]:
        exact = [pair for pair in pairs if pair[1].variant == BASELINE]
        if not exact:
            continue
        part, whole = max(exact, key=lambda pair: pair[1].length or 0)
        middle, low, high = share(part, whole)
        label = book.label(book.styles.series([whole])[0])
        yield (
            f"At {length_text(whole.length or 0)} tokens attention alone takes {middle:.0%} ({low:.0%}\u2013{high:.0%}) of the time "
            f"of the {scope_text(scope_of(whole))} with `{label}` ({MODE_WORDS.get(mode, mode)}, {mask}, {shape}); "
            f"a variant that replaces attention alone does not shorten the rest."
        )


def peaks(book: Book) -> Iterator[str]:
    """The least and the most memory at the longest length that most variants have."""
    panel = telling_panel("memory", book.rows, telling_panel("speed", book.rows))
    if panel is None or not panel.is_curve:
        return
    medians = {s.key: (s, PEAK.medians(s)) for s in measured(panel, book)}
    at = max(panel.lengths, key=lambda n: (sum(n in m for _, m in medians.values()), n))
    held = [(m[at], s) for s, m in medians.values() if at in m]
    if len(held) < 2:
        return
    (least, small), (most, large) = (f(held, key=lambda h: h[0]) for f in (min, max))
    exact = book.styles.baseline([s for _, s in held])
    words = f"At {length_text(at)} tokens `{book.label(small)}` needs the least memory, {bytes_text(least)}"
    words += f", and `{book.label(large)}` the most, {bytes_text(most)}"
    if exact is not None and exact.key not in (small.key, large.key):
        words += f"; exact attention (`{book.label(exact)}`) needs {bytes_text(medians[exact.key][1][at])}"
    yield f"{words} ({_where(panel.cells[0])}; peaks are exact)."


def scores(book: Book, tasks: Tasks) -> Iterator[str]:
    """Each task's scores, best first, beside the best trivial shortcut; first, those that are left out and why."""
    if left_out := book.rows.left_out:
        more = f"; and {len(left_out) - MOST} more settings" if len(left_out) > MOST else ""
        yield f"Scores are left out where the control has not learned the task, for they say nothing of a variant: {'; '.join(left_out[:MOST])}{more}."
    for group in tasks.groups[:MOST]:
        every = [(sc, s) for s in group.select(tasks.series) if (sc := score(s.cells))]
        found = [f for f in every if not f[0].is_unfinished]
        cut = ", ".join(f"`{book.label(s)}`" for sc, s in every if sc.is_unfinished)
        if cut and not found:
            yield f"On `{group.cells[0].task}` no training ended by itself: no score is ranked."
        if not found:
            continue
        found.sort(key=lambda f: f[0].mean, reverse=not is_error(group.metric))
        shown = [f"`{book.label(s)}` {_score(sc, group)}{marks_of(s.cells)}" for sc, s in found[:MOST]]
        more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
        words = f"On `{group.cells[0].task}` ({group.label}) score {', '.join(shown)}{more}"
        shortcut = group.best_shortcut()
        if shortcut:
            name, value = shortcut_words(shortcut[0]), written(shortcut[1], group.metric)
            words += f"; the best trivial shortcut ({name}) has {value}"
            words += _at_shortcut(group, found, shortcut[1], book)
        words += f"; cut off by their steps, and not ranked: {cut}" if cut else ""
        yield f"{words}."


def _at_shortcut(
    group: TaskGroup, found: list[tuple[Score, Series]], level: float, book: Book
) -> str:
    sign = -1 if is_error(group.metric) else 1
    below = [
        f"`{book.label(s)}`" for sc, s in found if sign * (sc.mean - level) <= (sc.half or 0.0)
    ]
    return f", which {', '.join(below)} {_do(below)} not exceed by more than the interval" if below else ""


def _do(names: list[str]) -> str:
    return "does" if len(names) == 1 else "do"


def errors(book: Book) -> Iterator[str]:
    """The nearest and the farthest variant on random inputs of scale 1, and on what trained models
    read."""
    cells = [c for c in book.rows.of("fidelity") if c.ok and scale_of(c) == 1 and c.metric("relative_error")]
    drawn = [c for c in cells if kind_of(c) == "random" and dtype_of(c) == "float32"]
    for mask in unique(contract(c) for c in drawn):
        own = [c for c in drawn if contract(c) == mask]
        longest = max(c.length or 0 for c in own)
        at = [c for c in own if c.length == longest]
        yield from _nearest(at, f"random inputs at length {length_text(longest)} ({mask})", book)
    told = 0
    for (kind, mask, _, _, task, *_), own in groups(cells).items():
        if kind == "trained" and told < MOST:
            told += 1
            ranks = by_layer([c for c in own if c.variant == BASELINE], "effective_rank")
            rank = f"; the effective rank of exact attention's weights there is {ranks} by layer" if ranks else ""
            yield from _nearest(own, f"what a model trained on `{task}` reads ({mask})", book, rank)


def _nearest(cells: list[Cell], where: str, book: Book, more: str = "") -> Iterator[str]:
    found = [(e, s) for s in book.styles.series(cells) if (e := mean(list(s.cells)))]
    inexact = [f for f in found if f[0].mean >= EXACT]
    if len(inexact) < 2:
        return
    (near, best), (far, worst) = (f(inexact, key=lambda x: x[0].mean) for f in (min, max))
    seeds = min(len(near.seeds), len(far.seeds))
    over = f"means over {seeds} seeds" if seeds > 1 else "one draw of inputs, no interval"
    yield (
        f"Of the variants that approximate, `{book.label(best)}` is nearest to exact attention on "
        f"{where}, with a relative error of {_error(near)}, and `{book.label(worst)}` farthest, with "
        f"{_error(far)} ({over}){more}."
    )


def _error(found: Score) -> str:
    """Writes as many digits as the interval leaves."""
    if not found.half:
        return f"{found.mean:.2g}"
    places = max(-math.floor(math.log10(found.half)), 0)
    return f"{found.mean:.{places}f} \u00b1 {found.half:.{places}f}"


def quality(book: Book) -> Iterator[str]:
    """How much is missing, and how much of the times is unreliable."""
    cells = book.rows.cells
    skipped = sum(c.status == "skipped" for c in cells)
    failed = {status: sum(c.status == status for c in cells) for status in FAILURES}
    told = [f"{count} {status}" for status, count in failed.items() if count]
    words = ", ".join([*told, *([f"{skipped} skipped"] if skipped else [])])
    if words:
        yield f"Of {len(cells):,} measurements these have no number: {words}."
    elif cells:
        yield f"Each of the {len(cells):,} measurements has a number."
    timed = [c for c in book.rows.of("speed") if c.ok]
    disturbed = sum(bool(c.noisy) for c in timed)
    if timed:
        verb = "was" if disturbed == 1 else "were"
        yield f"{disturbed or 'None'} of all {len(timed):,} times in these rows {verb} measured on a disturbed machine{_load(book, timed)}."


def _load(book: Book, timed: list[Cell]) -> str:
    """How busy the machine was when the runs of these times began; nothing where a run does not say."""
    places = [run.get("environment") or {} for run in book.rows.runs if run.get("run") in {c.run for c in timed}]
    loads = [float(place["load_before"]) for place in places if place.get("load_before") is not None and place.get("cores")]
    if not loads or len(loads) < len(places):
        return ""
    least, most = (f"{end(loads):.1f}" for end in (min, max))
    cores = ", ".join(str(n) for n in sorted({place["cores"] for place in places}))
    return f"; the load before was {least if least == most else f'{least} to {most}'} on {cores} cores"
