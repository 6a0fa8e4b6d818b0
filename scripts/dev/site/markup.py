"""Pieces of HTML. All text is escaped here."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import SHORT, marks_of

NONE = "\u2013"  # in the place of a number that is not known
ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


class Raw(str):
    """Text that is HTML already."""


def escaped(text: str) -> Raw:
    return text if isinstance(text, Raw) else Raw(html.escape(text))


def prose(text: str) -> Raw:
    """A sentence in which `x` is code and arXiv:N a link."""
    told = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
    return Raw(ARXIV.sub(r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', told))


def code(text: str) -> Raw:
    return Raw(f"<code>{html.escape(text)}</code>")


def link(target: str, text: str) -> Raw:
    return Raw(f'<a href="{html.escape(target)}">{escaped(text)}</a>')


def paragraph(*parts: str) -> Raw:
    return Raw(f"<p>{' '.join(map(escaped, parts))}</p>")


def listed(entries: Iterable[str]) -> Raw:
    return Raw("<ul>\n" + "".join(f"<li>{escaped(e)}</li>\n" for e in entries) + "</ul>")


def table(heads: Sequence[str], lines: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> Raw:
    """The first entry of a line heads it. Columns of `numbers` are aligned to the right; the last of the others is wide enough for prose."""
    right = set(numbers)

    def cell(i: int, text: str) -> str:
        look = ' class="number"' if i in right else ' class="prose"' if i == len(heads) - 1 else ""
        return f'<th scope="row">{escaped(text)}</th>' if i == 0 else f"<td{look}>{escaped(text)}</td>"

    head = "".join(f'<th scope="col"{" class=number" if i in right else ""}>{escaped(h)}</th>' for i, h in enumerate(heads))
    body = "".join(f"<tr>{''.join(cell(i, text) for i, text in enumerate(line))}</tr>\n" for line in lines)
    return Raw(f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>")


def commands(lines: Iterable[str]) -> Raw:
    return Raw(f"<pre><code>{html.escape(chr(10).join(lines))}\n</code></pre>")


def marks_key(cells: Iterable[Cell | None]) -> Raw:
    """What the marks behind the numbers of these cells say; empty where there are none."""
    marks = marks_of(cells)
    return Raw(f'<p class="key">{"; ".join(f"{m} {escaped(SHORT[m])}" for m in marks)}</p>' if marks else "")
