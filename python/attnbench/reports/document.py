"""The file: template, style, script, Plotly and the data, in one page that loads nothing."""

from __future__ import annotations

import base64
import gzip
import html
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from attnbench._place import COMMAND
from attnbench.plots.rows.read import Rows
from attnbench.plots.rows.style import Styles

from . import curves, exactness, parts, records, scores
from .advice import advice
from .book import Book
from .comparison import comparison, growth
from .curves import reach, state
from .decoding import decoding
from .equal_cost import equal_cost
from .first_table import first_table
from .history import Past, history
from .inline import in_script, script_hash
from .peers import PeersFile, peers
from .scores import Tasks
from .summary import summary

FOLDER = Path(__file__).parent
MOST_OF_FORM = 300_000  # bytes of the form's answers; more would make the page slow to open
SCRIPTS = ("units.js", "tables.js", "charts.js", "advice.js", "report.js")  # one script, in this order


def document(
    rows: Rows, others: Sequence[PeersFile] = (), past: Sequence[Past] = ()
) -> str:
    """`others`: rows of comparisons with other libraries; `past`: the runs of a history, in their order."""
    known = advice(rows)
    form = known if known and len(in_script(known)) <= MOST_OF_FORM else None
    rows = replace(rows, unlearned=())  # the page lists the cells of what is published
    book = Book(rows, Styles(rows))
    tasks = Tasks(book)
    found = [
        curves.speed(book),
        curves.memory(book),
        growth(book),
        parts.share_of_model(book),
        parts.parts_of_pass(book),
        exactness.fidelity(book),
        exactness.captured(book),
        reach(book),
        scores.accuracy(tasks),
        scores.by_distance(tasks),
        scores.by_slice(tasks),
        scores.by_length(tasks),
        scores.while_training(tasks),
        scores.against_effort(tasks),
        scores.carries_over(tasks),
        state(book),
        decoding(book),
        scores.tradeoff(tasks),
        equal_cost(book, tasks),
        comparison(book),
        history(past, book),
        peers(others),
        records.missing(book),
        records.noisy(book),
        records.checks(book),
        records.parity(book),
        records.sources(book, others),
    ]
    files = [f.name for f in (*rows.files, *(o.path for o in others))]
    data = {
        "files": [f.name for f in rows.sources],
        "sections": [s for s in found if s],
        "advice": form,
        "program": COMMAND,
        **book.told(),  # last: sections name further series
    }
    sentences = summary(book, tasks)
    if known and not form:
        sentences.append(f"Which variant to take: `{known['command']} --length N`; of so many rows the page has no form for it.")
    return _page(", ".join(files), first_table(book), sentences, data)


def _page(title: str, table: str, sentences: list[str], data: dict[str, Any]) -> str:
    packed, allowed = _plotly()
    script = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    script = f"(() => {{\n'use strict';\n{script}\n}})();\n"
    # Only these two scripts run, whatever the rows hold, and nothing is loaded from anywhere.
    policy = (
        "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src {script_hash(script)} {allowed}; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": html.escape(title),
        "style": (FOLDER / "report.css").read_text(encoding="utf-8"),
        "table": table,
        "summary": "\n".join(f"<li>{_marked(s)}</li>" for s in sentences),
        "data": in_script(data),
        "plotly": packed,
        "script": script,
    }
    template = (FOLDER / "report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _marked(sentence: str) -> str:
    """HTML of a sentence; what stands in backticks is a name."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(sentence))


@cache
def _plotly() -> tuple[str, str]:
    """Plotly's script from its Python package, packed, and its hash. Its 4.8 MB are 2.0 MB in the
    page, which unpacks them before it draws the first picture."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("plotly is not installed; pip install plotly", name="plotly")
    folder = Path(spec.submodule_search_locations[0], "package_data")
    script = (folder / "plotly.min.js").read_text(encoding="utf-8")
    return base64.b64encode(gzip.compress(script.encode(), 9, mtime=0)).decode(), script_hash(script)
