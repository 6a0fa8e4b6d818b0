"""attnplot plot [ROWS...] [-o DIR]; exit 0 drawn, 2 wrong usage or rows, 4 nothing to draw,
6 a file that cannot be read or written."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from .rows import RowsError, UnreadableError, read_rows

ROOT = Path(__file__).resolve().parents[2]


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        stop(2, message)


def stop(code: int, message: str) -> NoReturn:
    print(f"plot: {message}", file=sys.stderr)
    raise SystemExit(code)


def newest_rows() -> list[Path]:
    """The rows file written last in ./results or in those of the repository about us; it is named,
    since nobody chose it."""
    here = Path.cwd()
    folders = dict.fromkeys(f / "results" for f in (here, repository(here)) if f)
    found = {f.resolve() for folder in folders for f in folder.glob("*.jsonl")}
    if not found:
        where = " or ".join(map(str, folders))
        stop(2, f"name a rows file: there is none in {where}; 'scripts/bench' makes one")
    newest = max(found, key=lambda f: (f.stat().st_mtime, f.name))
    print(f"plot: draws {newest}, the newest rows", file=sys.stderr)
    return [newest]


def repository(folder: Path) -> Path | None:
    """The one that `folder` belongs to; this program's own also without version control."""
    return next((f for f in (folder, *folder.parents) if f == ROOT or (f / ".git").exists()), None)


def checked_folder(folder: Path) -> Path:
    """The output folder, made and proved writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        stop(6, f"{folder}: cannot be written: {error.strerror}")
    return folder


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["report"]:
        stop(2, "'report' is not in this version; 'plot' draws the pictures")
    parser = Parser(
        prog="scripts/bench plot",
        description="Draws rows as PNG and SVG, with the plotted data as CSV. "
        "Prints the paths of the files written.",
    )
    parser.add_argument("verb", choices=["plot"], help=argparse.SUPPRESS)
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
    files = given.rows or newest_rows()
    try:
        rows = read_rows(files, ROOT / "results" / "schema.json")
    except UnreadableError as error:
        stop(6, str(error))
    except RowsError as error:
        stop(2, str(error))
    if not any(cell.status != "skipped" for cell in rows.cells):
        stop(4, f"{', '.join(map(str, files))}: nothing to draw, there is no cell that ran")
    folder = checked_folder(given.output or files[0].with_name(f"{files[0].stem}-plots"))

    from .gallery import (
        draw_all,
    )  # matplotlib takes most of a second to load: only once it is needed
    from .page import save

    try:
        written = save(draw_all(rows), folder)
    except OSError as error:
        stop(6, f"{folder}: cannot be written: {error.strerror}")
    try:
        print("\n".join(map(str, written)), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
