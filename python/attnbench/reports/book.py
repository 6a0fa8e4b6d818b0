"""What all sections refer to by number: the series with their looks, and the cells as columns; and
the parts of a section as the page reads them: panels of lines, points or scores, and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from attnbench.plots.rows.read import MEASURES, OF_RUN, STATUSES, Cell, Params, Rows
from attnbench.plots.rows.settings import (
    MODE_WORDS,
    chosen_on_validation,
    contract,
    mode_of,
    scope_of,
    scope_text,
    shape_text,
    without_run,
    without_settings,
)
from attnbench.plots.rows.style import BASELINE, COLORS, FILLS, MARKERS, Series, Styles

Json = dict[str, Any]
Column = tuple[str, str]  # heading, kind: text series number seconds bytes ratio score cells
DIGITS = 5  # significant ones in the page


def rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def hollow(is_unfinished: bool) -> Json:
    """What a line says of itself where its training was cut off: no line joins its points, and it has no rank."""
    return {"hollow": True} if is_unfinished else {}


def section(
    name: str, title: str, lead: str, panels: Sequence[Json], *tables: Json, note: str = ""
) -> Json:
    """`lead` says what is shown and how to read it, `note` how it was measured."""
    shown = [t for t in tables if t["rows"]]
    return {"id": name, "title": title, "lead": lead, "note": note, "panels": panels, "tables": shown}


def table(name: str, title: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Json:
    heads = [{"title": head, "kind": kind} for head, kind in columns]
    return {"id": name, "title": title, "columns": heads, "rows": [list(row) for row in rows]}


def facets(cell: Cell) -> dict[str, str]:
    """What panels are chosen by."""
    mode = mode_of(cell)
    return {
        "mode": MODE_WORDS.get(mode, mode),
        "mask": contract(cell),
        "scope": scope_text(scope_of(cell)),
        "shape": shape_text(cell),
    }


# For a dark page: the colours of looks.COLORS, each light enough to have a contrast of 3 there.
DARK = ("#ffffff", "#f3a93a", "#5a9bea", "#f27a4e", "#35c598", "#d283d2", "#a6d8fa", "#bfae3e")
# Plotly's names of matplotlib's markers. The suffixes stand for fills that Plotly does not have.
SYMBOLS = dict(
    zip(
        MARKERS,
        ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "diamond-tall")
        + ("pentagon", "star", "hexagon"),
        strict=True,
    )
)
# The last differs from the second by its dash, which is drawn out.
SUFFIXES = dict(zip(FILLS, ("", "-open", "-open-dot", "-dot", "-open"), strict=True))
DRAWN_OUT = {FILLS[-1]: 2.0}
VALUES = {
    "speed": ("time_s.median", "time_s.ci_low", "time_s.ci_high"),
    "memory": ("peak_bytes", "", ""),
    "accuracy": ("test", "", ""),
    "fidelity": ("relative_error", "", ""),
    "reach": ("perturbation.past", "", ""),
}
SAMPLE_UNIT = 1e-4  # samples are whole multiples of this share of the median: small, and exact enough


class Book:
    """Gives series and cells their numbers."""

    def __init__(self, rows: Rows, styles: Styles) -> None:
        self.rows, self.styles = rows, styles
        chosen = chosen_on_validation(rows.of("accuracy"))
        self._series: dict[Any, int] = {}
        self._told: list[dict[str, Any]] = []
        self.add_series(styles.series([*rows.cells, *chosen]))
        self._cells = {c.id: i for i, c in enumerate(rows.cells)}
        self._places = {head["run"]: i for i, head in enumerate(rows.runs)}

    def add_series(self, series: Iterable[Series]) -> None:
        for s in series:
            if s.key not in self._series:
                self._series[s.key] = len(self._told)
                self._told.append(self._look(s))

    def _look(self, s: Series) -> dict[str, Any]:
        dash = s.look.dash
        wide = s.look.width * DRAWN_OUT.get(s.look.fill, 1.0)
        steps = "solid" if dash == "-" else ",".join(f"{v * wide:g}px" for v in dash[1])
        return {
            "label": s.label,
            "variant": s.variant,
            "family": self.styles.family(s.variant),
            "group": next((g.title for g in self.styles.groups if s.variant in g.variants), ""),
            "params": dict(without_run(without_settings(s.params))),
            "color": COLORS.index(s.look.color),
            "symbol": SYMBOLS[s.look.marker] + SUFFIXES[s.look.fill],
            "dash": steps,
            "width": s.look.width,
            "exact": s.variant == BASELINE,
        }

    @property
    def keys(self) -> list[tuple[str, Params]]:
        """Returns variant and parameters of each series, in the order of their numbers."""
        return list(self._series)

    def series(self, s: Series) -> int:
        if s.key not in self._series:
            self.add_series([s])
        return self._series[s.key]

    def series_of(self, cell: Cell) -> int:
        return self._series[cell.variant, cell.params]

    def place(self, cell: Cell) -> int:
        """The number of its run among all files' runs."""
        _, _, place = cell.id.partition(OF_RUN)
        return int(place) if place else self._places[cell.run]

    def series_named(self, cell: Cell) -> int | None:
        """Of a cell of other rows; None where the page has no such series."""
        return self._series.get((cell.variant, cell.params))

    def label_of(self, cell: Cell) -> str:
        """Of a cell of other rows: all its parameters where the page has no such series."""
        known = self.series_named(cell)
        words = [cell.variant, *(f"{k}={v}" for k, v in cell.params)]
        return " ".join(words) if known is None else str(self._told[known]["label"])

    def label(self, s: Series) -> str:
        return str(self._told[self.series(s)]["label"])

    def cell(self, cell: Cell) -> int:
        return self._cells[cell.id]

    def cells(self, cells: Iterable[Cell | None]) -> list[int]:
        return list(dict.fromkeys(self.cell(c) for c in cells if c))

    def cells_named(self, ids: str) -> list[int]:
        """Of ids that a space separates, see rows.ids."""
        return list(dict.fromkeys(self._cells[i] for i in ids.split()))

    def told(self) -> dict[str, Any]:
        """Returns series and cells as the page reads them."""
        texts: dict[str, int] = {}

        def text(value: str) -> int:
            return texts.setdefault(value, len(texts))

        table = [self._line(c, text) for c in self.rows.cells]
        columns = {name: [line[name] for line in table] for name in (table[0] if table else ())}
        return {
            "palette": {"light": COLORS, "dark": DARK},
            "series": self._told,
            "measures": MEASURES,
            "statuses": STATUSES,
            "sample_unit": SAMPLE_UNIT,
            "cells": columns,
            "texts": list(texts),
        }

    def _line(self, cell: Cell, text: Any) -> dict[str, Any]:
        axes = {k: v for k, v in cell.axes.items() if k != "length"}
        value, low, high = (cell.metric(name) for name in VALUES[cell.measure])
        error = cell.metric("test_stderr") if cell.measure == "accuracy" else None
        if error is not None and value is not None:
            low, high = value - 1.96 * error, value + 1.96 * error
        return {
            "id": cell.id.partition(OF_RUN)[0],
            "run": self.place(cell),
            "measure": MEASURES.index(cell.measure),
            "status": STATUSES.index(cell.status),
            "series": self.series_of(cell),
            "task": text(_named(cell.task, cell.task_params)),
            "axes": text(_words(axes)),
            "length": cell.length,
            "value": rounded(value) if cell.ok else None,
            "low": rounded(low) if cell.ok else None,
            "high": rounded(high) if cell.ok else None,
            "reason": text(cell.reason or ""),
            "noisy": text(", ".join(cell.noisy)),
            "samples": _samples(cell) if cell.measure == "speed" and cell.ok else [],
            "visits": text(", ".join(map(str, cell.visits))),
        }


def _samples(cell: Cell) -> list[int]:
    unit = SAMPLE_UNIT * (cell.metric("time_s.median") or 1.0)
    return [round(t / unit) for t in cell.times()]


def _named(task: str | None, params: Iterable[tuple[str, str]]) -> str:
    return f"{task}[{','.join(f'{k}={v}' for k, v in params)}]" if task else ""


def _words(axes: dict[str, Any]) -> str:
    return " ".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in axes.items())
