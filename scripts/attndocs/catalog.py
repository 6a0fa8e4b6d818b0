"""Tables of all variants, of what `attnbench list variants --json` prints."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnpeers.install import ROOT
from attnplot.markdown import markdown

PROGRAM = ROOT / "build" / "native" / "attnbench"
ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
Variant = dict[str, Any]


def listed(program: Path = PROGRAM) -> list[Variant]:
    """The variants that the program has, by family."""
    done = subprocess.run([program, "list", "variants", "--json", "--year", "1900:2999"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["variants"]


def families(variants: Iterable[Variant]) -> str:
    """A line a family: the names of its variants, each a link to its paper."""
    names: dict[str, list[str]] = {}
    for variant in variants:
        names.setdefault(variant["family"], []).append(_linked(variant))
    return markdown(["family", "variants"], [[family, ", ".join(own)] for family, own in names.items()])


def every(variants: Iterable[Variant]) -> str:
    """A line a variant: what it computes, its paper, what it can, and its cost."""
    lines, family = [], None
    for v in variants:
        traits = v["traits"]
        can = [word for word, trait in (("causal", "causal"), ("cross", "cross"), ("decodes", "decode")) if traits[trait]]
        lines.append([
            "" if v["family"] == family else v["family"],
            f"`{v['name']}`",
            v["summary"],
            ARXIV.sub(r"[arXiv:\1](https://arxiv.org/abs/\1)", v["paper"]),
            ", ".join(can),
            v["cost_formula"],
        ])
        family = v["family"]
    return markdown(["family", "name", "what it computes", "source", "can be", "cost"], lines)


def _linked(variant: Variant) -> str:
    name, found = f"`{variant['name']}`", ARXIV.search(variant["paper"])
    return f"[{name}](https://arxiv.org/abs/{found[1]})" if found else name
