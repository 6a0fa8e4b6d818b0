"""Hooks of MkDocs, which it loads by their file: tables get a frame that scrolls by itself, and the index of the search is written.
Only the standard library: MkDocs runs in an environment of its own."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

Entry = list[str]  # title, address, what it is of, text
PATH = "look/search-index.js"
HEADINGS = ("h1", "h2", "h3")
INLINE = ("a", "b", "code", "em", "strong", "sub", "sup")
SPACE = re.compile(r"\s+")
entries: dict[str, list[Entry]] = {}  # by page, in the order of building


class Sections(HTMLParser):
    """The text of a page by its headings. Tables of `results` are numbers, and a source is long: their text is left out."""

    def __init__(self, html: str, without: tuple[str, ...]) -> None:
        super().__init__()
        self.found: list[tuple[str, str, list[str]]] = []  # anchor, title, text
        self.without, self.depth, self.heading = without, 0, False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HEADINGS:
            self.found.append((dict(attrs).get("id") or "", "", []))
            self.heading = True
        self.depth += tag in self.without

    def handle_endtag(self, tag: str) -> None:
        if tag in HEADINGS:
            self.heading = False
        self.depth -= tag in self.without
        if tag not in INLINE:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        if not self.found or self.depth:
            return
        anchor, title, text = self.found[-1]
        if self.heading:
            self.found[-1] = anchor, title + data, text
        else:
            text.append(data)


def on_pre_build(**_: Any) -> None:
    entries.clear()


def on_page_content(html: str, page: Any, **_: Any) -> str:
    source = page.file.src_uri
    of_variant = source.startswith("variants/") and not source.endswith("index.md")
    without = ("table", "details") if source.startswith(("results/", "variants/")) else ()
    sections = Sections(html, without).found
    if of_variant:  # one entry, found by all that the page says
        text = " ".join(f"{title} {''.join(own)}" for _, title, own in sections)
        entries[source] = [[sections[0][1], page.url, "variant", _spaced(text)]]
    else:
        entries[source] = [
            [_spaced(title), page.url + (f"#{anchor}" if i else ""), _of(sections[0][1], i), _spaced("".join(text))]
            for i, (anchor, title, text) in enumerate(sections)
        ]
    return html.replace("<table", '<div class="wide"><table').replace("</table>", "</table></div>")


def on_post_build(config: Any, **_: Any) -> None:
    told = [entry for source in sorted(entries) for entry in entries[source]]
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    site = Path(config["site_dir"])
    (site / PATH).write_text(f"window.siteIndex = {text};\n", encoding="utf-8")
    for name in ("sitemap.xml", "sitemap.xml.gz"):  # they hold the day of the build, and are of no use without an address
        (site / name).unlink(missing_ok=True)


def _of(page: str, index: int) -> str:
    return _spaced(page) if index else "page"


def _spaced(text: str) -> str:
    return SPACE.sub(" ", text).strip()
