"""Two or more files side by side: what they are of, and what `attnbench compare` says of the changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnbench.plots.layout.caption import machine_words
from attnbench.plots.rows.crossing import NoAnswer, asked
from attnbench.plots.rows.read import OF_RUN, Cell

from .book import Book
from .section import Json, rounded, section, table

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
