"""The tables of peers in docs/, made from rows: `python -m attnpeers.documents` writes them anew.

A document holds `<!-- scripts/peers --table ROWS.jsonl --markdown … -->`, the table, and
`<!-- end of table -->`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from .__main__ import main
from .install import ROOT

PLACE = re.compile(r"(<!-- scripts/peers (.*?) -->\n\n)(.*?)(\n\n<!-- end of table -->)", re.S)


def printed(command: str) -> str:
    """What scripts/peers prints with these arguments, paths from the repository's root."""
    words = [str(ROOT / word) if word.endswith(".jsonl") else word for word in shlex.split(command)]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(words)
    return out.getvalue().strip()


def renewed(text: str, table: Callable[[str], str] = printed) -> str:
    """The document with each table as its command prints it now."""
    return PLACE.sub(lambda found: found[1] + table(found[2]) + found[4], text)


def commands(text: str) -> list[str]:
    return [found[2] for found in PLACE.finditer(text)]


def documents() -> list[Path]:
    every = sorted((ROOT / "docs").glob("*.md"))
    return [path for path in every if commands(path.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    for path in documents():
        before = path.read_text(encoding="utf-8")
        path.write_text(renewed(before), encoding="utf-8")
        print(os.path.relpath(path))
