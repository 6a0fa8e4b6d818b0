"""What is known of each variant without measuring: what the program prints of it, and its source with the comment at its head."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnbench._place import program

LISTED = re.compile(r"^ +(\w+/(\w+))$", re.M)  # a word of the list in variants/CMakeLists.txt


class NoProgram(Exception):
    """Why the program cannot tell what the variants are, as one line."""


@dataclass(frozen=True)
class Variant:
    """A variant of the catalogue. `info` is what `attnbench info NAME --json` prints; `source` starts at the repository's root."""

    info: dict[str, Any]
    source: Path
    code: str

    @property
    def name(self) -> str:
        return str(self.info["name"])

    @property
    def traits(self) -> list[str]:
        """The names of the traits that it has, in the catalogue's order."""
        return [trait for trait, has in self.info["traits"].items() if has]

    @property
    def head(self) -> str:
        """The comment at the head of the source without the variant's name: what it computes, its equation, its paper and cost."""
        lines = []
        for line in self.code.splitlines():
            if not line.startswith("//"):
                break
            lines.append(line.removeprefix("//").strip())
        return " ".join(lines).removeprefix(f"{self.name}:").strip()


def variants(root: Path) -> list[Variant]:
    """All variants in the order of the catalogue."""
    sources = {name: Path("variants", f"{path}.cc") for path, name in LISTED.findall((root / "variants" / "CMakeLists.txt").read_text())}
    found = []
    for name in (listed["name"] for listed in asked("list", "variants")["variants"]):
        info = asked("info", name)
        if "checks" not in info or name not in sources:
            raise NoProgram(f"'{program()}' is of other sources than these, by what it tells of {name}: scripts/bench --version builds it anew")
        found.append(Variant(info, sources[name], (root / sources[name]).read_text(encoding="utf-8")))
    return found


def asked(*words: str) -> Any:
    """What the program prints with --json. Error where it is not built or is of another version."""
    path = program()
    if not path.exists():
        raise NoProgram(f"'{path}' is not built, and tells what the variants are: scripts/bench --version builds it")
    own = {name: value for name, value in os.environ.items() if name != "ATTNBENCH_PLUGINS"}  # whose variants are not of this tree
    done = subprocess.run([path, *words, "--json"], env=own, capture_output=True, text=True)
    if done.returncode:
        raise NoProgram(f"'{path} {' '.join(words)} --json' ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)
