"""The runs of a history: a folder of rows files, one a run, in the order of their times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnbench.plots.rows.read import Cell, RowsError, read_rows


@dataclass(frozen=True)
class Past:
    """One file: when and of which commit it is, and its cells."""

    file: Path
    head: dict[str, Any]
    cells: list[Cell]

    @property
    def commit(self) -> str:
        return str((self.head.get("environment") or {}).get("commit") or "unknown")[:9]


def read_history(folder: Path) -> list[Past]:
    """Returns the rows files of a folder in the order of their runs. Error where it holds fewer than
    two, or files of several runs."""
    files = sorted(folder.glob("*.jsonl"))
    if len(files) < 2:
        raise RowsError(f"--history {folder}: a history needs two rows files (*.jsonl), it has {len(files)}")
    out = []
    for file in files:
        rows = read_rows([file])
        if len(rows.runs) != 1:
            raise RowsError(f"--history {file}: holds {len(rows.runs)} runs; give a file for each")
        out.append(Past(file, rows.runs[0], rows.cells))
    return sorted(out, key=lambda p: (str(p.head.get("started_at") or ""), p.file.name))
