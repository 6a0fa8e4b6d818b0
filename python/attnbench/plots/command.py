"""What the verbs that read rows share: which files, read whole, and one line where that fails."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from .._place import COMMAND, IS_CLONE, ROOT, SCHEMA
from .rows.learned import left_out_with_advice, published
from .rows.read import Rows, RowsError, UnreadableError, read_rows

MAKES_ONE = "'scripts/bench'" if IS_CLONE else "'attnbench run --profile quick -o results/quick.jsonl'"


class Parser(argparse.ArgumentParser):
    """Of `attnbench VERB`. Wrong usage ends the program with exit code 2 and one line."""

    def __init__(self, verb: str, description: str) -> None:
        super().__init__(prog=f"{COMMAND} {verb}", description=description)
        self.verb = verb
        self.add_argument("verb", choices=[verb], help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        self.stop(2, message)

    def say(self, message: str) -> None:
        print(f"{self.verb}: {message}", file=sys.stderr)

    def stop(self, code: int, message: str) -> NoReturn:
        self.say(message)
        raise SystemExit(code)

    def tell(self, text: str) -> None:
        """Prints a result, or stops with code 6; that nobody reads on, such as head, is no failure."""
        try:
            print(text, flush=True)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more when it ends
            if not isinstance(error, BrokenPipeError):
                self.stop(6, f"standard output: cannot be written: {error.strerror}")

    def write(self, path: Path, text: str) -> None:
        """Writes a file, whole or not at all, or stops with code 6."""
        try:
            write_whole(path, text)
        except OSError as error:
            self.stop(6, f"{path}: cannot be written: {error.strerror}")

    def rows_of(self, files: list[Path], done: str) -> Rows:
        """Reads the files, or stops: code 6 unreadable, 2 no rows file, 4 no cell that ran. `done`
        is what would be done to it."""
        rows = published(self.every_row(files))
        for words in left_out_with_advice(rows):
            self.say(f"scores left out: {words}")
        if not any(cell.status != "skipped" for cell in (*rows.cells, *rows.unlearned)):
            named = ", ".join(map(str, files))
            self.stop(4, f"{named}: nothing to {done}, there is no cell that ran")
        return rows

    def every_row(self, files: list[Path]) -> Rows:
        """Reads the files, scores that say nothing included, or stops: code 6 unreadable, 2 no rows file."""
        try:
            return read_rows(files, SCHEMA)
        except UnreadableError as error:
            self.stop(6, str(error))
        except RowsError as error:
            self.stop(2, str(error))

    @staticmethod
    def newest() -> Path | None:
        found = {f.resolve() for folder in results_folders() for f in folder.glob("*.jsonl")}
        return max(found, key=lambda f: (f.stat().st_mtime, f.name), default=None)

    def newest_rows(self, does: str, *, needs_one: bool = True) -> list[Path]:
        """The rows file written last in ./results or in those of the repository about us; it is
        named, since nobody chose it. Where there is none, stops, or returns none unless `needs_one`."""
        newest = self.newest()
        if newest is None and not needs_one:
            return []
        if newest is None:
            where = " or ".join(map(str, results_folders()))
            self.stop(2, f"name a rows file: there is none in {where}; {MAKES_ONE} makes one")
        self.say(f"{does} {newest}, the newest rows")
        return [newest]


def write_whole(path: Path, text: str) -> None:
    """Writes a file beside its place first, so that what interrupts leaves no half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def results_folders() -> list[Path]:
    here = Path.cwd()
    return list(dict.fromkeys(f / "results" for f in (here, repository(here)) if f))


def repository(folder: Path) -> Path | None:
    """The one that `folder` belongs to; this program's own also without version control."""
    return next((f for f in (folder, *folder.parents) if f == ROOT or (f / ".git").exists()), None)
