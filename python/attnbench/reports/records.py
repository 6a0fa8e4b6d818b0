"""What has no number and why, times measured on a disturbed machine, and where the rows are from;
what the variants were given (the parity ledger), and what the contract checks say of the rows."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from attnbench.plots.layout.caption import NOISE, machine_words, machines, protocol_words, provenance, tool_words
from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import contract, mode_of, scope_of, scope_text, shape_text

from .book import Book, Json, rounded, section, table
from .peers import PeersFile

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
    lead = "Rows of a comparison with other libraries; each run's command measures them again."
    if rows.runs:
        but = " except those of scores that are left out" if rows.left_out else ""
        every = f"The table below holds every row{but}; the command of a row measures it again."
        lead = f"{provenance(rows)} {every}"
        if (several := machines(rows)) != "one machine":
            lead = f"Do not compare times across {several}. {lead}"
    told = [
        [file.name, head["run"], *_origin(head), _command(head)]
        for file, head in zip(rows.sources, rows.runs, strict=True)
    ]
    told += [
        [other.path.name, head["run"], *_origin(head), shlex.join(head["argv"])]
        for other in others
        for head in other.runs
    ]
    return section("sources", "Provenance", lead, [], table("runs", "Runs", RUNS, told))


def _origin(head: dict[str, Any]) -> tuple[str, str, str]:
    """Machine, program and compiler of a run."""
    env = head.get("environment") or {}
    built = " ".join(str(env.get(k) or "") for k in ("compiler", "build_type")).strip()
    by = protocol_words(head)
    return machine_words(env), tool_words(env) + (f", protocol {by}" if by else ""), built


def _command(head: dict[str, Any]) -> str:
    words = [str(w) for w in head.get("argv") or []]
    words = words[1:] if words[:1] == ["attnbench"] else words
    words = words[1:] if words[:1] == ["run"] else words
    return shlex.join(["attnbench", "run", *words])


LEDGER = (
    ("measure", "text"),
    ("of", "text"),
    ("variant", "series"),
    ("parameters", "number"),
    ("FLOPs, least", "number"),
    ("FLOPs, most", "number"),
    ("counted by", "text"),
    ("precision", "text"),
    ("threads", "text"),
    ("kernel", "text"),
    ("cells", "cells"),
)
CHECKS = (
    ("variant", "series"),
    ("contract checks", "text"),
    ("mathematics", "text"),
    ("measured answers", "text"),
    ("cells", "cells"),
)


def parity(book: Book) -> Json | None:
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in book.rows.cells:
        if cell.ok and cell.ledger:
            groups.setdefault((cell.measure, _setting(cell), book.series_of(cell)), []).append(cell)
    if not groups:
        return None
    return section(
        "parity",
        "Parity ledger",
        "What each variant was given: learned numbers, FLOPs of a pass (of training: of an example), "
        "precision, threads and instruction set. Where two variants differ here, their figures differ "
        "for that reason too.",
        [],
        table("ledger", "Parity ledger", LEDGER, (_ledger_line(key, own, book) for key, own in groups.items())),
        note="FLOPs range over the lengths. They follow from the declared formula, or are counted where a "
        "variant declares none.",
    )


def _setting(cell: Cell) -> str:
    if cell.task:
        return f"{cell.task}, {contract(cell)}"
    words = (scope_text(scope_of(cell)), mode_of(cell), contract(cell), shape_text(cell))
    return ", ".join(filter(None, words))


def _ledger_line(key: tuple[Any, ...], cells: list[Cell], book: Book) -> list[Any]:
    flops = _numbers(c.ledger.get("flops") for c in cells)
    parameters = _numbers(c.ledger.get("parameters") for c in cells)
    loops = {_kernel(c.ledger) for c in cells}
    return [
        *key,
        max(parameters, default=None),
        rounded(min(flops, default=None)),
        rounded(max(flops, default=None)),
        _told("measurement" if c.ledger.get("cost") == "measured" else "formula" for c in cells),
        _told(c.ledger.get("precision") for c in cells),
        _told(c.ledger.get("threads") for c in cells),
        ", ".join(sorted(loops)),
        book.cells(cells),
    ]


def _kernel(ledger: dict[str, Any]) -> str:
    kernel, loops = str(ledger.get("kernel") or ""), str(ledger.get("loops") or "")
    return kernel if loops in ("", kernel) else f"{kernel} (rest: {loops})"


def _numbers(values: Iterable[Any]) -> list[float]:
    return [v for v in values if v is not None]


def _told(values: Iterable[Any]) -> str:
    return ", ".join(sorted({"unknown" if v is None else str(v) for v in values}))


def checks(book: Book) -> Json | None:
    """What the rows say of their checks: a cell whose variant or task has a red check has no figure."""
    by_series: dict[int, list[Cell]] = {}
    for cell in book.rows.cells:
        if cell.ok or cell.is_gated:
            by_series.setdefault(book.series_of(cell), []).append(cell)
    known = [c for cells in by_series.values() for c in cells if c.is_referenced is not None]
    if not known:
        return None
    rows = [[s, _verdict(cells), _mathematics(cells), _answers(cells), book.cells(cells)] for s, cells in by_series.items()]
    red = sum(any(c.is_gated for c in cells) for cells in by_series.values())
    lead = (
        f"A contract check is red for {red} of {len(rows)} variants: their cells were not measured."
        if red
        else "The contract checks of every variant and task in these rows were green."
    )
    return section(
        "checks",
        "Contract checks",
        f"{lead} Checks cover masks, padding, gradients, determinism and declared traits; a variant that "
        "declares its mathematics is also compared with it. 'attnbench check NAME' runs them again. Measured answers "
        "are those of the timed passes, at their own lengths.",
        [],
        table("contract", "Contract checks", CHECKS, rows),
    )


def _verdict(cells: list[Cell]) -> str:
    red = sum(c.is_gated for c in cells)
    return f"red in {red} of {len(cells)} cells" if red else "green"


def _answers(cells: list[Cell]) -> str:
    """How the answers behind times and memory were compared, and the error nearest to its bound."""
    timed = [c for c in cells if c.ok and c.measure in ("speed", "memory")]
    if not timed:
        return ""
    found = [c.verified for c in timed if c.verified]
    means = {by: sum(v["by"] == by for v in found) for by in ("reference", "pieces", "identities")}
    told = [f"{count} by {by}" for by, count in means.items() if count]
    told += [f"{len(timed) - len(found)} not compared"] if len(found) < len(timed) else []
    shares = [v["error"] / v["bound"] for v in found if v["bound"]]
    return ", ".join(told) + (f"; largest error {max(shares):.2g} of its bound" if shares else "")


def _mathematics(cells: list[Cell]) -> str:
    said = {c.is_referenced for c in cells} - {None}
    if said == {True}:
        return "compared with the declared reference"
    return "no reference is declared" if said else "older rows do not say"
