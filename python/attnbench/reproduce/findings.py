"""results/findings.md: what holds and what does not, over all entries, from their rows alone; and
recall against the bytes of a decode state, from the rows of the reference runs, as the picture
`accuracy-state` draws it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attnbench.plots.kinds.state import found, lines
from attnbench.plots.rows.read import Cell, Rows, RowsError, read_rows
from attnbench.plots.rows.scores import Score
from attnbench.plots.rows.settings import is_error, marks_of, spec_among
from attnbench.plots.rows.style import Styles
from attnbench.plots.rows.units import markdown

from .entries import FOLDER, ROOT, Entry, MissingError
from .estimates import Estimate, crossings_of, ratio_of_times
from .evidence import Evidence
from .judging import Outcome, State
from .page import PAGE as ENTRIES
from .page import Judged, anchor, bounds, figure
from .product import Product

REFERENCE = ROOT / "results" / "reference"
# The sweep that trains every variant that decodes is recall.toml; its rows are used where they are there.
FILES = ("standard.jsonl", "quick.jsonl", "recall.jsonl")
TASKS = ("mqar", "induction", "noisy_recall", "fuzzy_recall", "needle")  # the folder tasks/recall
RECALL_HEADS = ("task", "variant", "bytes of state of a sequence", "accuracy", "seeds", "best shortcut", "rows")
RECALL_SAID = """The state is what decoding keeps of one sequence, all layers together; training and tuning are the same for all variants of a task and a file.
A score that is no more than that of the best shortcut shows no recall. That of a training that was cut off by its steps, \u2020, does not say that there is none:
more steps may bring it. Intervals end at 0 and 1, the limits of an accuracy. A variant without a line is not trained yet:
`scripts/bench run results/reference/recall.toml -o results/reference/recall.jsonl` trains every variant that decodes on `mqar`."""


def recall_lines(near: Path, files: Sequence[Path] = tuple(REFERENCE / name for name in FILES)) -> list[Sequence[str]]:
    """Lines of the rows files that are there, with links relative to `near`."""
    told = []
    for path in files:
        try:
            rows = read_rows([path])
        except RowsError:
            continue
        link = f"[{path.stem}]({os.path.relpath(path, near)})"
        told += [[*line, link] for line in _lines(rows)]
    return told


def _lines(rows: Rows) -> Iterator[list[str]]:
    """By task and state; settings are chosen on validation."""
    _, groups, families = found(rows, Styles(rows))
    for group in groups:
        if group.cells[0].task not in TASKS:
            continue
        shortcut = group.levels.get("best shortcut")
        limits = (-math.inf, math.inf) if is_error(group.metric) else (0.0, 1.0)
        series = group.select([s for _, own in families.values() for s in own])
        points = [point for _, _, own in lines(families, series) for point in own]
        for size, score, _, label in sorted(points, key=lambda p: (p[0], p[3])):
            mark = marks_of(c for c in group.cells if c.id in score.cell.split())
            yield [group.title.replace("\n", ", "), f"`{label}`", str(size), _figure(score, limits) + mark, str(len(score.seeds)),
                   "–" if shortcut is None else f"{shortcut:.3g}"]  # fmt: skip


def _figure(score: Score, limits: tuple[float, float]) -> str:
    """No interval goes beyond what a score can be."""
    half = float("inf") if score.half is None else score.half
    least, most = limits if math.isfinite(half) else (-math.inf, math.inf)
    return figure(Estimate(score.mean, max(score.mean - half, least), min(score.mean + half, most)))


PAGE = ROOT / "results" / "findings.md"
TILED, TEXTBOOK = "full[kernel=tiled]", "full[kernel=materialized]"
HEAD = """# What holds and what does not

What [the published results measured again](reproductions.md) come to. `scripts/reproduce report` writes this page from the rows; nothing on it is
written by hand. Figures in brackets are 95 % intervals. Where an entry judges several figures together its intervals are wider, and the entry says so.
The top of [that page](reproductions.md) says when a finding holds, fails or is unclear, how the outcome of an entry follows from its findings, and what
the marks `†`, `!`, `~`, `?` and `*` mean. In the tables here the marks stand behind the entry's name. *(of the machine)*: another machine or another
program may find otherwise, such as which of two is faster.
"""
WORDS = {"speed": "time", "memory": "memory"}
Line = Sequence[str]


def write(found: list[Judged], product: Product, path: Path = PAGE, folder: Path = FOLDER) -> Path:
    path.write_text(text_of(found, product, folder, path), encoding="utf-8")
    return path


def text_of(
    found: list[Judged], product: Product, folder: Path = FOLDER, path: Path = PAGE
) -> str:
    page = _Page(found, product, folder, path)
    sections = (
        page.outcomes(),
        page.findings("Findings that fail", State.fails),
        page.findings("Findings that the rows do not decide", State.unclear),
        page.baselines(),
        page.state_or_cache(),
        page.lengths(),
        page.listops(),
        page.mechanisms(),
        page.recall(),
    )
    return "\n".join((HEAD, *(f"## {title}\n\n{text}\n" for title, text in sections)))


class _Page:
    def __init__(self, found: list[Judged], product: Product, folder: Path, path: Path) -> None:
        self.found = {one.entry.id: one for one in found}
        self.product, self.folder, self.near = product, folder, path.parent

    def outcomes(self) -> tuple[str, str]:
        lines = []
        for outcome in (*Outcome, None):
            ids = [
                self._entry(one.entry) + one.marks
                for one in self.found.values()
                if (one.verdict.outcome if one.verdict else None) is outcome
            ]
            if ids:
                name = outcome.value if outcome else "not measured yet"
                lines.append(f"- **{name}** ({len(ids)}): {'; '.join(ids)}")
        return "Outcomes", "\n".join(lines)

    def findings(self, title: str, state: State) -> tuple[str, str]:
        lines = [
            (self._marked(one), f.what + (" (of the machine)" if f.of_machine else ""),
             figure(f.found, f.unit), bounds(f), f.published or "–", self._rows(one.entry))
            for one in self.found.values()
            if one.verdict
            for f in one.verdict.findings
            if f.state is state
        ]  # fmt: skip
        return title, _table(("", "finding", "measured", "must be", "published", "rows"), lines)

    def baselines(self) -> tuple[str, str]:
        """Of the entries that measure a variant and both forms of exact attention at one setting."""
        lines = []
        for name, rows in (("R14", "steps"), ("R15", "saving"), ("R17", "growth")):
            for scope, cells in self._by_scope(name, rows).items():
                lines += self._baseline_lines(name, scope, cells)
        heads = ("", "variant", "tokens", "scope", "faster than textbook", "faster than tiled", "the baseline's part", "machine", "rows")
        said = "A published factor against the textbook form is the product of the factor against the tiled form and of the baseline's part, " \
               "which is what exact attention gains from a better program.\n\n"  # fmt: skip
        table = _table(heads, lines)
        return "Which speed-ups are the baseline's", said + table if lines else table

    def _by_scope(self, name: str, rows: str) -> dict[str, list[Cell]]:
        by: dict[str, list[Cell]] = {}
        for cell in self._cells(name, rows):
            if cell.measure == "speed" and cell.ok:
                by.setdefault(str(cell.axes.get("scope")), []).append(cell)
        return by

    def _baseline_lines(self, name: str, scope: str, cells: list[Cell]) -> list[Line]:
        longest = max(cell.length for cell in cells)
        at = [cell for cell in cells if cell.length == longest]
        exact = {dict(c.params).get("kernel"): c for c in at if c.variant == "full"}
        if set(exact) != {"tiled", "materialized"}:
            return []
        part = ratio_of_times(exact["materialized"], exact["tiled"])
        one = self.found[name]
        return [
            (self._marked(one), f"`{spec_among(cell.variant, cell.params, at)}`", str(longest), scope,
             figure(ratio_of_times(exact["materialized"], cell)), figure(ratio_of_times(exact["tiled"], cell)),
             figure(part), machine_of(one), self._rows(one.entry))
            for cell in sorted(at, key=lambda c: (c.variant, c.params))
            if cell.variant != "full"
        ]  # fmt: skip

    def state_or_cache(self) -> tuple[str, str]:
        title = "Decoding: a state against a cache, and against neither"
        one = self.found.get("R18")
        if not one or not one.verdict or not one.verdict.findings:
            return title, "R18 is not measured yet."
        lines = [
            (self._marked(one), f.what, figure(f.found), f.published, machine_of(one), self._rows(one.entry))
            for f in one.verdict.findings
        ]
        return title, _table(("", "", "measured", "published", "machine", "rows"), lines)

    def lengths(self) -> tuple[str, str]:
        lines: list[Line] = []
        for name, rows in (("R19", "crossing"), ("R20", "narrow"), ("R20", "wide"), ("R18", "crossing")):
            lines += self._length_lines(name, rows)
        heads = ("", "variant", "of", "from, against tiled", "from, against textbook", "machine", "rows")
        said = "`beyond`: at every length measured exact attention takes less. `≤`: the variant takes less at every length measured. In decoding " \
               "exact attention has a cache of keys and values, and the length is that of the context.\n\n"  # fmt: skip
        table = _table(heads, lines)
        return "From which length on each variant takes less", said + table if lines else table

    def _length_lines(self, name: str, rows: str) -> list[Line]:
        one = self.found.get(name)
        if not one or not one.verdict:
            return []
        try:
            found = crossings_of(Evidence(one.entry, self.folder / name, self.product).crossings(rows))
        except MissingError:
            return []
        pairs = sorted({key[:2] for key in found})
        decoding = any(c.axes.get("mode") == "decode" for c in self._cells(name, rows))
        lines = []
        for variant, measure in pairs:
            tiled, textbook = (found.get((variant, measure, rival)) for rival in (TILED, TEXTBOOK))
            if decoding:  # one rival: full, whose decoder has one form
                tiled = tiled or textbook or found.get((variant, measure, "full"))
                textbook = None
            word = WORDS[measure] + (", decoding" if decoding else "")
            lines.append((self._marked(one), f"`{variant}`", f"{word}, {rows}" if name == "R20" else word,
                          _length(tiled), _length(textbook), machine_of(one), self._rows(one.entry)))  # fmt: skip
        return lines

    def listops(self) -> tuple[str, str]:
        title = "Where Long Range Arena's ListOps scores lie"
        one = self.found.get("R26")
        if not one or not one.picture:
            return title, "R26 is not measured yet."
        ranked = sorted(one.picture.data.to_dict("records"), key=lambda r: r["value"])
        lines = [
            (r["x"], figure(Estimate(r["value"], r["low"], r["high"])),
             "published" if r["kind"] == "published" else "without any nested operator")
            for r in ranked
        ]  # fmt: skip
        rows = f"\n\nRows: {self._rows(one.entry)}."
        return title, _table(("predictor or model", "accuracy", ""), lines) + rows

    def mechanisms(self) -> tuple[str, str]:
        title = "Whether Long Range Arena's ranking is one of mechanisms"
        one = self.found.get("R27")
        if not one or not one.verdict or not one.verdict.findings:
            return title, "R27 is not measured yet."
        words = {State.holds: "the paper's", State.fails: "another", State.unclear: "cannot be told"}
        lines = [
            (f"`{f.what.partition(':')[0]}`", figure(f.found), words[f.state], self._rows(one.entry))
            for f in one.verdict.findings
        ]
        said = "Of the rows of its table 1 that its code and the papers compute in different ways, at initial weights. What the difference does to the " \
               "scores is not measured: that takes both forms trained on each task.\n\n"  # fmt: skip
        heads = ("variant", "difference of the outputs beyond that of two draws", "mechanism of the code", "rows")
        return title, said + _table(heads, lines)

    def recall(self) -> tuple[str, str]:
        return "Recall against bytes of state", f"{RECALL_SAID}\n\n{_table(RECALL_HEADS, recall_lines(self.near))}"

    def _cells(self, name: str, rows: str) -> list[Cell]:
        one = self.found.get(name)
        if not one or not one.verdict:
            return []
        try:
            return Evidence(one.entry, self.folder / name, self.product).rows(rows).cells
        except MissingError:
            return []

    def _marked(self, one: Judged) -> str:
        return self._entry(one.entry, short=True) + one.marks

    def _entry(self, entry: Entry, short: bool = False) -> str:
        page = os.path.relpath(ENTRIES, self.near) if self.near != ENTRIES.parent else ENTRIES.name
        told = entry.id if short else f"{entry.id}, {entry.title}"
        return f"[{told}]({page}#{anchor(entry)})"

    def _rows(self, entry: Entry) -> str:
        folder = os.path.relpath(self.folder / entry.id, self.near)
        return ", ".join(f"[{m.name}]({folder}/{m.name}.jsonl)" for m in entry.measurements)


def machine_of(one: Judged) -> str:
    """`AMD EPYC, avx512, 118 GFLOP/s`: processors of one name are told apart by what a core was measured to do."""
    told = []
    for run in one.measured.runs if one.measured else []:
        place = run.get("environment") or {}
        peak = (place.get("calibration") or {}).get("fma_flops_per_s_one")
        rate = f"{float(peak) / 1e9:.0f} GFLOP/s" if peak else ""
        told.append(", ".join(filter(None, (place.get("cpu_model"), place.get("instruction_set"), rate))))
    return "; ".join(dict.fromkeys(filter(None, told)))


def _length(found: Estimate | None) -> str:
    if found is None:
        return "–"
    if not math.isfinite(found.value):
        return f"beyond {found.low:.0f}"
    if found.low <= 1:
        return f"≤ {found.high:.0f}"
    return f"{found.value:.0f} [{found.low:.0f}, {found.high:.0f}]"


def _table(heads: Line, lines: Iterable[Line]) -> str:
    told = list(lines)
    return markdown(heads, told) if told else "None measured yet."
