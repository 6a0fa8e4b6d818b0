"""attnreport report [ROWS...] [-o FILE.html]; exit 0 written, 2 wrong usage or rows, 4 nothing to
report, 6 a file that cannot be read or written."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from attnplot.command import Parser


def main(arguments: list[str]) -> int:
    parser = Parser(
        "report",
        "Writes rows as one HTML file that needs no network: a summary, pictures to explore, "
        "tables. Prints the path of the file.",
    )
    parser.add_argument(
        "rows",
        nargs="*",
        type=Path,
        metavar="ROWS",
        help="rows files, reported together as 'plot' draws them; default: the newest in results/",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE.html",
        help="the report; default: beside the first rows file, named <stem>-report.html",
    )
    given = parser.parse_args(arguments)
    output: Path | None = given.output
    if output is not None and output.suffix not in (".html", ".htm"):
        parser.stop(2, f"'{output}' is no name of a report; give one that ends in .html")
    files = given.rows or parser.newest_rows("reads")
    rows = parser.rows_of(files, "report")

    from .document import document  # matplotlib takes most of a second to load

    text = document(rows)
    output = output or files[0].with_name(f"{files[0].stem}-report.html")
    try:
        with contextlib.suppress(FileExistsError):  # no folder: writing says so
            output.parent.mkdir(parents=True, exist_ok=True)
        beside = output.with_name(f".{output.name}.{os.getpid()}")  # never half a report
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(output)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        parser.stop(6, f"{output}: cannot be written: {error.strerror}")
    try:
        print(output, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
