"""The steps of a Containerfile, run in a chroot in the place of a container."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from .root import Root, Step

SUITES = {"debian:12": "bookworm", "debian:13": "trixie"}
KNOWN = ("FROM", "WORKDIR", "COPY", "RUN", "ENTRYPOINT")


class NotUnderstood(Exception):
    """A line that a chroot cannot stand in for; the message has its number."""


@dataclass(frozen=True)
class Recipe:
    suite: str
    steps: tuple[tuple[str, str, str], ...]  # COPY or RUN, what, the folder where
    entry: tuple[str, ...]
    folder: str  # where the entry point starts


def read(path: Path) -> Recipe:
    """Of the few instructions that the Containerfile has: others are an error."""
    suite, folder, entry = "", "/", ()
    steps: list[tuple[str, str, str]] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word not in KNOWN or rest.endswith("\\"):
            raise NotUnderstood(f"{path.name}:{number}: '{line}'; expected one line of {', '.join(KNOWN)}")
        if word == "FROM":
            if rest not in SUITES:
                raise NotUnderstood(f"{path.name}:{number}: image '{rest}'; expected {' or '.join(SUITES)}")
            suite = SUITES[rest]
        elif word == "WORKDIR":
            folder = rest
        elif word == "COPY":
            if rest != ". .":
                raise NotUnderstood(f"{path.name}:{number}: '{line}'; expected COPY . .")
            steps.append((word, rest, folder))
        elif word == "RUN":
            steps.append((word, rest, folder))
        else:
            entry = tuple(json.loads(rest))
    if not suite or not entry:
        raise NotUnderstood(f"{path.name}: no FROM or no ENTRYPOINT")
    return Recipe(suite, tuple(steps), entry, folder)


def build(recipe: Recipe, repository: Path, root: Root) -> list[Step]:
    """Ends at the first step that fails."""
    done: list[Step] = []
    for word, what, folder in recipe.steps:
        if word == "COPY":
            root.put_clone(repository, folder)
            continue
        done.append(root.run(what, folder))
        if done[-1].code != 0:
            break
    return done


def enter(recipe: Recipe, root: Root, *arguments: str) -> Step:
    """What `podman run … IMAGE ARGUMENTS` runs."""
    return root.run(shlex.join((*recipe.entry, *arguments)), recipe.folder)
