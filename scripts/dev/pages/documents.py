"""The tables of docs/ and results/, each made by the command that stands before it.

A document holds `<!-- COMMAND -->`, the table, and `<!-- end of table -->`. The command is
`scripts/peers --table ROWS.jsonl --markdown …` or a key of TABLES with what its function takes; paths start at the
repository's root. Tables of the catalogue need the program, built by preset native.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from attnbench._place import ROOT
from attnbench.peers.__main__ import main as peers
from attnbench.plots.rows.read import read_rows
from dev.overhead import table as overhead

from . import by_block, by_family, cached, captured, catalog, decode_choice, decode_tables, evicted, locality, orders, passes, prompted, published, ranks

TABLES: dict[str, Callable[..., str]] = {
    "shares": lambda rows: passes.shares(Path(rows)),
    "breakdown": lambda rows, length: passes.breakdown(Path(rows), int(length)),
    "crossings": lambda rows, length: passes.crossings(Path(rows), int(length)),
    "machine": lambda rows: passes.machine(Path(rows)),
    "floors": lambda rows, length: passes.floors(Path(rows), int(length)),
    "settings": lambda rows, length: passes.settings(Path(rows), int(length)),
    "growth": lambda rows, least: passes.growth(Path(rows), int(least)),
    "decoding": lambda rows: passes.decoding(Path(rows)),
    "overhead": lambda rows, kind: overhead.of_file(Path(rows), kind),
    "ranks": lambda *rows: ranks.table(*map(Path, rows)),
    "captured": lambda rows: captured.table(Path(rows)),
    "families": lambda: catalog.families(catalog.listed()),
    "variants": lambda: catalog.every(catalog.listed()),
    "by_family": lambda rows: by_family.table(Path(rows)),
    "by_block": lambda rows: by_block.table(Path(rows)),
    "learning": lambda rows: by_block.learning(Path(rows)),
    "orders": lambda rows: orders.orders(Path(rows)),
    "summary": lambda rows: captured.sentences(Path(rows)),
    "evicted": lambda rows: evicted.table(Path(rows)),
    "evicted_far": lambda rows: evicted.distances(Path(rows)),
    "evicted_prompts": lambda rows: prompted.table(Path(rows)),
    "locality": lambda sweep: locality.table(Path(sweep)),
    "published": lambda tables, *rows: published.table(Path(tables), *map(Path, rows)),
    "cache_scores": lambda rows: cached.table(Path(rows)),
    "decode_types": lambda rows: decode_tables.types(Path(rows)),
    "decode_errors": lambda rows: decode_tables.errors(Path(rows)),
    "decode_states": lambda rows, scores: decode_tables.states(Path(rows), Path(scores)),
    "decode_workloads": lambda rows: decode_tables.workloads(Path(rows)),
    "decode_packed": lambda rows: decode_tables.packings(Path(rows)),
    "decode_shapes": lambda rows: decode_tables.shapes(Path(rows)),
    "decode_choice": lambda rows, scores: decode_choice.sentences(Path(rows), Path(scores)),
    "decode_marks": lambda rows, scores: decode_choice.marks_told(Path(rows), Path(scores)),
    "decode_picture": lambda scores, drawn: decode_choice.picture(Path(scores), drawn),
    "sources": lambda tables: published.sources(Path(tables)),
}
PLACE = re.compile(
    rf"(<!-- ((?:scripts/peers|{'|'.join(TABLES)})(?: .*?)?) -->\n)((?:(?!<!-- ).)*)(<!-- end of table -->)", re.S
)


# Rows of variants whose default has changed since: the tables name what was measured.
FORMS = (("nsa", "compression", "mean"), ("dsa", "indexer", "per_head"), ("routing", "centroid_decay", "1.0"))


def printed(command: str) -> str:
    """What the command prints."""
    given = shlex.split(command)
    if missing := [word for word in given if word.endswith(".jsonl") and not (ROOT / word).exists()]:
        return f"Not measured yet: there is no {' and no '.join(f'`{word}`' for word in missing)}."
    words = [str(ROOT / word) if word.endswith((".jsonl", ".toml")) else word for word in given]
    if words[0] in TABLES:
        rows = [Path(word) for word in words[1:] if word.endswith(".jsonl") and words[0] != "overhead"]  # whose rows are others
        return with_forms(TABLES[words[0]](*words[1:]), rows)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        peers(words[1:])
    return out.getvalue().strip()


def with_forms(table: str, files: list[Path]) -> str:
    """The table with the names of FORMS, where the rows are of these: `nsa[compression=mean]` for `nsa`."""
    forms = [form for form in FORMS if f"`{form[0]}" in table]
    cells = read_rows(files).cells if files and forms else []
    for variant, name, value in forms:
        if any(cell.variant == variant and dict(cell.params).get(name) == value for cell in cells):
            table = re.sub(rf"`{variant}(?:\[([^`]*)\])?`", lambda found: _named(variant, found[1], f"{name}={value.removesuffix('.0')}"), table)
    return table


def _named(variant: str, others: str | None, form: str) -> str:
    told = [*(word for word in (others or "").split(",") if word and word != form), form]
    return f"`{variant}[{','.join(told)}]`"


def renewed(text: str, table: Callable[[str], str] = printed) -> str:
    """The document with each table as its command prints it now."""
    return PLACE.sub(lambda found: f"{found[1]}\n{table(found[2])}\n\n{found[4]}", text)


def commands(text: str) -> list[str]:
    return [found[2] for found in PLACE.finditer(text)]


def documents() -> list[Path]:
    """The pages that hold such tables."""
    every = [ROOT / "README.md", *(p for f in ("docs", "results") for p in (ROOT / f).glob("*.md"))]
    return sorted((p for p in every if commands(p.read_text(encoding="utf-8"))), key=lambda p: p.name)
