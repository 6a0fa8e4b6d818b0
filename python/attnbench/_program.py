"""The program attnbench, which the package brings along: what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from . import _place
from ._core import Error


def program() -> Path:
    """The program (_place.program). Raises Error where there is none."""
    path = _place.program()
    if path.is_file():
        return path
    raise Error(f"the program attnbench is not at {path}; "
                "install the package by pip, or name the program in ATTNBENCH_PROGRAM")  # fmt: skip


def main() -> NoReturn:
    """The console script: becomes the program, whose pictures and variants in Python are this
    interpreter's."""
    path = str(program())
    os.execve(path, [path, *sys.argv[1:]], environment())


def environment() -> dict[str, str]:
    """Variables of the program: cells of variants in Python run in this interpreter and package."""
    path = os.pathsep.join(filter(None, [str(_place.IMPORTED), os.environ.get("PYTHONPATH")]))
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
    if not isinstance(name, str):
        raise Error(f"name is {name!r}; expected that of a variant or a task, such as 'full'")
    return json.loads(output_of("info", name, "--json"))
