"""A list of variants at one length, best first: time, memory or any number with its interval, and
its ratio to that of exact attention, whose name is bold and whose value is a dashed line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..layout.axes import fixed_ticks, log_ticks, name_lines, text_width
from ..layout.panels import Panel, Quantity, drawn_series, failed_at
from ..rows.read import Cell, ids
from ..rows.settings import SHORT, marks_of
from ..rows.style import BASELINE, INK, Series, Styles
from ..rows.units import BYTES, SECONDS, TEXTS, in_units, length_text, ratio_text, thousands_text
from .panel_data import Point, Scale

WIDEST = 40.0  # the largest over the least that bars from 0 still tell; beyond, points on a logarithmic axis
UNITS = {"seconds": SECONDS, "bytes": BYTES}
TEXT: dict[str, Callable[[float], str]] = {**TEXTS, "number": thousands_text, "score": "{:.2f}".format, "error": "{:.3g}".format}
ROW = 1.75  # times the size of words: the height of a line


@dataclass(frozen=True)
class Rank:
    """A line of the list. The x of its point is NaN where the variant has no number."""

    series: Series
    point: Point
    is_exact: bool
    ratio: float | None  # to exact attention of the same run

    @property
    def has_number(self) -> bool:
        return math.isfinite(self.point.x)

    @property
    def is_ranked(self) -> bool:
        return self.has_number and not self.point.is_hollow


@dataclass(frozen=True)
class RankPanel:
    name: str
    x: Scale
    ranks: list[Rank]

    @property
    def has_bars(self) -> bool:
        return not self.x.is_log

    def told(self, rank: Rank) -> str:
        """Returns what stands behind a line."""
        if not rank.has_number:
            return rank.point.text
        text = TEXT[self.x.kind](rank.point.x) + rank.point.text
        with_ratio = rank.ratio is not None and not rank.is_exact and self.x.kind != "score"
        return f"{text}  {ratio_text(rank.ratio)}" if with_ratio and rank.ratio else text


def ranking(
    name: str, label: str, kind: str, found: Sequence[tuple[Series, Point]], styles: Styles, *, most_first: bool = False
) -> RankPanel:
    """Of points whose x is the number. Lines without a number stand last, hollow ones before them, in the order given."""
    series = [s for s, _ in found]
    exact = {s.key for s in styles.baselines(series)}
    values = {s.key: math.nan if p.is_hollow else p.x for s, p in found}
    ranks = []
    for s, p in found:
        base = styles.baseline(series, dict(s.params).get("run"))
        against = values[base.key] if base and base.key in exact else math.nan
        ratio = p.x / against if against and not p.is_hollow else math.nan
        ranks.append(Rank(s, p, s.key in exact, ratio if math.isfinite(ratio) else None))
    known = [r.point.x for r in ranks if r.has_number]
    sign = -1 if most_first else 1
    ranks.sort(key=lambda r: (not r.has_number, not r.is_ranked, sign * r.point.x if r.is_ranked else 0))
    is_log = kind != "score" and bool(known) and min(known) > 0 and max(known) / min(known) > WIDEST
    return RankPanel(name, Scale(label, kind, is_log), ranks)


def of_panel(name: str, panel: Panel, styles: Styles, quantity: Quantity) -> RankPanel:
    """Of a panel whose cells have one length."""
    found = []
    for s in panel.select(drawn_series([panel], styles)):
        ok = [c for c in s.cells if c.ok and quantity.value(c) is not None]
        if ok:
            length = ok[0].length or 0
            ends = quantity.intervals(s).get(length, (None, None)) if quantity.ends else (None, None)
            found.append((s, Point(quantity.medians(s)[length], 0, *ends, ids(ok), marks_of(ok))))
        elif failed := failed_at(s):
            found.append((s, Point(math.nan, 0, cell=ids(s.cells), text=f"\u2715 {failed[0][1]}")))
    return ranking(name, f"{quantity.label} {at_length(panel.cells)}", quantity.kind, found, styles)


def at_length(cells: Iterable[Cell]) -> str:
    """Returns `at length 4k`, or nothing where lengths differ."""
    lengths = {c.length for c in cells if c.length}
    return f"at length {length_text(lengths.pop())}" if len(lengths) == 1 else ""


def meanings(panel: RankPanel) -> list[str]:
    """Returns what the signs behind the numbers say."""
    has_ratios = panel.x.kind != "score" and any(r.ratio is not None and not r.is_exact for r in panel.ranks)
    signs = {"\u00d7": f"over that of {BASELINE}, the dashed line"} if has_ratios else {}
    signs |= {mark: said for mark, said in SHORT.items() if any(mark in r.point.text for r in panel.ranks)}
    return [f"{sign} {said}" for sign, said in signs.items()]


def room(panel: RankPanel, size: float) -> tuple[float, float]:
    """Inches that the names at the left and the texts at the right need."""
    names = max(text_width(r.series.label, size) for r in panel.ranks) * 1.12  # that of exact attention is bold
    texts = max(text_width(panel.told(r), size - 0.5) for r in panel.ranks)
    return (names + 10) / 72, (texts + 10) / 72


def draw_ranking(axes: Axes, panel: RankPanel, size: float, line: float) -> None:
    """`size` of words in points; `line` multiplies widths."""
    known = [r for r in panel.ranks if r.has_number]
    axes.grid(False, axis="y")
    axes.set_ylim(len(panel.ranks) - 0.4, -0.6)
    _limits(axes, panel, [v for r in known for v in (r.point.x, r.point.low, r.point.high) if v is not None])
    name_lines(axes, [r.series.label for r in panel.ranks], fontsize=size)
    for label, rank in zip(axes.get_yticklabels(), panel.ranks, strict=True):
        label.set_fontweight("bold" if rank.is_exact else "normal")
    for y, rank in enumerate(panel.ranks):
        p, look = rank.point, rank.series.look
        if rank.has_number and panel.has_bars:
            color = "none" if p.is_hollow else look.color
            axes.barh([y], [p.x], height=0.62, color=color, alpha=0.4 if rank.is_exact else 0.75, edgecolor=INK, linewidth=0.5 * line)
        elif rank.has_number:
            style = look.hollow() if p.is_hollow else look.line()
            axes.plot([p.x], [y], **{**style, "linestyle": "none", "markersize": 4.6 * line}, clip_on=False)
        if rank.has_number and p.low is not None and p.high is not None:
            ends = [[max(p.x - p.low, 0)], [max(p.high - p.x, 0)]]
            axes.errorbar([p.x], [y], xerr=ends, color=INK, elinewidth=line, capsize=2.2 * line, fmt="none")
        if rank.is_exact and rank.is_ranked:
            axes.axvline(p.x, color=INK, linewidth=0.8 * line, linestyle=(0, (4, 2)), zorder=0.9)
        axes.annotate(panel.told(rank), (1, y), xytext=(6, 0), xycoords=axes.get_yaxis_transform(),
                      textcoords="offset points", va="center", fontsize=size - 0.5,
                      fontweight="bold" if rank.is_exact else "normal", annotation_clip=False)  # fmt: skip
    axes.set_xlabel("\n".join([panel.x.label, *meanings(panel)]))


def _limits(axes: Axes, panel: RankPanel, values: list[float]) -> None:
    """Bars begin at 0."""
    high = max(values, default=1.0)
    if panel.x.is_log:
        axes.set_xscale("log")
        axes.set_xlim(min(v for v in values if v > 0) / 1.3, high * 1.3)
    elif panel.x.kind == "score":
        axes.set_xlim(0, 1.02)
    else:
        axes.set_xlim(min(0.0, *values) if values else 0.0, high * 1.04 or 1.0)


def ranking_ticks(axes: Axes, panel: RankPanel) -> None:
    """Once the width is known."""
    kind = panel.x.kind
    if panel.x.is_log:
        log_ticks(axes, axes.xaxis, TEXT[kind])
    elif kind != "score":
        low, high = axes.get_xlim()
        units = UNITS.get(kind, (("", 1.0),))
        unit = next((u for u in units if high >= u[1]), units[-1])
        wide = axes.get_window_extent().width / axes.figure.dpi * 72
        ticks = MaxNLocator(max(2, min(6, int(wide / 50)))).tick_values(low / unit[1], high / unit[1])
        inside = [t * unit[1] for t in ticks if low <= t * unit[1] <= high]
        fixed_ticks(axes.xaxis, inside, lambda v: "0" if v == 0 else in_units(v, (unit,)) if kind in UNITS else TEXT[kind](v))
