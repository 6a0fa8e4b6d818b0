"""Runs the sweeps and programs of entries into rows files.

Rows are written into NAME.part.jsonl, which the next call goes on with, and get their name when
the sweep has ended: rows of that name are whole, and are kept.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

from attnbench.plots.rows.read import parse_object

from .entries import ROOT, Entry, Measurement
from .fault import IO, ReproduceError
from .product import Product

SCHEMA = "attnbench-reproduction/1"  # of the lines that programs write


def say(words: str) -> None:
    print(f"reproduce: {words}", file=sys.stderr, flush=True)


def measure(
    entry: Entry, product: Product, folder: Path, *, small: bool = False, force: bool = False
) -> int:
    """Makes the rows of an entry in `folder`; returns 1 where a cell failed, else 0."""
    worst = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in entry.measurements:
            rows = one.rows(folder)
            if rows.exists() and not force:
                check_source(entry, one, folder)
                say(f"{entry.id}: {rows.name} is there and is kept; --force measures it again")
                continue
            part = rows.with_suffix(".part.jsonl")
            say(f"{entry.id}: {one.source.name}")
            if one.is_program:
                _run_program(one, product, part, small)
            else:
                worst = max(worst, _run_sweep(entry, one, product, part, small, force))
            part.replace(rows)
    except OSError as error:
        raise ReproduceError(f"'{error.filename}': {error.strerror}", IO) from None
    return worst


def check_source(entry: Entry, one: Measurement, folder: Path) -> None:
    """Rows are of the sweep file as it is now; of a program only that it wrote them."""
    rows = one.rows(folder)
    with rows.open("rb") as file:
        head = _object(file.readline(), rows)
    now = one.source.read_text(encoding="utf-8")
    if one.is_program:
        told = head.get("schema") == SCHEMA
    else:
        told = (head.get("config") or {}).get("sweep_file") == now
    if not told:
        raise ReproduceError(f"{_short(rows)} is of another {one.source.name}; "
                             f"scripts/reproduce run {entry.id} --force measures it anew")  # fmt: skip


def _run_sweep(
    entry: Entry, one: Measurement, product: Product, part: Path, small: bool, force: bool
) -> int:
    words = [_short(one.source), *one.words(small)]
    words += ["-o", _short(part), "--yes", *(["--force"] if force else [])]
    return product.sweep(words, f"{entry.id}: {one.source.name}")


def _run_program(one: Measurement, product: Product, part: Path, small: bool) -> None:
    module = load(one.source)
    head = {
        "schema": SCHEMA,
        "kind": "run",
        "program": one.source.name,
        "small": small,
        "environment": product.environment(),
        "started_at": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    lines = [head]
    for record in module.measure(product, small):
        lines.append({"schema": SCHEMA, "kind": "record", **record})
    text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
    part.write_text(text, encoding="utf-8")


def load(path: Path) -> ModuleType:
    """The program or verdict of an entry, as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_records(rows: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The head and the records of the rows of a program."""
    lines = rows.read_bytes().removesuffix(b"\n").split(b"\n")
    head, *records = [_object(line, rows) for line in lines]
    for line in (head, *records):
        if line.get("schema") != SCHEMA:
            raise ReproduceError(f"{_short(rows)}: schema is {line.get('schema')!r}, not {SCHEMA!r}")
    return head, records


def _object(line: bytes, rows: Path) -> dict[str, Any]:
    try:
        return parse_object(line)
    except ValueError as error:
        raise ReproduceError(f"{_short(rows)}: {error}") from None


def _short(path: Path) -> str:
    """Relative to the repository, so that rows name no folder of this machine."""
    return os.path.relpath(path, ROOT) if path.is_relative_to(ROOT) else str(path)
