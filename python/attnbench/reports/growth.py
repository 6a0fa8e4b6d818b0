"""Growth with length: the exponents that `attnbench fit` finds, with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnbench.plots.rows.crossing import NoAnswer, asked
from attnbench.plots.rows.read import RUN, canonical, marked

from .book import Book
from .section import Json, rounded, section, table

FITS = (
    ("measure", "text"),
    ("axes", "text"),
    ("variant", "text"),
    ("exponent", "number"),
    ("\u00b1 half 95 % interval", "number"),
    ("declared", "number"),
    ("constant", "number"),
    ("lengths", "text"),
    ("curved", "text"),
    ("longest length, measured over predicted", "ratio"),
    ("file", "text"),
    ("no fit", "text"),
)
UNITS = {"speed": "time", "memory": "memory beyond inputs and outputs"}
NOTE = (
    "attnbench fit: y = constant \u00b7 length^exponent by least squares on logarithms, Student's t "
    "intervals; the constant is in seconds or bytes. 'curved': the exponent changes with length, and one "
    "number is a mean over these lengths. Measured over predicted: the longest length against the law of "
    "the shorter ones."
)


def growth(book: Book) -> Json | None:
    files = list(dict.fromkeys(book.rows.sources))
    found: list[tuple[Path, Json]] = []
    faults = []
    for file in files:
        try:
            found += [(file, line) for line in asked("fit", file)]
        except NoAnswer as fault:
            faults.append(f"{file.name}: {fault}.")
    fitted = [(file, line) for file, line in found if line.get("exponent") is not None]
    if not fitted:
        return None
    groups: dict[tuple[str, str, Path], list[Json]] = {}
    for file, line in fitted:
        groups.setdefault((line["measure"], line["axes"], file), []).append(line)
    several = len(files) > 1
    panels = [
        _panel(measure, axes, file, several, lines, book)
        for (measure, axes, file), lines in groups.items()
        if len(lines) > 1
    ]
    return section(
        "growth",
        "Growth",
        "Exponents of time and of memory by sequence length, with 95 % intervals: 1 is linear, 2 is "
        "quadratic. A dashed line marks each.",
        panels,
        table("fits", "Exponents", FITS, [_row(file, line) for file, line in found]),
        note=" ".join([NOTE, *(f"Not fitted: {fault}" for fault in faults)]),
    )


def _panel(measure: str, axes: str, file: Path, named: bool, lines: list[Json], book: Book) -> Json:
    """`named`: whether the title names the file."""
    words = dict(part.rpartition(" ")[::2] for part in axes.split(", "))
    mask = "causal" if words.get("causal") == "true" else "not causal"
    title = [UNITS[measure], words.get("mode", ""), mask, words.get("scope", ""), file.name if named else ""]
    return {
        "kind": "scores",
        "title": f"Exponent of {', '.join(filter(None, title))}",
        "facets": {},
        "context": axes,
        "x": {"title": "exponent", "kind": "number", "log": False},
        "y": {"title": "", "kind": "series"},
        "lines": [_line(line, file, book) for line in sorted(lines, key=lambda line: line["exponent"])],
        "levels": [["even", "linear", 1], ["even", "quadratic", 2]],
    }


def _line(line: Json, file: Path, book: Book) -> Json:
    middle, reach = line["exponent"], line["exponent_reach"]
    ends = [rounded(middle - reach), rounded(middle + reach)]
    point = [rounded(middle), None, *ends, []]
    series = _series(line, file, book)
    name = line["variant"] if series is None else None  # else it has that of the other sections
    return {"series": series, "name": name, "points": [point]}


def _series(line: Json, file: Path, book: Book) -> int | None:
    """That of the cells of this variant in this file; where files are told apart, no other's."""
    wanted = marked(line["name"]), canonical(line["params"])
    for cell in book.rows.cells:
        same = (cell.variant, tuple(p for p in cell.params if p[0] != RUN)) == wanted
        if same and book.rows.sources[book.place(cell)] == file:
            return book.series_of(cell)
    return None


def _row(file: Path, line: Json) -> list[Any]:
    lengths = line["lengths"]
    held = line.get("held_back")
    curved = {True: "yes", False: "no", None: ""}[line.get("is_curved")]
    return [
        UNITS[line["measure"]],
        line["axes"],
        line["variant"],
        rounded(line.get("exponent")),
        rounded(line.get("exponent_reach")),
        rounded(line.get("declared_exponent")),
        rounded(line.get("constant")),
        f"{lengths[0]} to {lengths[-1]} ({len(lengths)})" if lengths else "",
        curved,
        rounded(held["measured"] / held["value"]) if held else None,
        file.name,
        line["reason"] or "",
    ]
