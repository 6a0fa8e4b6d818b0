"""What the verbs that read rows share: which files, read whole, and one line where that fails."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from .._place import COMMAND, IS_CLONE, ROOT, SCHEMA
from .rows.learned import published
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

    def stop(self, code: int, message: str) -> NoReturn:
        print(f"{self.verb}: {message}", file=sys.stderr)
        raise SystemExit(code)

    def rows_of(self, files: list[Path], done: str) -> Rows:
        """Reads the files, or stops: code 6 unreadable, 2 no rows file, 4 no cell that ran. `done`
        is what would be done to it."""
        try:
            rows = published(read_rows(files, SCHEMA))
        except UnreadableError as error:
            self.stop(6, str(error))
        except RowsError as error:
            self.stop(2, str(error))
        for words in rows.left_out:
            print(f"{self.verb}: scores left out: {words}", file=sys.stderr)
        if not any(cell.status != "skipped" for cell in (*rows.cells, *rows.unlearned)):
            named = ", ".join(map(str, files))
            self.stop(4, f"{named}: nothing to {done}, there is no cell that ran")
        return rows

    def newest_rows(self, does: str) -> list[Path]:
        """The rows file written last in ./results or in those of the repository about us; it is
        named, since nobody chose it."""
        here = Path.cwd()
        folders = dict.fromkeys(f / "results" for f in (here, repository(here)) if f)
        found = {f.resolve() for folder in folders for f in folder.glob("*.jsonl")}
        if not found:
            where = " or ".join(map(str, folders))
            self.stop(2, f"name a rows file: there is none in {where}; {MAKES_ONE} makes one")
        newest = max(found, key=lambda f: (f.stat().st_mtime, f.name))
        print(f"{self.verb}: {does} {newest}, the newest rows", file=sys.stderr)
        return [newest]


def repository(folder: Path) -> Path | None:
    """The one that `folder` belongs to; this program's own also without version control."""
    return next((f for f in (folder, *folder.parents) if f == ROOT or (f / ".git").exists()), None)
