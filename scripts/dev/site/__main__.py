"""python -m dev.site ROOT FOLDER: writes mkdocs.yml and the pages that it builds a site of into FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

from attnbench.plots.rows.read import read_rows
from attnbench.reports.document import document
from attnbench.reports.peers import read_peers

from .gather import gathered

# Of one program and machine, and no point twice: one series a variant.
ROWS = ("results/reference/standard.jsonl", "results/reference/captured.jsonl")
PEERS = "results/reference/peers.jsonl"


def main(root: Path, folder: Path) -> int:
    pages = folder / "pages"
    settings = gathered(root, pages)
    text = document(read_rows([root / rows for rows in ROWS]), [read_peers(root / PEERS)])
    (pages / "report.html").write_text(text, encoding="utf-8")
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
