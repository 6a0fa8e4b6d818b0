"""The entries of results/reproductions: a folder each, read from its entry.toml.

A folder ID/ holds entry.toml, the sweep files and programs that entry.toml lists, their rows
NAME.jsonl, verdict.py, and the picture that the command draws.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._place import ROOT

USAGE, NOTHING, IO, INTERRUPTED = 2, 4, 6, 130


class ReproduceError(Exception):
    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


class MissingError(Exception):
    """A row that a verdict needs is not there or is not ok; why, in one line."""


FOLDER = ROOT / "results" / "reproductions"
TEXTS = ("title", "paper", "place", "claim", "scaled")
KEYS = {"id", *TEXTS, "bounds", "minutes", "idle", "measure", "published"}
MEASURE_KEYS = {"sweep", "program", "options", "small"}
PUBLISHED_KEYS = {"name", "source", "unit", "values"}


@dataclass(frozen=True)
class Measurement:
    """A sweep file, or a program, and the rows file that it makes."""

    source: Path  # NAME.toml or NAME.py
    options: tuple[str, ...] = ()  # of `attnbench run`, beside the file
    small: tuple[str, ...] = ()  # of the small size: further options, or others of the same names

    def words(self, small: bool) -> list[str]:
        """The options of `attnbench run`, each a name and a value."""
        given = [*self.options, *(self.small if small else ())]
        last = dict(zip(given[::2], given[1::2]))
        return [word for pair in last.items() for word in pair]

    @property
    def is_program(self) -> bool:
        return self.source.suffix == ".py"

    @property
    def name(self) -> str:
        return self.source.stem

    def rows(self, folder: Path) -> Path:
        return folder / f"{self.name}.jsonl"


@dataclass(frozen=True)
class Published:
    """Figures of the paper, with the place where they stand."""

    source: str
    unit: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    id: str
    folder: Path
    title: str
    paper: str
    place: str  # table, figure or section of the paper
    claim: str  # what must hold, in one sentence
    scaled: str  # how the set-up differs from the paper's
    minutes: float  # that the measurements take on two cores
    idle: bool  # whether times are measured, which needs an idle machine
    measurements: tuple[Measurement, ...]
    published: dict[str, Published] = field(default_factory=dict)
    bounds: str = ""  # which of them were set when rows were there, and why; none where all were set before


def entry_ids(folder: Path = FOLDER) -> list[str]:
    """In the order of their numbers."""
    found = [path.parent.name for path in folder.glob("*/entry.toml")]
    return sorted(found, key=lambda name: (int(re.sub(r"\D", "", name) or 0), name))


def read_entries(folder: Path = FOLDER) -> list[Entry]:
    return [read_entry(folder / name) for name in entry_ids(folder)]


def chosen(words: list[str], folder: Path = FOLDER) -> list[Entry]:
    """The entries of these ids, each once; `all` is every entry."""
    known = entry_ids(folder)
    for word in words:
        if word not in (*known, "all"):
            near = difflib.get_close_matches(word.upper(), known, 1, 0.4)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ReproduceError(f"'{word}' is no entry; {hint}there are all, {', '.join(known)}")
    wanted = known if "all" in words else [name for name in known if name in words]
    return [read_entry(folder / name) for name in wanted]


def read_entry(folder: Path) -> Entry:
    path = folder / "entry.toml"
    given = read_toml(path)

    def need(condition: bool, what: str) -> None:
        if not condition:
            raise ReproduceError(f"{path}: {what}")

    need(not set(given) - KEYS, f"unknown key '{min(set(given) - KEYS, default='')}'; "
         f"known are {', '.join(sorted(KEYS))}")  # fmt: skip
    need(given.get("id") == folder.name, f"id is {given.get('id')!r}, not '{folder.name}', "
         "the name of its folder")  # fmt: skip
    for name in TEXTS:
        good = isinstance(given.get(name), str) and given[name].strip()
        need(bool(good), f"'{name}' is missing or no text")
    bounds = given.get("bounds", "")
    need(isinstance(bounds, str), f"bounds is {bounds!r}; expected a text on those that were set after the rows")
    minutes = given.get("minutes")
    need(isinstance(minutes, (int, float)) and minutes > 0, f"minutes is {minutes!r}; expected "
         "a number above 0")  # fmt: skip
    need(isinstance(given.get("idle"), bool), f"idle is {given.get('idle')!r}; expected true "
         "or false")  # fmt: skip
    need(bool(given.get("measure")), "no [[measure]]: an entry has a sweep or a program")
    need((folder / "verdict.py").is_file(), "no verdict.py stands beside it")
    published = {}
    for one in given.get("published", []):
        need(set(one) == PUBLISHED_KEYS, f"a [[published]] has the keys {sorted(one)}; expected "
             f"{sorted(PUBLISHED_KEYS)}")  # fmt: skip
        need(one["name"] not in published, f"two [[published]] are named '{one['name']}'")
        published[one["name"]] = Published(one["source"], one["unit"], one["values"])
    texts = {name: " ".join(given[name].split()) for name in TEXTS}
    measurements = tuple(_measurement(folder, one, need) for one in given["measure"])
    names = [m.name for m in measurements]
    need(len(set(names)) == len(names), f"two [[measure]] make the rows {names}")
    return Entry(given["id"], folder, **texts, minutes=minutes, idle=given["idle"],
                 measurements=measurements, published=published, bounds=" ".join(bounds.split()))  # fmt: skip


def _measurement(folder: Path, given: dict[str, Any], need: Any) -> Measurement:
    need(not set(given) - MEASURE_KEYS, f"a [[measure]] has the keys {sorted(given)}; known are "
         f"{', '.join(sorted(MEASURE_KEYS))}")  # fmt: skip
    named = [given[key] for key in ("sweep", "program") if key in given]
    need(len(named) == 1, "a [[measure]] names either a sweep or a program")
    source = folder / named[0]
    need(source.suffix == (".toml" if "sweep" in given else ".py") and source.is_file(),
         f"'{named[0]}' is no file of this folder")  # fmt: skip
    need("sweep" in given or not (given.get("options") or given.get("small")),
         f"'{named[0]}' is a program, which takes neither options nor small")  # fmt: skip
    words = {key: tuple(given.get(key, ())) for key in ("options", "small")}
    for key, found in words.items():
        names = found[::2]
        paired = len(found) % 2 == 0 and all(name.startswith("--") for name in names)
        need(paired and len(set(names)) == len(names),
             f"{key} of '{named[0]}' is {list(found)}; expected pairs of --NAME and a value, each name once")  # fmt: skip
    return Measurement(source, **words)


def read_left_out(folder: Path = FOLDER) -> dict[str, dict[str, str]]:
    """Published results without an entry: title and reason by id."""
    given = read_toml(folder / "left_out.toml")
    for name, one in given.items():
        if set(one) != {"title", "why"}:
            raise ReproduceError(f"{folder / 'left_out.toml'}: '{name}' has the keys "
                                 f"{sorted(one)}; expected title and why")  # fmt: skip
    return given


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReproduceError(f"{path}: cannot be read: {error.strerror}", IO) from None
    except ValueError as error:
        raise ReproduceError(f"{path}: {error}") from None
