"""Pairs of times that a comparison leaves undecided: their cells, rows files of these cells alone, and joined rows of them put in place."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from .programs import Program

COMPARED = (0, 3)  # exit codes of a comparison that had pairs


def undecided_cells(reader: Program, base: Path, head: Path, options: list[str]) -> tuple[set[str], set[str]]:
    """The ids of the speed cells of both files whose pair is undecided."""
    command = [reader.path, "compare", base, head, *options, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in COMPARED:  # the report that follows says why
        return set(), set()
    pairs = {_what(pair) for pair in json.loads(done.stdout)["pairs"] if pair["measure"] == "speed" and pair["verdict"] == "undecided"}

    def cells(rows: Path) -> set[str]:
        lines = map(json.loads, rows.read_text(encoding="utf-8").splitlines())
        return {line["cell"] for line in lines if line.get("measure") == "speed" and _what(line) in pairs}

    return cells(base), cells(head)


def _what(measured: dict) -> str:
    return json.dumps([measured["variant"], measured["axes"]], sort_keys=True)


def without(cells: set[str], rows: Path, output: Path) -> None:
    """A file that `run` goes on with: it measures these cells and no others."""
    _write(output, [line for line in _lines(rows) if _cell(line) not in cells])


def alone(cells: set[str], rows: Path, output: Path) -> None:
    _write(output, [line for line in _lines(rows) if _cell(line) in cells or _cell(line) is None])


def put_in_place(more: Path, rows: Path) -> None:
    """The rows of `more` in place of those of their cells in `rows`."""
    newer = {_cell(line): line for line in _lines(more)}
    _write(rows, [line if _cell(line) is None else newer.get(_cell(line), line) for line in _lines(rows)])


def _cell(line: str) -> str | None:
    """The id of the row's cell; None of a run line."""
    return json.loads(line).get("cell")


def _lines(rows: Path) -> list[str]:
    return rows.read_text(encoding="utf-8").splitlines()


def _write(rows: Path, lines: list[str]) -> None:
    rows.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
