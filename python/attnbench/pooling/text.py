"""Lines as a table for the terminal or in Markdown, a section for each place without the length; as CSV, a row for each machine and one for all."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..plots.rows.read import Cell
from ..plots.rows.settings import contract, mode_of, scope_of, scope_text, shape_text, spec_among
from ..plots.rows.units import markdown
from .lines import Line, OnMachine, as_record
from .machines import Fleet, Machine, Place

COLUMNS_FOR = 4  # machines that get a column each; of more, the table tells all together
TITLES = {
    "speed": "Time over exact attention's on the same machine in the same run",
    "crossing": "Length from which on the variant is faster than exact attention",
    "memory": "Peak of bytes over exact attention's",
    "fidelity": "Relative error against exact attention",
    "accuracy": "Test score less exact attention's",
}
DESCRIBED = {  # axes that the title tells in words, or that a column holds
    "scope", "mode", "causal", "length", "repetitions", "seed", "batch", "heads", "head_dim", "threads", "kv_heads", "dtype", "kv_dtype", "layers", "equal",
}  # fmt: skip


class Section:
    """Lines of one measure on the same axes but the length."""

    def __init__(self, title: str, lines: Sequence[Line], fleet: Fleet, cells: Sequence[Cell], is_narrow: bool) -> None:
        self.title = title
        self._is_narrow = is_narrow  # one column for all machines
        self._numbers = [m.number for m in fleet.machines]
        self._lines = lines
        self._cells = cells

    @property
    def heads(self) -> list[str]:
        heads = ["variant", *(["length"] if self._has_lengths else [])]
        heads += [f"machine {n}" for n in self._numbers] if self._has_columns else ["by machine"]
        if self._is_pooled:
            heads += ["pooled", *(["machines differ by"] if self._is_random else []), *(["a new machine"] if self._has_new else [])]
        return [*heads, "holds" if self._lines[0].measure in ("speed", "accuracy") else "machines"]

    @property
    def _has_columns(self) -> bool:
        return len(self._numbers) <= COLUMNS_FOR and not (self._is_narrow and len(self._numbers) > 1)

    @property
    def _has_lengths(self) -> bool:
        return any(line.place.length for line in self._lines)

    @property
    def _is_pooled(self) -> bool:
        return any(line.pooled for line in self._lines)

    @property
    def _is_random(self) -> bool:
        return any(line.pooled and not math.isnan(line.pooled.tau) for line in self._lines)

    @property
    def _has_new(self) -> bool:
        return any(line.pooled and math.isfinite(line.pooled.new_low) for line in self._lines)

    def entries(self) -> list[list[str]]:
        return [self._entries(line) for line in self._lines]

    def _entries(self, line: Line) -> list[str]:
        out = [spec_among(line.place.variant, line.place.params, self._cells)]
        if self._has_lengths:
            out.append(str(line.place.length))
        known = line.by_machine
        if self._has_columns:
            out += [machine_text(line.measure, known[n]) if n in known else "-" for n in self._numbers]
        else:
            out.append(range_text(line))
        if self._is_pooled:
            mean, apart = pooled_texts(line)
            out += [mean, *([apart] if self._is_random else []), *([new_text(line)] if self._has_new else [])]
        return [*out, line.says]


def number(measure: str, value: float) -> str:
    if measure == "accuracy":
        return f"{value:+.3f}"
    if measure == "crossing":
        return f"{value:,.0f}" if value < 1e7 else ">10M"
    if not math.isfinite(value):
        return "inf"
    return f"{value:.0f}" if 100 <= value < 1000 else f"{value:.2g}" if value >= 1000 or 0 < value < 0.001 else f"{value:#.3g}"


def with_interval(measure: str, value: float, low: float, high: float) -> str:
    if math.isnan(low):
        return f"{number(measure, value)} (no interval)"
    if low == high:
        return number(measure, value)
    between = " to " if measure == "accuracy" else "\u2013"
    return f"{number(measure, value)} ({number(measure, low)}{between}{number(measure, high)})"


def machine_text(measure: str, one: OnMachine) -> str:
    told = one.text or with_interval(measure, one.value, one.low, one.high)
    return f"{told}{one.marks}"


def range_text(line: Line) -> str:
    """`0.51 to 0.58`; of one machine its figure."""
    if len(line.machines) == 1:
        return f"{machine_text(line.measure, line.machines[0])} on machine {line.machines[0].machine}"
    least, most = (f(line.machines, key=lambda one: one.value) for f in (min, max))
    ends = [one.text.partition(" (")[0] or number(line.measure, one.value) for one in (least, most)]
    return " to ".join(dict.fromkeys(ends))


def pooled_texts(line: Line) -> list[str]:
    """The mean with its interval, and how far machines differ."""
    p = line.pooled_as_shown
    if not p:
        return ["-", "-"]
    mean = f"{with_interval(line.measure, p['value'], p['low'], p['high'])}{line.marks}"
    beside = f" (I\u00b2 {100 * p['i_squared']:.0f} %, p {chance_text(p['q_p'])})" if math.isfinite(p["q_p"]) else ""
    return [mean, "-" if math.isnan(p["tau"]) else f"\u00d7{p['tau']:.3g}{beside}"]


def new_text(line: Line) -> str:
    p = line.pooled_as_shown
    if not p or math.isnan(p["new_low"]):
        return "-"
    between = " to " if line.measure == "accuracy" else "\u2013"
    return f"{number(line.measure, p['new_low'])}{between}{number(line.measure, p['new_high'])}"


def chance_text(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.2g}"


def shared_lines(lines: Sequence[Line]) -> tuple[list[Line], int]:
    """The lines that two machines have, and how many one has alone; all lines where none is shared."""
    shared = [line for line in lines if len(line.machines) > 1]
    return (shared, len(lines) - len(shared)) if shared else (list(lines), 0)


def sections(lines: Iterable[Line], fleet: Fleet, *, is_narrow: bool = False) -> list[Section]:
    """In the order of measures, then of the rows; within one, by variant and length."""
    cells = [m.cell for m in fleet.cells]
    of_place: dict[tuple[str, Place], Cell] = {}
    for measured in fleet.cells:
        of_place.setdefault((measured.cell.measure, measured.place.without_length), measured.cell)
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        measure = "speed" if line.measure == "crossing" else line.measure
        groups.setdefault((line.measure, where(of_place[measure, line.place.without_length], line.place)), []).append(line)
    order = list(TITLES)
    variants = {spec: i for i, spec in enumerate(dict.fromkeys(m.place.spec for m in fleet.cells))}
    out = []
    for (measure, words), own in sorted(groups.items(), key=lambda item: order.index(item[0][0])):
        ordered = sorted(own, key=lambda line: (variants[line.place.spec], line.place.length))
        out.append(Section(f"{TITLES[measure]}: {words}", ordered, fleet, cells, is_narrow))
    return out


def where(cell: Cell, place: Place) -> str:
    """`attention alone, forward, not causal, batch 1, 2 heads`."""
    if place.task:
        told = [place.task_spec]
    else:
        told = [scope_text(scope_of(cell)), mode_of(cell)] if cell.measure != "fidelity" else []
    rest = [f"{name} {value}" for name, value in sorted(cell.axes.items()) if name not in DESCRIBED]
    return ", ".join(filter(None, [*told, contract(cell), shape_text(cell), *rest]))


def machine_lines(machines: Sequence[Machine]) -> list[str]:
    return [f"machine {m.number}: {m.words} ({', '.join(f.name for f in m.files)})" for m in machines]


def as_text(fleet: Fleet, told: Sequence[Section], notes: Sequence[str]) -> str:
    parts = ["\n".join(machine_lines(fleet.machines))]
    parts += [f"{section.title}\n{aligned(section.heads, section.entries())}" for section in told]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])]) + "\n"


def aligned(heads: Sequence[str], entries: Sequence[Sequence[str]]) -> str:
    table = [heads, *entries]
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    return "\n".join("  " + "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in table)


def as_markdown(fleet: Fleet, told: Sequence[Section], notes: Sequence[str]) -> str:
    parts = ["\n".join(f"- {line}" for line in machine_lines(fleet.machines))]
    parts += [f"### {section.title}\n\n{markdown(section.heads, section.entries())}" for section in told]
    return "\n\n".join([*parts, *(["\n".join(f"- {note}" for note in notes)] if notes else [])]) + "\n"


def as_json(fleet: Fleet, lines: Sequence[Line], notes: Sequence[str]) -> str:
    whole = {
        "machines": [{"machine": str(m.number), "words": m.words, "files": [f.name for f in m.files]} for m in fleet.machines],
        "figures": [as_record(line) for line in lines],
        "notes": list(notes),
    }
    return json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


CSV = (
    "measure", "variant", "task", "axes", "machine", "value", "low", "high", "tau", "i_squared", "q", "q_p", "new_low", "new_high", "machines", "says",
    "marks", "cells",
)  # fmt: skip


def as_csv(lines: Sequence[Line]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        record = as_record(line)
        shared = {
            "measure": record["measure"],
            "variant": record["variant"],
            "task": record["task"],
            "axes": " ".join(f"{k}={_plain(v)}" for k, v in record["axes"].items()),
        }
        for one in record["machines"]:
            told = {**one, "says": one.get("crossing", ""), "cells": " ".join(one["cells"])}
            writer.writerow({**shared, **{k: v for k, v in told.items() if k in CSV}})
        writer.writerow({**shared, "machine": "all", "says": record["says"], "marks": line.marks, **(record["pooled"] or {"machines": len(line.machines)})})
    return out.getvalue()


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
