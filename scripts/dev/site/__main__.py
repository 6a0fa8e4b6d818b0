"""python -m dev.site ROOT FOLDER writes mkdocs.yml and the pages that it builds a site of into FOLDER, with the report and a page
for each variant. The program must be built: it tells what the variants are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from attnbench.plots.rows.learned import EXACT, published
from attnbench.plots.rows.read import RowsError, read_rows
from attnbench.reports.document import document
from attnbench.reports.peers import read_peers

from . import catalogue, table, variant_page
from .gather import INDEX, VARIANTS, SiteError, gathered
from .measured import measured

# Of one program and machine, and no point twice: one series a variant.
ROWS = ("results/reference/standard.jsonl", "results/reference/captured.jsonl")
PEERS = "results/reference/peers.jsonl"
BACK = '<p><a href="index.html">The attnbench site</a></p>\n</header>'


def written(root: Path, folder: Path, rows: Sequence[str] = ROWS) -> None:
    """Fills `folder` with mkdocs.yml and the pages. `rows` are those of the report."""
    pages = folder / "pages"
    settings = gathered(root, pages)
    write_variants(root, pages)
    text = document(published(read_rows([root / name for name in rows])), [read_peers(root / PEERS)])
    (pages / "report.html").write_text(text.replace("</header>", BACK, 1), encoding="utf-8")
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")


def write_variants(root: Path, pages: Path) -> None:
    """The table of all variants, a page for each, and the sources that the pages link to."""
    variants, rows = catalogue.variants(root), measured(root)
    (exact,) = (v for v in variants if v.name == EXACT)
    (pages / VARIANTS).mkdir()
    for variant in variants:
        source = pages / variant.source
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(variant.code, encoding="utf-8")
        (pages / VARIANTS / f"{variant.name}.md").write_text(variant_page.page(variant, exact, rows), encoding="utf-8")
    (pages / VARIANTS / INDEX).write_text(table.page(variants, rows), encoding="utf-8")


def main(root: Path, folder: Path) -> int:
    try:
        written(root, folder)
    except (SiteError, catalogue.NoProgram, RowsError) as error:
        print(f"site: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
