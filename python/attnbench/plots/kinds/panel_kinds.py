"""The kinds of pictures without a caption, each from the same numbers as the page of that kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..layout.axes import LEVELS
from ..layout.panels import Panel, Quantity, by_length, drawn_series, pages
from ..rows.read import Cell, NothingDrawn, Rows, ids, run_of
from ..rows.scores import TaskGroup, cells_of, score, series_of, short_titles, task_groups
from ..rows.settings import chosen_on_validation, is_error, key_of, marks_of, unfinished, written
from ..rows.style import MOST, Series, Styles
from ..rows.units import length_text
from .accuracy import Points
from .crossing import LABEL, baseline_name, ratios, verdicts
from .curves import PEAK, time_of
from .eviction import by_method, points_by_budget
from .length import beyond_training, by_distance
from .length import points_by_distance as points_by_distance
from .length import points_by_length as points_by_length
from .overview_rows import telling_panel
from .by_any import by_any
from .panel_data import HeatPanel, LinePanel, ListPanel, Point, Scale, StyleError, keyed, with_marks
from .panel_draw import AnyPanel
from .ranking import of_panel
from .slices import by_slice, points_of
from .state import found as states
from .state import lines as state_lines
from .trades import Trade, telling_trade, trade_panels
from .training import STEPS, Spread, spread, while_training

LENGTH = Scale("sequence length (tokens)", "length", True)


def _over_length(measure: str, rows: Rows, styles: Styles, quantity: Quantity | None) -> list[AnyPanel]:
    """Curves, and of one length a list, best first."""
    out: list[AnyPanel] = []
    for name, panels in pages(measure, rows.of(measure)):
        for panel in panels:
            stem = f"{name}-{panel.slug}"
            ranked = not panel.is_curve
            out.append(of_panel(stem, panel, styles, quantity or time_of(panel.cells[0])) if ranked else _curves(stem, panel, styles, quantity))
    return out


def _curves(name: str, panel: Panel, styles: Styles, quantity: Quantity | None) -> LinePanel:
    drawn = quantity or time_of(panel.cells[0])
    lines = [(s, _points(s, drawn)) for s in panel.select(drawn_series([panel], styles))]
    return LinePanel(name, LENGTH, Scale(drawn.label, drawn.kind, True), lines)


def _points(series, quantity: Quantity) -> list[Point]:
    ends = quantity.intervals(series) if quantity.ends else {}
    cells = by_length(series)
    return [
        Point(n, y, *ends.get(n, (None, None)), ids(cells[n])) for n, y in quantity.medians(series).items()
    ]


def speed(rows: Rows, styles: Styles) -> list[AnyPanel]:
    return _over_length("speed", rows, styles, None)


def memory(rows: Rows, styles: Styles) -> list[AnyPanel]:
    return _over_length("memory", rows, styles, PEAK)


def relative(rows: Rows, styles: Styles) -> list[LinePanel]:
    out = []
    for name, panels in pages("speed", rows.of("speed")):
        for panel in (p for p in panels if p.is_curve):
            found = ratios(panel, styles)
            lines = []
            for s in panel.select(drawn_series([panel], styles)):
                own = [(n, cells[-1]) for n, cells in by_length(s).items() if cells[-1].id in found]
                lines.append((s, [Point(n, *found[c.id], c.id) for n, c in own]))
            if any(v != 1 for v, _, _ in found.values()):
                stem = name.replace("speed-", "speed-relative-", 1)
                out.append(LinePanel(f"{stem}-{panel.slug}", LENGTH, Scale(LABEL, "ratio", True), lines))
    return out


def crossing(rows: Rows, styles: Styles) -> list[ListPanel]:
    out = []
    for name, panels in pages("speed", rows.of("speed")):
        for panel in (p for p in panels if p.is_curve):
            told = verdicts(panel, panel.select(drawn_series([panel], styles)), styles, rows)
            if told:
                stem = name.replace("speed-", "crossing-", 1)
                lines = [(v.series, _crossing(v, panel)) for v in told]
                against = baseline_name([(panel, told)], styles)
                scale = Scale(f"median crosses {against}'s at (tokens)", "length", True)
                out.append(ListPanel(f"{stem}-{panel.slug}", scale, lines))
    return out


def _crossing(verdict, panel: Panel) -> Point:
    c = verdict.crossing
    first, last = min(panel.lengths), max(panel.lengths)

    def inside(value: float | None) -> float | None:
        return None if value is None else min(max(value, first), last)

    cells = f"{ids(verdict.series.cells)} {ids(verdict.baseline.cells)}"
    at = c.length if c.has_point else math.nan  # the text says where else
    return Point(at, 0, inside(c.low), inside(c.high), cells, c.text())


def accuracy(rows: Rows, styles: Styles) -> list[ListPanel]:
    groups = task_groups(chosen_on_validation(rows.of("accuracy")))
    out = []
    for stem, group in zip(numbered([f"accuracy-{g.slug}" for g in groups]), groups, strict=True):
        lines = []
        for s in group.select(series_of(groups, styles)):
            if found := score(s.cells):
                half = found.half
                ends = (None, None) if half is None else (found.mean - half, found.mean + half)
                text = written(found.mean, group.metric) + marks_of(s.cells)
                lines.append((s, Point(found.mean, 0, *ends, found.cell, text, found.is_unfinished)))
        error = is_error(group.metric)
        scale = Scale("\n".join([group.label, *key_of(group.cells)]), "error" if error else "score", error)
        if lines:
            out.append(ListPanel(stem, scale, lines, group.levels))
    return out


def distance(rows: Rows, styles: Styles) -> list[LinePanel]:
    x = Scale("distance, positions", "number", False)
    return _by_task("accuracy-distance", by_distance(rows), styles, x, with_ends(points_by_distance))


def slices(rows: Rows, styles: Styles) -> list[LinePanel]:
    groups = by_slice(rows)
    stems = numbered([f"accuracy-slices-{g.slug}" for g in groups])
    return [
        _of_task(stem, g, groups, styles, Scale(g.words, "number", False), with_ends(points_of(g)))
        for stem, g in zip(stems, groups, strict=True)
    ]


def length(rows: Rows, styles: Styles) -> list[LinePanel]:
    points = with_ends(points_by_length)
    return _by_task("accuracy-length", beyond_training(rows), styles, LENGTH, points, ("chance",))


def learning(rows: Rows, styles: Styles) -> list[LinePanel]:
    x = Scale(STEPS, "number", False)
    return _by_task("accuracy-learning", while_training(rows), styles, x, spread)


def with_ends(points: Callable[[Sequence[Cell]], Points]) -> Callable[[Sequence[Cell]], Spread]:
    return lambda cells: [(at, mean, mean - half, mean + half) for at, mean, half in points(cells)]


def _by_task(
    name: str,
    groups: list[TaskGroup],
    styles: Styles,
    x: Scale,
    points: Callable[[Sequence[Cell]], Spread],
    known: Sequence[str] = tuple(LEVELS),
) -> list[LinePanel]:
    """`known`: the levels that hold along the whole axis."""
    stems = numbered([f"{name}-{g.slug}" for g in groups])
    return [_of_task(stem, g, groups, styles, x, points, known) for stem, g in zip(stems, groups, strict=True)]


def _of_task(
    stem: str,
    group: TaskGroup,
    groups: Sequence[TaskGroup],
    styles: Styles,
    x: Scale,
    points: Callable[[Sequence[Cell]], Spread],
    known: Sequence[str] = tuple(LEVELS),
) -> LinePanel:
    lines = [
        (with_marks(s, s.cells), [Point(*point, ids(s.cells), is_hollow=unfinished(s.cells) and not group.is_course) for point in points(s.cells)])
        for s in group.select(series_of(groups, styles))
        if s.cells
    ]
    levels = {level: value for level, value in group.levels.items() if level in known}
    error = is_error(group.metric)
    y = Scale(group.label, "error" if error else "score", error)
    return LinePanel(stem, keyed(x, group.cells), y, lines, levels)


def overview(rows: Rows, styles: Styles) -> list[LinePanel]:
    """The panels that the page of this kind shows beside each other: time, memory, trade-off."""
    out = []
    for measure, quantity in (("speed", None), ("memory", PEAK)):
        if (shown := telling_panel(measure, rows)) and shown.is_curve:
            out.append(_curves(f"overview-{measure}", shown, styles, quantity))
    if trade := telling_trade(trade_panels(rows, styles)):
        out += _trade("overview-tradeoff", trade)
    return out


def tradeoff(rows: Rows, styles: Styles) -> list[LinePanel]:
    trades = trade_panels(rows, styles)
    stems = numbered([f"tradeoff-{trade.slug}" for trade in trades])
    return [p for stem, trade in zip(stems, trades, strict=True) for p in _trade(stem, trade)]


def _trade(name: str, trade: Trade) -> list[LinePanel]:
    """Nothing where no variant has both a score and a speed."""
    lines = []
    for dot in trade.dots:
        if dot.whole and dot.score:
            half = dot.score.half
            ends = (None, None) if half is None else (dot.score.mean - half, dot.score.mean + half)
            point = Point(dot.speed or 0.0, dot.score.mean, *ends, ids(dot.cells), is_hollow=dot.is_unfinished)
            lines.append((with_marks(dot.series, dot.cells), [point]))
    error = is_error(trade.metric)
    y = Scale(trade.groups[0].label, "error" if error else "score", error)
    x = keyed(Scale("tokens per second", "number", True), [c for d in trade.dots for c in d.cells])
    return [LinePanel(name, x, y, lines, trade.levels, False)] if lines else []


def numbered(names: list[str]) -> list[str]:
    """Tells names apart that several panels have: `tradeoff-text`, `tradeoff-text-2`."""
    out = []
    for index, name in enumerate(names):
        again = names[:index].count(name)
        out.append(f"{name}-{again + 1}" if again else name)
    return out


def fidelity(rows: Rows, styles: Styles) -> list[LinePanel]:
    if not any(c.ok for c in rows.of("fidelity")):
        return []
    few = Rows(rows.files, rows.runs, rows.of("fidelity"), rows.sources)
    return by_any(few, styles, "input_scale", "relative_error", "variant", "input")


def state(rows: Rows, styles: Styles) -> list[LinePanel]:
    _, groups, families = states(rows, styles)
    out = []
    for group in groups:
        every = [s for _, own in families.values() for s in own]
        lines = []
        for name, _, points in state_lines(families, group.select(every)):
            first = families[name][1][0]
            ends = [(s.mean - s.half, s.mean + s.half) if s.half else (None, None) for _, s, _, _ in points]
            drawn = [
                Point(p[0], p[1].mean, *e, p[1].cell, is_hollow=p[1].is_unfinished) for p, e in zip(points, ends, strict=True)
            ]
            own = {c for p in points for c in p[1].cell.split()}
            lines.append((with_marks(first, [c for c in group.cells if c.id in own]), drawn))
        error = is_error(group.metric)
        y = Scale(group.label, "error" if error else "score", error)
        x = keyed(Scale("decode state of one sequence", "bytes", True), group.cells)
        out.append(LinePanel(f"accuracy-state-{group.slug}", x, y, lines, group.levels))
    return out


def eviction(rows: Rows, _: Styles) -> list[LinePanel]:
    held = by_method(rows)
    x = Scale("positions that are kept", "length", True)
    return _by_task("accuracy-eviction", task_groups(held.of("accuracy")), Styles(held), x, with_ends(points_by_budget))


def heat_scores(rows: Rows, styles: Styles) -> list[HeatPanel]:
    """Variant by task: the mean test score."""
    groups = task_groups(chosen_on_validation(rows.of("accuracy")))
    groups = [g for g in groups if not is_error(g.metric)]
    series = series_of(groups, styles)
    if len(groups) < 2 or len(series) < 2:
        return []
    by_family: dict[str, list[Series]] = {}
    for s in series:
        by_family.setdefault(styles.kind(s.variant), []).append(s)
    series = [s for own in by_family.values() for s in own]
    families = [family for family, own in by_family.items() for _ in own] if len(series) > MOST else []
    values, cells, marks = [], [], []
    for s in series:
        own = [next((o for o in g.select([s])), s) for g in groups]
        found = [score(o.cells) for o in own]
        values.append([f.mean if f else None for f in found])
        cells.append([f.cell if f else "" for f in found])
        marks.append([marks_of(o.cells) if f else "" for o, f in zip(own, found, strict=True)])
    if not any(v is not None for line in values for v in line):
        return []
    told = short_titles(groups)
    labels = [s.label for s in series]
    label = "\n".join(["test score", *key_of(cells_of(groups))])
    return [HeatPanel("heat-scores", label, labels, told, values, "score", cells, families, marks)]


def heat_speedup(rows: Rows, styles: Styles) -> list[HeatPanel]:
    """Variant by length: the time of exact attention over that of the variant, with the marks of both."""
    out = []
    for panel in relative(rows, styles):
        places = {s.key: {int(p.x): p for p in points} for s, points in panel.lines}
        held = {c.id: c for s, _ in panel.lines for c in s.cells}
        lengths = sorted({int(p.x) for _, points in panel.lines for p in points})
        every = [s for s, points in panel.lines if points]
        exact = {s.key: styles.baseline(every, run_of(s.params)) for s in every}
        drawn = [s for s in every if s.key not in {e.key for e in exact.values() if e}]

        def behind(s: Series, n: int) -> list[Cell]:
            """The cell of the variant and that of exact attention."""
            both = [places[own.key].get(n) for own in (s, exact[s.key]) if own]
            return [held[p.cell] for p in both if p] if n in places[s.key] else []

        if drawn:
            shown = [c for s in drawn for n in lengths for c in behind(s, n)]
            out.append(
                HeatPanel(
                    panel.name.replace("speed-relative-", "heat-speedup-", 1),
                    "\n".join(["times as fast as exact attention", *key_of(shown)]),
                    [s.label for s in drawn],
                    [length_text(n) for n in lengths],
                    [[1 / by[n].y if n in (by := places[s.key]) else None for n in lengths] for s in drawn],
                    "ratio",
                    [[by[n].cell if n in (by := places[s.key]) else "" for n in lengths] for s in drawn],
                    marks=[[marks_of(behind(s, n)) for n in lengths] for s in drawn],
                )
            )
    return out


KINDS: dict[str, Callable[[Rows, Styles], list]] = {
    "overview": overview,
    "speed": speed,
    "relative": relative,
    "crossing": crossing,
    "memory": memory,
    "accuracy": accuracy,
    "distance": distance,
    "slices": slices,
    "length": length,
    "learning": learning,
    "state": state,
    "eviction": eviction,
    "tradeoff": tradeoff,
    "fidelity": fidelity,
    "heat-scores": heat_scores,
    "heat-speedup": heat_speedup,
}


def panels_of(kind: str | None, rows: Rows, styles: Styles) -> list[AnyPanel]:
    """Every kind where `kind` is None. Error where the rows have nothing for it."""
    if kind is not None and kind not in KINDS:
        raise StyleError(f"--kind {kind}: with --style expected one of {', '.join(KINDS)}")
    wanted = [kind] if kind else [name for name in KINDS if name != "overview"]  # its panels are of other kinds
    made = [p for name in wanted for p in KINDS[name](rows, styles)]
    if kind is not None and not made:
        raise NothingDrawn(f"--kind {kind}: the rows hold nothing that it shows")
    return made
