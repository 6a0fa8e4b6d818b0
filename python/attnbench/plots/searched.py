"""The crossings that a search found (`attnbench run --find crossing`), as the program tells them:
they come from lengths that follow the search, so that no picture interpolates its own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .cell import Cell, Params
from .crossing import Crossing
from .program import NoAnswer, asked
from .rows import Rows
from .runs import RUN
from .trained import without_settings

NUMBER = re.compile(r"\d+")
BESIDE = ("length", "repetitions", "seed")  # axes that a search leaves out of its places


@dataclass(frozen=True)
class Searches:
    """The lines of `attnbench table --crossings --format json` of all files, and why some have none."""

    lines: tuple[dict[str, Any], ...]
    faults: tuple[str, ...] = ()

    def crossing(self, cells: Iterable[Cell], full: Iterable[Cell]) -> Crossing | None:
        """Returns the last crossing of a series of one panel and a rival. None where no search
        compared the two there."""
        own, rival = next(iter(cells), None), next(iter(full), None)
        if own is None or rival is None:
            return None
        found = [
            line
            for line in self.lines
            if line["measure"] == own.measure
            and _place(line["axes"]) == _axes(own)
            and _is(line["variant"], own.variant, own.params)
            and _is(line["rival"], rival.variant, rival.params)
        ]
        return _crossing(found[-1]) if found else None

    @property
    def note(self) -> str:
        faults = f" The search's own crossings are missing: {'; '.join(self.faults)}." if self.faults else ""
        told = "Crossings are those that the search fitted to the lengths it chose." if self.lines else ""
        return f"{told}{faults}".strip()


def searched_from(crossing: Crossing) -> str:
    """From which length on the variant is faster, as the tables of a search say."""
    if crossing.unclear:
        return "undecided"
    if crossing.length == -math.inf:
        return str(crossing.first)
    if crossing.length == math.inf:
        return f"not up to {crossing.last}"
    return f"{crossing.length:.0f}" if crossing.is_found else crossing.text()


def searches_of(rows: Rows) -> Searches:
    """Asks the program about each file that holds a search."""
    files = {
        source: source.stat().st_mtime_ns
        for source, head in zip(rows.sources, rows.runs, strict=True)
        if (head.get("config") or {}).get("find") == "crossing" and source.is_file()
    }
    return _asked(tuple(files.items()))


@lru_cache(maxsize=8)
def _asked(files: tuple[tuple[Path, int], ...]) -> Searches:
    """Each file is given with the time of its last change: one that has grown is read again."""
    lines: list[dict[str, Any]] = []
    faults = []
    for file, _ in files:
        try:
            lines += asked("table", file, "--crossings")
        except NoAnswer as fault:
            faults.append(f"{file.name}: {fault}")
    return Searches(tuple(lines), tuple(faults))


def _crossing(line: dict[str, Any]) -> Crossing:
    """What a line says as a crossing: infinite ends are lengths outside the search."""
    first, last, words = int(line["from"]), int(line["to"]), str(line["outcome"])
    if line["becomes"] == "less":
        if line["crossing"] is None:
            return Crossing(float(line["high"]), line["low"], line["high"], first, last, is_found=False)
        return Crossing(line["crossing"], line["low"], line["high"], first, last)
    if line["becomes"] == "more":
        return Crossing(math.inf, math.inf, math.inf, first, last)
    is_less, is_more = words.startswith(("faster", "less")), words.startswith(("slower", "more"))
    if is_less or is_more:
        decided, _, others = words.partition("; ")
        ends = [int(n) for n in NUMBER.findall(decided)]
        open_at = [int(n) for n in NUMBER.findall(others.partition(" lengths between ")[2] or others)]
        if not others:
            end = math.inf if is_more else -math.inf
            return Crossing(end, end, end, first, last)
        if ends[-1] == last and is_more:
            return Crossing(math.inf, math.inf, math.inf, first, last)
        if ends[-1] == last and max(open_at) < ends[0]:  # undecided below alone
            return Crossing(float(ends[0]), -math.inf, float(ends[0]), first, last, is_found=False)
    return Crossing(math.inf, -math.inf, math.inf, first, last)  # undecided, equal or not measured


def _place(text: str) -> set[str]:
    return set(text.split(", "))


def _axes(cell: Cell) -> set[str]:
    return {f"{name} {_text(value)}" for name, value in cell.axes.items() if name not in BESIDE}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is(spec: str, variant: str, params: Params) -> bool:
    """Whether the program's `name[a=1,b=two]` is this variant with these parameters."""
    own = [(k, v) for k, v in without_settings(params) if k != RUN]
    words = ",".join(f"{k}={v}" for k, v in own)
    return spec == (f"{variant}[{words}]" if words else variant)
