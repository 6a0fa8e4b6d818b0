"""attnplot plot [ROWS...] [-o DIR]; exit 0 drawn, 2 wrong usage or rows, 4 nothing to draw,
6 a file that cannot be read or written."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from .command import Parser


def checked_folder(folder: Path, parser: Parser) -> Path:
    """The output folder, made and proved writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        parser.stop(6, f"{folder}: cannot be written: {error.strerror}")
    return folder


def main(arguments: list[str]) -> int:
    parser = Parser(
        "plot",
        "Draws rows as PNG and SVG, with the plotted data as CSV. "
        "Prints the paths of the files written.",
    )
    parser.add_argument(
        "rows",
        nargs="*",
        type=Path,
        metavar="ROWS",
        help="rows files, drawn together; default: the newest in results/ here or of the "
        "repository about this folder. Of a cell that several files hold, measured by the same "
        "program on the same machine, the later file's counts; "
        "if anything but the time differs, each file's are drawn, labelled (file name)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="folder of the pictures; default: beside the first rows file, named <stem>-plots",
    )
    given = parser.parse_args(arguments)
    files = given.rows or parser.newest_rows("draws")
    rows = parser.rows_of(files, "draw")
    folder = checked_folder(
        given.output or files[0].with_name(f"{files[0].stem}-plots"), parser
    )

    from .gallery import (
        draw_all,
    )  # matplotlib takes most of a second to load: only once it is needed
    from .page import save

    try:
        written = save(draw_all(rows), folder)
    except OSError as error:
        parser.stop(6, f"{folder}: cannot be written: {error.strerror}")
    try:
        print("\n".join(map(str, written)), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
