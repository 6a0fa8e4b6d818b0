"""The programs of two commits: each commit has a work tree and a build of its own, which stay for the next time."""

from __future__ import annotations

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
