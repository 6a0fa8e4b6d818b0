"""From which length on each variant is faster than exact attention: one list for each panel of
times."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from .caption import caption
from .context import shape_text
from .crossing import Crossing
from .curves import length_axis
from .ends import text_width
from .facets import facets
from .floors import floors_of
from .looks import GREY
from .marks import beside, name_lines, span
from .page import Page, Picture
from .panels import Panel, drawn_series, pages, scope_words
from .rows import Rows, ids
from .runs import run_of
from .searched import searches_of
from .style import Styles
from .timings import Verdict, verdicts

LINE, HEAD = 0.18, 1.3  # inches of a variant, and lines for the columns' headings
SIZE = 8.0
RULE, CROSS = 8, 132  # points from the panel's edge to the two columns of text
RIGHT = 3.15  # inches for them
Found = list[tuple[Panel, list[Verdict]]]


def crossings(rows: Rows, styles: Styles) -> list[Picture]:
    """Draws a page for each page of times. Many variants get a page for each panel instead."""
    out = []
    for name, panels in pages("speed", rows.of("speed")):
        shown = drawn_series(panels, styles)
        curves = [p for p in panels if p.is_curve]
        found = [(p, verdicts(p, p.select(shown), styles, rows)) for p in curves]
        found = [(panel, told) for panel, told in found if told]
        stem = name.replace("speed-", "crossing-", 1)
        if len(facets(shown, styles)) == 1:
            out += [_picture(rows, styles, stem, found)] if found else []
        else:
            out += [_picture(rows, styles, f"{stem}-{f[0].slug}", [f]) for f in found]
    return out


def _picture(rows: Rows, styles: Styles, name: str, found: Found) -> Picture:
    cells = [c for p, _ in found for c in p.cells]
    baseline = baseline_name(found, styles)
    words = caption(
        rows,
        [],
        f"Points: where the medians cross those of {baseline}; bars: 95 % intervals.",
        f"Faster than {baseline} from: as in the tables, the first measured length from which on "
        f"the whole 95 % interval lies below that of {baseline}. Crossings are interpolated in log-log "
        "between measured lengths, unless a search found them. An "
        "arrow: not within the measured lengths; no point: the interval holds all of them. "
        "\u2013: one of the two has no time at the longest length.",
        searches_of(rows).note,
        f"Shape: {shape_text(cells[0])}.",
        floors_of(rows).note(cells),
    )
    widest = max(text_width(v.series.label, SIZE) for _, told in found for v in told) / 72
    page = Page(
        f"Where variants overtake exact attention: {scope_words([found[0][0]])}",
        "further left is better",
        words,
        [],
        [LINE * (len(told) + HEAD) for _, told in found],
        1,
        width=max(7.2, 5.6 + widest),
        gaps=[0.32] + [0.74] * (len(found) - 1),
        left=0.3 + widest,
        right=RIGHT,
    )
    table: list[dict[str, Any]] = []
    for row, (panel, told) in enumerate(found):
        axes = page.panel(row, 0)
        axes.set_title(panel.title)
        _draw(axes, panel, told, baseline)
        table += [_columns(panel, v) for v in told]
    return Picture(name, page.figure, pd.DataFrame(table), words)


def baseline_name(found: Found, styles: Styles) -> str:
    """Names what the lines are compared with. Among several runs, each variant has its own run's
    baseline."""
    series = styles.series([c for p, _ in found for c in p.drawn])
    full = styles.baseline(series)
    runs = {run_of(s.params) for s in series}
    return "full" if full is None or len(runs) > 1 else full.label


def _draw(axes: Axes, panel: Panel, told: list[Verdict], baseline: str) -> None:
    length_axis(axes, panel.lengths)
    axes.set_ylim(len(told) - 0.4, -HEAD - 0.4)
    name_lines(axes, [v.series.label for v in told], fontsize=SIZE)
    _write(axes, -HEAD + 0.35, RULE, f"faster than {baseline} from", GREY)
    _write(axes, -HEAD + 0.35, CROSS, "crossing (interval)", GREY)
    for y, verdict in enumerate(told):
        ink = verdict.series.look.ink
        _write(axes, y, RULE, verdict.faster_from or "\u2013", ink)
        _write(axes, y, CROSS, verdict.crossing.text(), ink)
        if not verdict.crossing.unclear:
            _mark(axes, y, verdict)


def _write(axes: Axes, y: float, points: float, text: str, color: Any) -> None:
    style = {"fontsize": SIZE, "color": color, "annotation_clip": False}
    beside(axes, text, (1, y), (points, 0), xycoords=axes.get_yaxis_transform(), **style)


def _mark(axes: Axes, y: float, verdict: Verdict) -> None:
    look, crossing = verdict.series.look, verdict.crossing
    first, last = axes.get_xlim()
    ends = [e for e in (crossing.low, crossing.high) if e is not None]
    reach = [min(max(e, first), last) for e in (*ends, crossing.length)]
    span(axes, (min(reach), max(reach)), y, look, linewidth=4, alpha=0.4)
    if not crossing.is_found:
        return
    at = reach[-1]
    marker = look.marker if crossing.within else "<" if at == first else ">"
    style = {**look.line(), "marker": marker, "linestyle": "none"}
    axes.plot([at], [y], **style, clip_on=False)


def _columns(panel: Panel, verdict: Verdict) -> dict[str, Any]:
    return {
        "panel": panel.title,
        **verdict.series.columns,
        "faster_than_full_from": verdict.faster_from,
        **_numbers(verdict.crossing),
        "cell": ids(verdict.series.cells),
        "baseline_cell": ids(verdict.baseline.cells),
    }


def _numbers(c: Crossing) -> dict[str, Any]:
    def finite(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    return {
        "crossing": finite(c.length) if c.has_point else None,
        "ci_low": finite(c.low),
        "ci_high": finite(c.high),
        "text": c.text(),
        "measured_from": c.first,
        "measured_to": c.last,
    }
