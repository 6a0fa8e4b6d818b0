"""HTML whose texts cannot become markup: what is not made by `tag` is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Union


class Html(str):
    """Markup that `tag` or this package's templates made."""


Child = Union[str, Html, None, Iterable["Child"]]


def tag(name: str, *children: Child, **attributes: str | bool | None) -> Html:
    """An element. Attributes: `class_` and `for_` for Python's words, `_` for a hyphen; True stands without a value, None and
    False for no attribute."""
    told = "".join(_attribute(key.strip("_").replace("_", "-"), value) for key, value in attributes.items())
    inside = joined(children)
    return Html(f"<{name}{told}>" if name in ("br", "input") else f"<{name}{told}>{inside}</{name}>")


def joined(children: Child) -> Html:
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str):
        return Html(html.escape(children))
    return Html("".join(joined(child) for child in children))


def _attribute(name: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(value)}"'


def table(heads: Iterable[Child], rows: Iterable[Html], caption: str, **attributes: str | bool | None) -> Html:
    """A table that scrolls in a region of its own; `rows` are elements tr."""
    head = tag("thead", tag("tr", [tag("th", h, scope="col") for h in heads]))
    inside = tag("table", tag("caption", caption, class_="hidden"), head, tag("tbody", rows), **attributes)
    return tag("div", inside, class_="wide", role="region", aria_label=f"{caption}: table", tabindex="0")
