"""Tables of all variants, of what `attnbench list variants --json` prints."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from typing import Any

from attnbench._place import BUILT
from attnbench.plots.rows.units import markdown

ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
CITED = re.compile(r"([^;,\s][^;,]*), arXiv:(\d{4}\.\d{4,5})")  # authors and year before the number
Variant = dict[str, Any]


def listed() -> list[Variant]:
    """The variants that the program has, in the order of the catalogue."""
    done = subprocess.run([BUILT, "list", "variants", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["variants"]


def families(variants: Iterable[Variant]) -> str:
    """A line a family: the names of its variants, each a link to its paper."""
    lines = [[family, ", ".join(map(_linked, own))] for family, own in _by_family(variants).items()]
    return markdown(["family", "variants"], lines)


def every(variants: Iterable[Variant]) -> str:
    """A line a variant: what it computes, its paper, what it can, and its cost."""
    lines = [
        ["" if i else family, *_told(variant)]
        for family, own in _by_family(variants).items()
        for i, variant in enumerate(own)
    ]
    return markdown(["family", "name", "what it computes", "source", "can be", "FLOPs, and memory"], lines)


def _by_family(variants: Iterable[Variant]) -> dict[str, list[Variant]]:
    found: dict[str, list[Variant]] = {}
    for variant in variants:
        found.setdefault(variant["family"], []).append(variant)
    return found


def _told(variant: Variant) -> list[str]:
    abilities = (("causal", "causal"), ("cross", "cross"), ("decodes", "decode"))
    can = [word for word, trait in abilities if variant["traits"][trait]]
    paper = CITED.sub(r"[\1](https://arxiv.org/abs/\2)", variant["paper"])
    paper = ARXIV.sub(r"[arXiv:\1](https://arxiv.org/abs/\1)", paper)
    return [f"`{variant['name']}`", variant["summary"], paper, ", ".join(can), variant["cost_formula"].replace(" FLOPs", "")]


def _linked(variant: Variant) -> str:
    name, found = f"`{variant['name']}`", ARXIV.search(variant["paper"])
    return f"[{name}](https://arxiv.org/abs/{found[1]})" if found else name
