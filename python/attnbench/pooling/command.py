"""attnbench pool ROWS ROWS... : what several machines say together. Exit 0 told, 2 wrong usage or rows, 4 nothing that machines share, 6 a file that
cannot be read."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from ..plots.command import Parser
from ..plots.rows.read import PYTHON
from .answer import MEASURES, Answer, answer, chosen
from .machines import Fleet, fleet_of
from .text import as_csv, as_json, as_markdown, as_text, sections, shared_lines

FORMATS = ("text", "json", "csv", "markdown")


def main(words: list[str]) -> int:
    parser = Parser(
        "pool",
        "Tells what rows of several machines say together: each variant's ratio to exact attention on the same machine, pooled by random effects; "
        "how far machines differ; on how many of them it holds. Absolute times are never mixed.",
    )
    parser.add_argument("rows", nargs="+", type=Path, metavar="ROWS", help="rows files of any number of machines; those of one machine count as one")
    parser.add_argument("-v", "--variant", action="append", default=[], metavar="NAME", help="these alone: linear, or truncated[window=16]")
    parser.add_argument("--measure", metavar="NAME", help="speed (with crossings), memory, accuracy or fidelity; default: all")
    parser.add_argument("--format", default="text", metavar="NAME", help="text, json, csv or markdown; default: text")
    given = parser.parse_args(words)
    if given.measure not in (None, *MEASURES):
        parser.stop(2, f"--measure '{given.measure}' is none of {', '.join(MEASURES)}")
    if given.format not in FORMATS:
        parser.stop(2, f"--format '{given.format}' is none of {', '.join(FORMATS)}")
    files = list(dict.fromkeys(given.rows))
    rows = [parser.rows_of([file], "pool") for file in files]
    whole = fleet_of(rows)
    for name in given.variant:
        if not chosen(whole, [name]):
            known = sorted({m.cell.variant.removesuffix(PYTHON) for m in whole.cells})
            parser.stop(2, f"--variant '{name}' is in none of these rows; they have {', '.join(known)}")
    told = answer(whole, rows, measure=given.measure, variants=given.variant)
    _stop_without(parser, whole, told)
    return _printed(parser, _written(given.format, whole, told, is_whole=bool(given.variant)))


def _printed(parser: Parser, text: str) -> int:
    """Exit code 141 where the reader has left, 6 where the output takes no more."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more when it ends
        if isinstance(error, BrokenPipeError):
            return 141
        parser.stop(6, f"standard output: cannot be written: {error.strerror}")
    return 0


def _stop_without(parser: Parser, fleet: Fleet, told: Answer) -> None:
    """Where there is no figure, or no place that two machines share."""
    if not told.lines:
        parser.stop(4, "; ".join(["no variant has a figure beside exact attention's", *told.left_out]))
    if len(fleet.machines) > 1 and not any(len(line.machines) > 1 for line in told.lines):
        reasons = told.left_out or ["no variant has the same parameters and axes on two of them"]
        parser.stop(4, "; ".join([f"the {len(fleet.machines)} machines have nothing in common", *reasons]))


def _written(form: str, fleet: Fleet, told: Answer, *, is_whole: bool) -> str:
    """`is_whole`: with figures that one machine alone has, which fill pages and pool nothing; JSON and CSV hold them always."""
    if form == "json":
        return as_json(fleet, told.lines, told.notes)
    if form == "csv":
        return as_csv(told.lines)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines, alone = (list(told.lines), 0) if is_whole else shared_lines(told.lines)
    notes = told.notes
    if alone:
        notes = [f"not shown: {alone} figures of one machine alone; --format csv has them, and so has --variant NAME", *notes]
    if form == "markdown":
        return as_markdown(fleet, sections(lines, fleet), notes)
    wide = as_text(fleet, sections(lines, fleet), notes)
    tables = [line for line in wide.splitlines() if line.startswith("  ")]
    if width is None or all(len(line) <= width for line in tables):
        return wide
    return as_text(fleet, sections(lines, fleet, is_narrow=True), notes)
