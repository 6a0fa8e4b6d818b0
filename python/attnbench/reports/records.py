"""What has no number and why, times measured on a disturbed machine, and where the rows are from."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from attnbench.plots.layout.caption import NOISE, machine_words, machines, provenance, tool_words

from .book import Book
from .peers import PeersFile
from .section import Json, section, table

NO_NUMBER = (
    ("status", "text"),
    ("measure", "text"),
    ("variant", "series"),
    ("task", "text"),
    ("length", "number"),
    ("reason", "text"),
    ("cells", "cells"),
)
NOISY = (
    ("variant", "series"),
    ("length", "number"),
    ("why", "text"),
    ("measure", "text"),
    ("cells", "cells"),
)
RUNS = (
    ("file", "text"),
    ("run", "text"),
    ("machine", "text"),
    ("program", "text"),
    ("compiler", "text"),
    ("command", "text"),
)


def missing(book: Book) -> Json | None:
    cells = [c for c in book.rows.cells if not c.ok]
    if not cells:
        return None
    rows = [
        [c.status, c.measure, book.series_of(c), c.task or "", c.length, c.reason or "", book.cells([c])]
        for c in sorted(cells, key=lambda c: c.status == "skipped")
    ]
    return section(
        "missing",
        "Failures and skips",
        "Cells without a number. A skipped cell could not have run; the others failed.",
        [],
        table("no-number", "Cells without a number", NO_NUMBER, rows),
    )


def noisy(book: Book) -> Json | None:
    cells = [c for c in book.rows.cells if c.ok and c.noisy]
    if not cells:
        return None
    rows = [
        [book.series_of(c), c.length, "; ".join(NOISE.get(n, n) for n in c.noisy), c.measure, book.cells([c])]
        for c in cells
    ]
    return section(
        "noisy",
        "Noise of the machine",
        "Cells whose times were measured while something disturbed the machine; do not build on a "
        "small difference between them.",
        [],
        table("noisy-cells", "Disturbed cells", NOISY, rows),
    )


def sources(book: Book, others: Sequence[PeersFile] = ()) -> Json:
    rows = book.rows
    lead = "Rows of scripts/peers; each run's command measures them again."
    if rows.runs:
        every = "The table below holds every row; the command of a row measures it again."
        lead = f"{provenance(rows)} {every}"
        if (several := machines(rows)) != "one machine":
            lead = f"Do not compare times across {several}. {lead}"
    told = [
        [file.name, head["run"], *_environment(head.get("environment") or {}), _command(head)]
        for file, head in zip(rows.sources, rows.runs, strict=True)
    ]
    told += [
        [other.path.name, head["run"], *_environment(head["environment"]), shlex.join(head["argv"])]
        for other in others
        for head in other.runs
    ]
    return section("sources", "Provenance", lead, [], table("runs", "Runs", RUNS, told))


def _environment(env: dict[str, Any]) -> tuple[str, str, str]:
    built = " ".join(str(env.get(k) or "") for k in ("compiler", "build_type")).strip()
    return machine_words(env), tool_words(env), built


def _command(head: dict[str, Any]) -> str:
    words = [str(w) for w in head.get("argv") or []]
    words = words[1:] if words[:1] == ["attnbench"] else words
    words = words[1:] if words[:1] == ["run"] else words
    return shlex.join(["attnbench", "run", *words])

