"""The programs of two commits, each with a work tree and a build of its own, which stay for the
next time; and pairs of times that a comparison leaves undecided: rows files of these cells alone,
and joined rows of them put in place."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .._place import ROOT

HERE = "."  # in place of a commit: the files of this checkout, committed or not


class RegressError(Exception):
    """What went wrong, as one line, and the exit code."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Program:
    """A commit and its program."""

    name: str  # as it was given
    commit: str  # HERE for the files of this checkout
    path: Path


def program_of(name: str, root: Path = ROOT) -> Program:
    """Builds the program of a commit, or that of the files as they are."""
    if name == HERE:
        return Program(name, HERE, _built(root))
    commit = _commit(name, root)
    tree = root / "build" / "regress" / commit[:12]
    if not (tree / "CMakeLists.txt").is_file():
        # A folder that was removed by hand is still in git's list.
        _git(root, "worktree", "prune")
        done = _git(root, "worktree", "add", "--detach", str(tree), commit)
        if done.returncode:
            raise RegressError(f"git makes no work tree of '{name}': {last_line(done.stderr)}", 6)
    return Program(name, commit, _built(tree))


def _commit(name: str, root: Path) -> str:
    done = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if done.returncode:
        raise RegressError(f"'{name}' is no commit of this repository; give a branch, a tag, a hash, or . for the files as they are")
    return done.stdout.strip()


def _built(tree: Path) -> Path:
    build = tree / "build" / "native"
    for command in (["cmake", "--preset", "native"], ["ninja", "-C", str(build), "attnbench"]):
        done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.stderr.write(done.stdout)
            raise RegressError(f"{tree.name} does not build: {' '.join(command[:2])} failed (see above)", 1)
    return build / "attnbench"


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)


def last_line(text: str) -> str:
    return next(reversed([line for line in text.splitlines() if line.strip()]), "no reason given")


COMPARED = (0, 3)  # exit codes of a comparison that had pairs


def undecided_cells(reader: Program, base: Path, head: Path, options: list[str]) -> tuple[set[str], set[str]]:
    """The ids of the speed cells of both files whose pair is undecided."""
    command = [reader.path, "compare", base, head, *options, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in COMPARED:  # the report that follows says why
        return set(), set()
    pairs = {_what(pair) for pair in json.loads(done.stdout)["pairs"] if pair["measure"] == "speed" and pair["verdict"] == "undecided"}

    def cells(rows: Path) -> set[str]:
        lines = map(json.loads, rows.read_text(encoding="utf-8").splitlines())
        return {line["cell"] for line in lines if line.get("measure") == "speed" and _what(line) in pairs}

    return cells(base), cells(head)


def _what(measured: dict) -> str:
    return json.dumps([measured["variant"], measured["axes"]], sort_keys=True)


def without(cells: set[str], rows: Path, output: Path) -> None:
    """A file that `run` goes on with: it measures these cells and no others."""
    _write(output, [line for line in _lines(rows) if _cell(line) not in cells])


def alone(cells: set[str], rows: Path, output: Path) -> None:
    _write(output, [line for line in _lines(rows) if _cell(line) in cells or _cell(line) is None])


def put_in_place(more: Path, rows: Path) -> None:
    """The rows of `more` in place of those of their cells in `rows`."""
    newer = {_cell(line): line for line in _lines(more)}
    _write(rows, [line if _cell(line) is None else newer.get(_cell(line), line) for line in _lines(rows)])


def _cell(line: str) -> str | None:
    """The id of the row's cell; None of a run line."""
    return json.loads(line).get("cell")


def _lines(rows: Path) -> list[str]:
    return rows.read_text(encoding="utf-8").splitlines()


def _write(rows: Path, lines: list[str]) -> None:
    rows.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
