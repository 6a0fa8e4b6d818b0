"""The program attnbench, which the package brings along: what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from . import _core
from ._core import Error

HERE = Path(__file__).resolve().parent


def program() -> Path:
    """The program: $ATTNBENCH_PROGRAM, the one installed with the package, or, in a clone of the
    repository, the one that scripts/bench builds. Raises Error where there is none."""
    named = os.environ.get("ATTNBENCH_PROGRAM")
    beside, built = HERE / "bin" / "attnbench", HERE.parents[1] / "build" / "native" / "attnbench"
    for path in [Path(named)] if named else [beside, built]:
        if path.is_file():
            return path
    raise Error(f"the program attnbench is not at {named or beside}; "
                "install the package by pip, or name the program in ATTNBENCH_PROGRAM")  # fmt: skip


def main() -> NoReturn:
    """The console script: becomes the program."""
    path = str(program())
    os.execv(path, [path, *sys.argv[1:]])


def environment() -> dict[str, str]:
    """Variables of the program: cells of variants in Python run in this interpreter and package."""
    folder = str(Path(_core.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    return {"ATTNBENCH_PYTHON": sys.executable, **os.environ, "PYTHONPATH": path}


def said_last(text: str) -> str:
    """The last line of what a program says, without its own name."""
    lines = text.strip().splitlines() or ["no word"]
    return lines[-1].removeprefix("attnbench: ")


def output_of(*words: str, allowed: tuple[int, ...] = (0,)) -> str:
    """What `attnbench WORDS...` prints. Raises Error, with the program's line, for other codes."""
    done = subprocess.run([program(), *words], capture_output=True, text=True, env=environment())
    if done.returncode not in allowed:
        raise Error(said_last(done.stderr))
    return done.stdout


@cache
def _listed() -> str:
    return output_of("list", "--json")


def variants() -> list[dict[str, Any]]:
    """All variants, in the order of `attnbench list`: name, summary, paper, traits, parameters."""
    return json.loads(_listed())["variants"]


def tasks() -> list[dict[str, Any]]:
    """All tasks, in the order of `attnbench list`: name, summary, source, metric, parameters."""
    return json.loads(_listed())["tasks"]


def info(name: str) -> dict[str, Any]:
    """What `attnbench info NAME --json` knows of one variant or task, such as the shapes of its
    weights. Raises Error for an unknown name, with the nearest known one."""
    return json.loads(output_of("info", name, "--json"))
