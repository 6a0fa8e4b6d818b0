"""python -m attnbench.reports report [ROWS...] [-o FILE.html]; exit 0 written, 2 wrong usage or rows, 4 nothing to
report, 6 a file that cannot be read or written."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from attnbench.plots.command import Parser
from attnbench.plots.rows.read import Rows, RowsError, UnreadableError

from .history import Past, read_history
from .peers import PeersFile, is_peers_file, read_peers


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
        help="rows files, reported together as 'plot' draws them, and rows of comparisons with other libraries; "
        "default: the newest in results/",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE.html",
        help="the report; default: beside the first rows file, named <stem>-report.html",
    )
    parser.add_argument(
        "--history",
        type=Path,
        metavar="FOLDER",
        help="rows files of one sweep, one a commit: a line for each cell over them, with the steps "
        "marked; without ROWS the newest of them is reported",
    )
    given = parser.parse_args(arguments)
    output: Path | None = given.output
    if output is not None and output.suffix not in (".html", ".htm"):
        parser.stop(2, f"'{output}' is no name of a report; give one that ends in .html")
    past = _history(given.history, parser)
    files = given.rows or [p.file for p in past[-1:]] or parser.newest_rows("reads")
    others = [_peers(file, parser) for file in files if is_peers_file(file)]
    own = [file for file in files if file not in {other.path for other in others}]
    rows = parser.rows_of(own, "report") if own else Rows((), [], [])

    from .document import document  # matplotlib takes most of a second to load

    text = document(rows, others, past)
    output = output or files[0].with_name(f"{files[0].stem}-report.html")
    try:
        with contextlib.suppress(FileExistsError):  # no folder: writing says so
            output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.stop(6, f"{output}: cannot be written: {error.strerror}")
    parser.write(output, text)
    parser.tell(str(output))
    return 0


def _history(folder: Path | None, parser: Parser) -> list[Past]:
    if folder is None:
        return []
    if not folder.is_dir():
        parser.stop(2, f"--history {folder}: is no folder of rows files")
    try:
        return read_history(folder)
    except UnreadableError as error:
        parser.stop(6, str(error))
    except RowsError as error:
        parser.stop(2, str(error))


def _peers(file: Path, parser: Parser) -> PeersFile:
    try:
        return read_peers(file)
    except RowsError as error:
        parser.stop(2, str(error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
