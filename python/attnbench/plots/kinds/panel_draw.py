"""Draws pictures without a caption: axes and a key alone, at the width they are printed at."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from ..layout import page  # for its rcParams
from ..layout.axes import LEVELS, byte_ticks, fixed_ticks, level_entry, log_ticks, ring, text_width
from ..layout.panels import failed_at, grey_lines, length_ticks, with_statuses
from ..layout.sheets import facets
from ..rows.style import BEHIND, INK, Series, Styles
from ..rows.units import TEXTS, bytes_text, length_text, thousands_text
from .panel_data import HeatPanel, LinePanel, ListPanel, PanelStyle, Point, Scale
from .ranking import ROW, RankPanel, draw_ranking, meanings, ranking_ticks

SHAPE = 0.62  # height of line panels over their width
DPI = 200  # of PNG
SPAN = math.log(16)  # a map of ratios tells lightness apart from a 16th to 16 times: outliers fade nothing
DARK = 0.55  # share of a grey map beyond which numbers are white
TEXT = {**TEXTS, "number": thousands_text, "length": length_text}
Entries = list[tuple[Line2D, str]]
AnyPanel = LinePanel | ListPanel | HeatPanel | RankPanel


def draw_panels(panels: Sequence[AnyPanel], styles: Styles, style: PanelStyle, folder: Path) -> list[Path]:
    """Draws each panel and writes its files and its data; many lines make several pictures."""
    written = []
    settings: dict[str, Any] = {**style.settings, "axes.titlepad": 0}
    assert page.DPI  # the page's rcParams are set when it is imported
    with matplotlib.rc_context(settings):
        for panel in panels:
            for name, figure in _figures(panel, styles, style):
                written += _save(figure, folder / name, style)
            table = folder / f"{panel.name}.csv"
            pd.DataFrame(_table(panel)).to_csv(table, index=False, float_format="%.9g", lineterminator="\n")
            written.append(table)
    return written


def _figures(panel: AnyPanel, styles: Styles, style: PanelStyle) -> Iterator[tuple[str, Figure]]:
    if isinstance(panel, HeatPanel):
        yield panel.name, _heat(panel, style)
    elif isinstance(panel, ListPanel):
        yield panel.name, _list(panel, style)
    elif isinstance(panel, RankPanel):
        yield panel.name, _ranking(panel, style)
    else:
        parts = facets([s for s, _ in panel.lines], styles)
        for number, part in enumerate(parts, 1):
            own = {s.key for s in part.own}
            name = panel.name + (f"-{number}" if len(parts) > 1 else "")
            yield name, _lines(panel, own, style)


def _save(figure: Figure, stem: Path, style: PanelStyle) -> list[Path]:
    out = []
    for ending in style.endings:
        path = stem.with_name(f"{stem.name}.{ending}")
        dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}
        held = io.BytesIO()
        figure.savefig(held, format=ending, dpi=DPI, metadata=dated[ending])
        path.write_bytes(held.getvalue())
        out.append(path)
    return out


def _lines(panel: LinePanel, own: set[Any], style: PanelStyle) -> Figure:
    drawn = [(s, points) for s, points in panel.lines if s.key in own]
    entries = [_entry(s, points, panel, style) for s, points in drawn]
    entries += [level_entry(level) for level in panel.levels]
    figure, axes = _figure(style, style.width * SHAPE, entries)
    points = [p for _, own_points in panel.lines for p in own_points]
    behind = [[(p.x, p.y) for p in points] for s, points in panel.lines if s.key not in own]
    if panel.joined:
        grey_lines(axes, behind)
    else:
        dots = [at for line in behind for at in line]
        axes.plot([x for x, _ in dots], [y for _, y in dots], "o", color=BEHIND, markersize=2.5 * style.line)
    for s, line in (d for d in drawn if d[1]):
        _line(axes, s, line, style, panel.joined)
    for level, value in panel.levels.items():
        axes.axhline(value, **LEVELS[level], zorder=1.5)
    if panel.y.kind == "ratio":
        axes.axhline(1, color=INK, linewidth=0.8 * style.line, linestyle=(0, (4, 2)), zorder=1.4)
    values = [v for p in points for v in (p.y, p.low, p.high) if v is not None] + list(panel.levels.values())
    for which, scale, found in (("x", panel.x, [p.x for p in points]), ("y", panel.y, values)):
        _limits(axes, which, scale, found)
    _fit(figure, axes, lambda: _ticks(axes, panel, [p.x for p in points]))
    return figure


def _line(axes: Axes, s: Series, points: list[Point], style: PanelStyle, joined: bool) -> None:
    look = _look(s, style)
    look["linestyle"] = look["linestyle"] if joined else "none"
    solid, hollow = ([p for p in points if p.is_hollow == which] for which in (False, True))
    axes.plot([p.x for p in solid], [p.y for p in solid], **look, zorder=3, clip_on=False)
    if hollow:
        axes.plot([p.x for p in hollow], [p.y for p in hollow], **_point_look(s, style, True), zorder=3, clip_on=False)
    if joined and len(points) == 1:
        ring(axes, s.look, (points[0].x, points[0].y), style.line)
    known = [p for p in points if p.low is not None and p.high is not None and math.isfinite(p.high)]
    if known and joined and len(known) > 1 and not hollow:
        low, high = [p.low for p in known], [p.high for p in known]
        axes.fill_between([p.x for p in known], low, high, color=s.look.color, alpha=0.18, linewidth=0, zorder=2)
    elif known:
        reach = [[max(p.y - (p.low or 0), 0) for p in known], [max((p.high or 0) - p.y, 0) for p in known]]
        places = [[p.x for p in known], [p.y for p in known]]
        axes.errorbar(*places, yerr=reach, color=s.look.color, elinewidth=style.line, capsize=2 * style.line, fmt="none")


def _look(s: Series, style: PanelStyle) -> dict[str, Any]:
    look = s.look.line()
    for name in ("linewidth", "markersize", "markeredgewidth"):
        look[name] *= style.line * (0.9 if name == "markersize" else 0.8)
    return look


def _point_look(s: Series, style: PanelStyle, is_hollow: bool) -> dict[str, Any]:
    look = _look(s, style)
    if not is_hollow:
        return look
    return s.look.hollow() | {k: v for k, v in look.items() if "size" in k or "width" in k}


def _entry(s: Series, points: list[Point], panel: LinePanel, style: PanelStyle) -> tuple[Line2D, str]:
    """Of the key. It tells the statuses of cells that failed, which these pictures do not mark; a
    variant without a point has a cross."""
    look = _look(s, style)
    if not points:
        look |= {"marker": "X", "linestyle": "none", "fillstyle": "full"}
    elif not panel.joined or len(points) < 2:
        look["linestyle"] = "none"
    return Line2D([], [], **look), with_statuses(s.label, failed_at(s))


def _figure(style: PanelStyle, height: float, entries: Entries) -> tuple[Figure, Axes]:
    """Axes with a key of rows above them."""
    rows: list[Entries] = []
    room, size = 0.0, style.size - 0.5
    handle = 2.6 * size / 72
    for entry in entries:
        need = handle + (text_width(entry[1], size) + 1.9 * size) / 72
        if not rows or need > room:
            rows.append([])
            room = style.width - 0.04
        rows[-1].append(entry)
        room -= need
    step = 1.5 * size / 72
    head = step * len(rows) + (0.05 if rows else 0.03)
    figure = Figure(figsize=(style.width, height + head))
    for index, row in enumerate(rows):
        figure.legend(
            [h for h, _ in row],
            [t for _, t in row],
            ncols=len(row),
            loc="center left",
            bbox_to_anchor=(0.02 / style.width, 1 - (0.02 + step * (index + 0.5)) / (height + head)),
            frameon=False,
            handlelength=2.3,
            columnspacing=1.0,
            handletextpad=0.4,
            borderaxespad=0,
            borderpad=0,
        )
    axes = figure.add_axes((0.2, 0.2, 0.75, (height * 0.75) / (height + head)))
    axes.set_label(f"{head}")
    return figure, axes


def _limits(axes: Axes, which: str, scale: Scale, values: list[float]) -> None:
    known = [v for v in values if math.isfinite(v) and (v > 0 or not scale.is_log)]
    low, high = (min(known), max(known)) if known else (1.0, 2.0)
    getattr(axes, f"set_{which}label")(scale.label)
    if scale.is_log:
        getattr(axes, f"set_{which}scale")("log")
        room = max((high / low) ** 0.05, 1.08)
        low, high = low / room, high * room
    elif scale.kind == "score":
        low, high = 0.0, 1.02  # where an interval ends beyond, there is no score
    else:
        room = 0.05 * (high - low or abs(high) or 1.0)
        low, high = (low - room, high + room) if which == "x" else (min(0.0, low), high + room)
    getattr(axes, f"set_{which}lim")(low, high)


def _ticks(axes: Axes, panel: LinePanel, lengths: list[float]) -> None:
    for which, scale in (("x", panel.x), ("y", panel.y)):
        _ticks_of(axes, which, scale, lengths)


def _ticks_of(axes: Axes, which: str, scale: Scale, lengths: Sequence[float]) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    if not scale.is_log:
        axis.set_minor_locator(NullLocator())
        return
    if scale.kind == "length" and which == "x":
        length_ticks(axes, [int(n) for n in lengths])
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(lambda n, _: length_text(n))
    elif scale.kind == "bytes":
        low, high = axis.get_view_interval()
        fixed_ticks(axis, byte_ticks(low, high, 4 if which == "x" else 6), bytes_text)
    else:
        log_ticks(axes, axis, TEXT.get(scale.kind, lambda v: f"{v:g}"))


def _fit(figure: Figure, axes: Axes, ticks: Any) -> None:
    """Widens the axes until words and marks fill the figure's width; ticks follow the room."""
    head, edge = float(axes.get_label()), 0.03
    wide, high = figure.get_size_inches()
    for _ in range(3):
        ticks()
        box = axes.get_tightbbox().transformed(figure.dpi_scale_trans.inverted())
        own = axes.get_position()
        left = own.x0 * wide - box.x0 + edge
        right = box.x1 - own.x1 * wide + edge
        below = own.y0 * high - box.y0 + edge
        above = box.y1 - own.y1 * high + edge + head
        axes.set_position(
            (left / wide, below / high, (wide - left - right) / wide, (high - below - above) / high)
        )
    ticks()


def _list(panel: ListPanel, style: PanelStyle) -> Figure:
    row = ROW * style.size / 72
    entries = [level_entry(level) for level in panel.levels]
    figure, axes = _figure(style, row * (len(panel.lines) + 2.2 + panel.x.label.count("\n")), entries)
    axes.set_ylim(len(panel.lines) - 0.4, -0.6)
    values = [v for _, p in panel.lines for v in (p.x, p.low, p.high) if v is not None and math.isfinite(v)]
    _limits(axes, "x", panel.x, [*values, *panel.levels.values()])
    axes.set_yticks(range(len(panel.lines)), [s.label for s, _ in panel.lines], fontsize=style.size - 1)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for level, value in panel.levels.items():
        axes.axvline(value, **LEVELS[level], zorder=1.5)
    low, high = axes.get_xlim()
    for y, (s, p) in enumerate(panel.lines):
        if p.low is not None and p.high is not None:
            axes.plot([max(p.low, low), min(p.high, high)], [y, y], color=s.look.color, alpha=0.45,
                      linewidth=3.2 * style.line, solid_capstyle="butt")  # fmt: skip
        if math.isfinite(p.x):
            axes.plot([p.x], [y], **{**_point_look(s, style, p.is_hollow), "linestyle": "none"}, clip_on=False)
        if p.text:
            axes.annotate(p.text, (1, y), xytext=(4, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                          va="center", fontsize=style.size - 1.5, color=s.look.ink, annotation_clip=False)  # fmt: skip
    lengths = [2.0**k for k in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)] if panel.x.kind == "length" else []
    _fit(figure, axes, lambda: _ticks_of(axes, "x", panel.x, lengths))
    return figure


def _ranking(panel: RankPanel, style: PanelStyle) -> Figure:
    figure, axes = _figure(style, ROW * style.size / 72 * (len(panel.ranks) + 2.2) + 1.3 * style.size / 72 * len(meanings(panel)), [])
    draw_ranking(axes, panel, style.size - 1, style.line)
    _fit(figure, axes, lambda: ranking_ticks(axes, panel))
    return figure


def _heat(panel: HeatPanel, style: PanelStyle) -> Figure:
    """Greys whose lightness alone tells the value, and the value in each field."""
    row = ROW * style.size / 72
    widest = max(text_width(c, style.size - 1) for c in panel.columns) / 72
    told = panel.label.split("\n")
    if panel.kind == "ratio":
        told = ["sequence length (tokens)", f"{told[0]}; bold: faster", *told[1:]]
    words = 0.35 + 1.3 * style.size / 72 * (len(told) - 1)
    places, heads = panel.places()
    count = len(places) + len(heads)
    figure, axes = _figure(style, row * count + widest + words, [])
    known = [v for line in panel.values for v in line if v is not None]
    if panel.kind == "ratio":
        low, high = max(math.log(min(known)), -SPAN), min(math.log(max(known)), SPAN)
    else:
        low, high = 0.0, max(1.0, *known)

    def shade(value: float) -> float:
        at = math.log(value) if panel.kind == "ratio" else value
        return min(max((at - low) / (high - low), 0.0), 1.0) if high > low else 0.0

    greys = matplotlib.colormaps["Greys"]
    axes.set_xlim(-0.5, len(panel.columns) - 0.5)
    axes.set_ylim(count - 0.5, -0.5)
    axes.grid(False)
    size = _number_size(panel, style)
    for y, head in heads.items():
        axes.text(-0.5, y + 0.1, head, ha="left", va="center", fontsize=size, style="italic", color=INK)
    for y, line, texts in zip(places, panel.values, panel.texts(), strict=True):
        for x, (value, text) in enumerate(zip(line, texts, strict=True)):
            if value is None:
                axes.text(x, y, "\u2013", ha="center", va="center", fontsize=size)
                continue
            dark = 0.75 * shade(value)
            axes.add_patch(matplotlib.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=greys(dark), edgecolor="white", linewidth=0.6))
            faster = panel.kind == "ratio" and value > 1
            axes.text(x, y, text, ha="center", va="center", fontsize=size,
                      color="white" if dark > DARK else INK, weight="bold" if faster else "normal")  # fmt: skip
    axes.set_xticks(range(len(panel.columns)), panel.columns, rotation=90 if _narrow(panel, style) else 0)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(FixedLocator(places))
    axes.set_yticks(places, panel.rows)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    wide = max(text_width(line, style.size) for line in told) > _room(panel, style) * len(panel.columns)
    axes.set_xlabel("\n".join(told), loc="right" if wide else "center")
    _fit(figure, axes, lambda: None)
    return figure


def _room(panel: HeatPanel, style: PanelStyle) -> float:
    """Points of a column."""
    names = max(text_width(r, style.size - 1) for r in panel.rows)
    return (style.width * 72 - names - 12) / len(panel.columns)


def _narrow(panel: HeatPanel, style: PanelStyle) -> bool:
    return max(text_width(c, style.size - 1) for c in panel.columns) + 4 > _room(panel, style)


def _number_size(panel: HeatPanel, style: PanelStyle) -> float:
    """Of the numbers, small enough for a column, 5 points at least."""
    size = style.size - 1
    widest = max((text for line in panel.texts() for text in line), key=len)
    while size > 5 and text_width(widest, size) * 1.08 + 3 > _room(panel, style):
        size -= 0.5
    return size


def _table(panel: AnyPanel) -> list[dict[str, Any]]:
    if isinstance(panel, HeatPanel):
        return [
            {"row": row, "column": column, "value": value, "cell": cell}
            for row, line, cells in zip(panel.rows, panel.values, panel.cells, strict=True)
            for column, value, cell in zip(panel.columns, line, cells, strict=True)
        ]
    if isinstance(panel, ListPanel):
        return [
            {**s.columns, "value": p.x, "ci_low": p.low, "ci_high": p.high, "text": p.text, "cell": p.cell}
            for s, p in panel.lines
        ]
    if isinstance(panel, RankPanel):
        return [
            {**r.series.columns, "value": r.point.x, "ci_low": r.point.low, "ci_high": r.point.high,
             "over_full": r.ratio, "text": panel.told(r), "cell": r.point.cell}
            for r in panel.ranks
        ]  # fmt: skip
    x, y = (scale.label.partition("\n")[0] for scale in (panel.x, panel.y))  # without what marks say
    return [
        {**s.columns, x: p.x, y: p.y, "ci_low": p.low, "ci_high": p.high, "cell": p.cell}
        for s, points in panel.lines
        for p in points
    ]
