"""What the program says of files: `attnbench compare` of two or more side by side, and the
exponents of growth with length that `attnbench fit` finds, with their intervals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnbench.plots.layout.caption import machine_words
from attnbench.plots.rows.crossing import NoAnswer, asked
from attnbench.plots.rows.read import OF_RUN, RUN, Cell, canonical, marked

from .book import Book, Json, rounded, section, table

MOST = 40  # pairs in a picture, those that changed first; the table holds all
ORDER = ("worse", "better", "undecided", "same")
SIDES = (
    ("file", "text"),
    ("machine", "text"),
    ("commit", "text"),
    ("seeds", "text"),
    ("cells that count", "number"),
    ("ok", "number"),
    ("skipped", "number"),
    ("failed", "number"),
    ("measured", "text"),
)
CHANGES = (
    ("new file", "text"),
    ("measure", "text"),
    ("cell", "text"),
    ("old", "number"),
    ("new", "number"),
    ("change", "number"),
    ("low", "number"),
    ("high", "number"),
    ("p (Holm)", "number"),
    ("verdict", "text"),
    ("by", "text"),
)
TITLES = {
    "speed": "Time, new over old",
    "memory": "Peak memory, new over old",
    "accuracy": "Test score, new less old",
    "fidelity": "Relative error, new over old",
    "reach": "Reach, new over old",
}
# What a refusal names as the way to compare all the same, and what it then means.
ACROSS = {
    "--across-machines": "the files are of two machines: times are ratios to exact attention",
    "--across-builds": "the files are of two builds, whose times are compared all the same",
}


def comparison(book: Book) -> Json | None:
    files = list(dict.fromkeys(book.rows.sources))
    if len(files) < 2:
        return None
    panels, rows, notes = [], [], []
    for new in files[1:]:
        told, found = compared(files[0], new)
        notes += [f"{new.name}: {words}." for words in told]
        rows += [_row(new, pair) for pair in found]
        panels += _panels(files[0], new, found)
    return section(
        "comparison",
        "Comparison",
        f"Each file against the first, {files[0].name}, as 'attnbench compare' judges: slower, larger or "
        "less accurate means by more than 2 % and by more than chance.",
        panels,
        table("files", "Files side by side", SIDES, [_side(file, book) for file in files]),
        table("changes", "Changes", CHANGES, rows),
        note=" ".join(["Bars are 95 % intervals; p is corrected for the number of pairs (Holm).", *notes]),
    )


def compared(old: Path, new: Path) -> tuple[list[str], list[Json]]:
    """Returns what is to be said of the comparison, and its pairs."""
    flags: list[str] = []
    while True:
        try:
            found = asked("compare", old, new, *flags)
        except NoAnswer as fault:
            flag = next((f for f in ACROSS if f in str(fault) and f not in flags), None)
            if flag is None:
                return [f"not compared: {fault}"], []
            flags.append(flag)
            continue
        words = [ACROSS[flag] for flag in flags]
        reasons: dict[str, int] = {}
        for pair in found["left_out"]:
            reasons[pair["reason"]] = reasons.get(pair["reason"], 0) + 1
        words += [f"{count} pairs not compared: {reason}" for reason, count in reasons.items()]
        only = [f"{found[k]} cells only in the {side} file" for k, side in
                (("only_in_old", "first"), ("only_in_new", "new")) if found[k]]  # fmt: skip
        return [*words, *only], found["pairs"]


def _panels(old: Path, new: Path, pairs: list[Json]) -> list[Json]:
    out = []
    for measure, title in TITLES.items():
        own = [p for p in pairs if p["measure"] == measure and p["value"] is not None]
        if not own:
            continue
        own.sort(key=lambda p: (ORDER.index(p["verdict"]), -abs(p["value"] - _still(p))))
        shown, ratio = own[:MOST], own[0]["change"] == "ratio"
        counts = [f"{sum(p['verdict'] == v for p in own)} {v}" for v in ORDER]
        left = f"; the {MOST} of {len(own)} that changed most" if len(own) > MOST else ""
        out.append(
            {
                "kind": "scores",
                "title": f"{title}: {new.name}",
                "facets": {"measure": measure},
                "context": f"{', '.join(counts)}{left}",
                "x": {"title": f"{new.name} against {old.name}", "kind": "ratio" if ratio else "number",
                      "log": ratio},
                "y": {"title": "", "kind": "series"},
                "lines": [_line(p) for p in shown],
                "levels": [["even", "no change", _still(own[0])]],
            }
        )  # fmt: skip
    return out


def _still(pair: Json) -> float:
    return 1.0 if pair["change"] == "ratio" else 0.0


def _line(pair: Json) -> Json:
    point = [rounded(pair["value"]), None, rounded(pair["low"]), rounded(pair["high"]), []]
    mark = "" if pair["verdict"] == "same" else f" ({pair['word']})"
    return {"series": None, "name": f"{pair['label']}{mark}", "points": [point]}


def _row(new: Path, pair: Json) -> list[Any]:
    numbers = (rounded(pair[k]) for k in ("old", "new", "value", "low", "high", "p_holm"))
    return [new.name, pair["measure"], pair["label"], *numbers, pair["word"], pair["basis"]]


def _side(file: Path, book: Book) -> list[Any]:
    """A line for each file, of those of its cells that count, see runs.merge."""
    places = [i for i, source in enumerate(book.rows.sources) if source == file]
    heads = [book.rows.runs[i] for i in places]
    runs = {h["run"] for h in heads}

    def is_own(cell: Cell) -> bool:
        place = cell.id.partition(OF_RUN)[2]
        return int(place) in places if place else cell.run in runs

    cells = [c for c in book.rows.cells if is_own(c)]
    env = [h.get("environment") or {} for h in heads]
    seeds = sorted({json.dumps(c.axes["seed"]) for c in cells if "seed" in c.axes}, key=lambda s: (len(s), s))
    failed = sum(c.status not in ("ok", "skipped") for c in cells)
    return [
        file.name,
        "; ".join(dict.fromkeys(machine_words(e) for e in env)),
        "; ".join(dict.fromkeys(_commit(e) for e in env)),
        ", ".join(seeds),
        len(cells),
        sum(c.ok for c in cells),
        sum(c.status == "skipped" for c in cells),
        failed,
        _when(sorted({str(h["started_at"]) for h in heads if h.get("started_at")})),
    ]


def _when(times: list[str]) -> str:
    return "; ".join(times) if len(times) < 3 else f"{times[0]} to {times[-1]} ({len(times)} runs)"


def _commit(env: dict[str, Any]) -> str:
    return str(env.get("commit") or "unknown")[:9] + (" with local changes" if env.get("dirty") else "")


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
            found += [(file, line) for line in asked("fit", file) if "lengths" in line]  # not what it says of scores
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
        table("fits", "Exponents", FITS, [_fit_row(file, line) for file, line in found if _is_told(line)]),
        note=" ".join([NOTE, *(f"Not fitted: {fault}" for fault in faults)]),
    )


def _is_told(line: Json) -> bool:
    """Whether the table holds it: cells of one or two lengths have no growth to tell."""
    return line.get("exponent") is not None or len(line["lengths"]) > 2


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
        "lines": [_fit(line, file, book) for line in sorted(lines, key=lambda line: line["exponent"])],
        "levels": [["even", "linear", 1], ["even", "quadratic", 2]],
    }


def _fit(line: Json, file: Path, book: Book) -> Json:
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


def _fit_row(file: Path, line: Json) -> list[Any]:
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
