"""The pages as texts: the board, whole or in parts, and a page for each archive. Nothing is loaded from anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from attnbench.bundles.container import BundleError
from attnbench.plots.rows.read import PYTHON_NOTE
from attnbench.plots.rows.settings import MEANINGS
from attnbench.reports.inline import in_script, script_hash

from .archive_page import archive_page, state_text
from .data import Labels, Part, data_of, parts_of
from .groups import LEAST, blocks_of
from .markup import Html, joined, table, tag
from .numbers import MEMORY, SCORES, SPEED, Number, numbers_of
from .runs import runs_of
from .safe import plain, slug
from .submissions import LeftOut, Submission, guarded
from .verdicts import MEANINGS as MEANINGS_OF_STATES

FOLDER = Path(__file__).parent
REPORTS = FOLDER.parent / "reports"
SCRIPTS = (REPORTS / "units.js", REPORTS / "tables.js", FOLDER / "board.js")  # one script, in this order
INDEX = "index.html"
LEADS = {
    SPEED: "Each time is divided by that of exact attention in the same run on the same machine: below ×1 is faster. Times themselves "
    "stand on the pages of the archives, since those of two machines do not compare.",
    SCORES: "The mean over seeds of test scores, of the settings of training that were chosen on validation. 'Best without attention' is what "
    "chance or a shortcut scores.",
    MEMORY: "The most bytes that one pass holds, by the counted pool, and the bytes of the state of decoding: exact counts, without an interval.",
}
TITLES = {SPEED: "Times", SCORES: "Scores", MEMORY: "Memory"}


def pages_of(submissions: list[Submission], left_out: list[LeftOut]) -> tuple[dict[str, str], list[LeftOut]]:
    """The text of each file of the site, by its path, and what is left out, now with archives whose rows no page can tell. The
    same input gives the same texts; there is none without an archive."""
    kept: list[Submission] = []
    numbers: list[Number] = []
    pages: dict[str, str] = {}
    for s in submissions:
        try:
            own, page = guarded(lambda: (numbers_of(s), archive_page(s, _page)))  # noqa: B023
        except BundleError as error:
            left_out = [*left_out, LeftOut(s.file, plain(str(error), 400))]
            continue
        kept.append(s)
        numbers += own
        pages[f"bundles/{s.page}.html"] = page
    if not kept:
        return {}, left_out
    labels, blocks = Labels(n.key for n in numbers), blocks_of(numbers)
    parts = parts_of(numbers)
    if len(parts) == 1:
        body = _board(parts[0].numbers, joined([_archives(kept), _left_out(left_out)]), [])
        return {INDEX: _page("attnbench board", body, data_of(numbers, blocks, labels)), **pages}, left_out
    links = [(", ".join(part.title), _name(part)) for part in parts]
    others = tag("ul", [tag("li", tag("a", title, href=name), f": {_count(part.numbers)}") for part, (title, name) in zip(parts, links)])
    front = [tag("section", tag("h2", "Numbers"), tag("p", "The board is in parts, since one page of it would be slow."), others)]
    pages[INDEX] = _page("attnbench board", _shell("attnbench board", [*front, _archives(kept), _left_out(left_out)]), None)
    for part, (title, name) in zip(parts, links):
        body = _board(part.numbers, _archives(dict.fromkeys(n.submission for n in part.numbers)), [title])
        pages[name] = _page(f"attnbench board: {title}", body, data_of(part.numbers, blocks, labels))
    return pages, left_out


def _name(part: Part) -> str:
    return slug(" ".join(part.title)) + ".html"


def _count(numbers: list[Number]) -> str:
    archives = len({n.submission for n in numbers})
    return f"{len(numbers):,} number{'' if len(numbers) == 1 else 's'} of {archives} archive{'' if archives == 1 else 's'}"


def _page(title: str, body: Html, data: dict[str, Any] | None) -> str:
    script = _script() if data is not None else ""
    allowed = script_hash(script) if script else "'none'"
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}; base-uri 'none'; form-action 'none'"
    inside = joined([body, Html(f'<script type="application/json" id="data">{in_script(data)}</script><script>{script}</script>') if script else None])
    parts = {"policy": policy, "title": joined(title), "style": _style(), "body": inside}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read(FOLDER / "board.html"))


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _script() -> str:
    return "(() => {{\n'use strict';\n{}\n}})();\n".format("\n".join(map(_read, SCRIPTS)))


@cache
def _style() -> str:
    return _read(REPORTS / "report.css") + _read(FOLDER / "board.css")


def _shell(title: str, sections: Iterable[Html | None], lead: str = "") -> Html:
    head = tag("header", tag("h1", title), tag("p", lead or "What others measured and submitted, from their archives."))
    return joined([head, tag("main", list(sections), id="main", tabindex="-1")])


def _board(numbers: list[Number], archives: Html, title: list[str]) -> Html:
    measures = [m for m in (SPEED, SCORES, MEMORY) if any(n.measure == m for n in numbers)]
    links = [tag("a", "All parts", href=INDEX) if title else None, *(tag("a", t, href=f"#{i}") for i, t in _entries(measures))]
    nav = tag("nav", links, aria_label="Sections")
    filters = tag("details", tag("summary", "What is shown"), tag("form", id="choices", aria_label="What is shown"), id="filters", open=True)
    sections = [
        tag("p", "A number opens its command, its archive and who verified it. Tables hold one instruction set and one protocol at a time."),
        nav,
        filters,
        tag("p", id="chosen", role="status"),
        tag("noscript", tag("p", "Filters and tables need JavaScript; the pages of the archives do not.")),
        _groups(),
        *(_table(m) for m in (SPEED, SCORES, MEMORY)),
        _key(numbers),
        archives,
        tag("p", id="status", role="status", class_="quiet"),
        _dialog(),
    ]
    return _shell(": ".join(["attnbench board", *title]), sections)


def _entries(measures: list[str]) -> list[tuple[str, str]]:
    return [("part-groups", "Groups"), *((f"part-{m}", TITLES[m]) for m in measures), ("bundles", "Archives")]


def _groups() -> Html:
    lead = (
        "Variants that share a letter are not told apart by Nemenyi's test over all pairs (Demšar 2006); nothing here has a place in a list. "
        f"Judges of times are machines, those of scores are tasks; there are groups from {LEAST} judges on. An archive with which another "
        "measurement disagrees judges nothing. Bytes are exact, and need no test."
    )
    return tag("section", tag("h2", "Groups that are told apart", id="groups-title"), tag("p", lead), tag("p", id="blocks-note", class_="quiet"),
               tag("div", id="blocks"), id="part-groups", aria_labelledby="groups-title")  # fmt: skip


def _table(measure: str) -> Html:
    head = tag("h2", TITLES[measure], id=f"{measure}-title")
    return tag("section", head, tag("p", LEADS[measure]), tag("div", id=f"table-{measure}"), id=f"part-{measure}", aria_labelledby=f"{measure}-title")


def _key(numbers: list[Number]) -> Html:
    marks = {**MEANINGS_OF_STATES, **MEANINGS}
    seen = "".join(n.marks + n.submission.verdict.mark for n in numbers if n.value is not None)
    lines = [tag("li", f"{mark} ", words) for mark, words in marks.items() if mark in seen]
    python = [tag("li", PYTHON_NOTE)] if any(PYTHON_NOTE[0] in n.variant for n in numbers) else []
    low = (
        "Low and high are the ends of 95 % intervals: of ratios as attnbench pool has them, on the logarithms of the visits' medians; of scores "
        "Student's t over seeds, or of one seed 1.96 standard errors over its test examples."
    )
    told = tag("ul", lines, python, class_="notes") if lines or python else tag("p", "No number here has a mark.")
    return tag("section", tag("h2", "Marks", id="marks-title"), told, tag("p", low, class_="quiet"), aria_labelledby="marks-title")


def _archives(submissions: Iterable[Submission]) -> Html:
    heads = ("archive", "statement", "verification", "instruction set", "machine", "protocol", "cells")
    rows = [_archive_row(s) for s in submissions]
    title = tag("h2", "Archives", id="bundles-title")
    if not rows:
        return tag("section", title, tag("p", "No archive could be read."), id="bundles", aria_labelledby="bundles-title")
    return tag("section", title, table(heads, rows, "Archives", class_="plain"), id="bundles", aria_labelledby="bundles-title")


def _archive_row(s: Submission) -> Html:
    runs = list(runs_of(s))
    places = sorted({run.place for run in runs})
    told = [
        tag("td", tag("a", s.file, href=f"bundles/{s.page}.html")),
        tag("td", tag("bdi", s.statement or "none"), class_="statement"),
        tag("td", state_text(s.verdict), class_="state"),
        tag("td", ", ".join(dict.fromkeys(p.instruction_set for p in places))),
        tag("td", "; ".join(dict.fromkeys(run.machine.text for run in runs))),
        tag("td", "; ".join(dict.fromkeys(p.protocol for p in places))),
        tag("td", f"{len(s.rows.cells):,}", class_="number"),
    ]
    return tag("tr", told, data_file=s.file)


def _left_out(left_out: list[LeftOut]) -> Html | None:
    if not left_out:
        return None
    rows = [tag("tr", tag("td", tag("bdi", one.file)), tag("td", one.reason)) for one in left_out]
    body = table(("file", "why it is on no page"), rows, "Files that are left out", class_="plain")
    return tag("section", tag("h2", "Left out", id="left-out-title"), body, id="left-out", aria_labelledby="left-out-title")


def _dialog() -> Html:
    close = tag("p", tag("button", "Close", type="button", id="dialog-close"))
    return tag("dialog", tag("h2", "Where this number comes from", id="dialog-title", tabindex="-1"), tag("div", id="dialog-text"), close,
               id="dialog", aria_labelledby="dialog-title")  # fmt: skip
