"""What the program says: its protocol, its variants, its checks. Asked in a sandbox, fenced or not."""

from __future__ import annotations

import json
from typing import Any

from .._place import program
from .container import BundleError, plain
from .sandbox import Done, Sandbox

QUICK_LIMIT = 120  # seconds, of an answer for which nothing is measured
CHECK_LIMIT = 1800  # seconds, of all contract checks of a variant


class ProgramMissing(BundleError):
    """The program cannot be started."""


def ask(sandbox: Sandbox, words: list[str], timeout_s: float = QUICK_LIMIT) -> Done:
    """Runs `attnbench WORDS`. Raises ProgramMissing where there is no program."""
    path = program().absolute()
    if not path.is_file():
        raise ProgramMissing(f"the program attnbench is not at {path}; ATTNBENCH_PROGRAM names it")
    try:
        return sandbox.run([path, *words], timeout_s)
    except OSError as error:
        raise ProgramMissing(f"cannot start '{path}': {error.strerror}") from None


def told(sandbox: Sandbox, words: list[str]) -> Any:
    """The JSON that `attnbench WORDS --json` prints. Raises BundleError, with the program's line, where it fails."""
    done = ask(sandbox, [*words, "--json"])
    if done.code:
        raise BundleError(f"attnbench {words[0]}: {plain(done.last_line)}")
    return json.loads(done.out)


def own_names(sandbox: Sandbox) -> tuple[set[str], set[str]]:
    """The names of the program's variants and of its tasks."""
    listed = told(sandbox, ["list"])
    return {v["name"] for v in listed["variants"]}, {t["name"] for t in listed["tasks"]}


def checked(sandbox: Sandbox, name: str, plugins: list[str], level: str) -> dict[str, Any]:
    """What `attnbench check NAME` says: `level`, and of each check its subject's line; `red` is how many are. Raises BundleError where it
    does not come to an end."""
    done = ask(sandbox, ["check", name, *(["--quick"] if level == "quick" else []), "--color=never", *plugins], CHECK_LIMIT)
    if done.code not in (0, 5):
        why = f"was not done after {CHECK_LIMIT} s" if done.code == 124 else f"ended with code {done.code}: {plain(done.last_line)}"
        raise BundleError(f"attnbench check {name} {why}")
    lines = [plain(" ".join(line.split())) for line in done.out.splitlines()]
    return {"level": level, "lines": lines, "red": len(reds(lines))}


def reds(lines: list[str]) -> list[str]:
    """What the lines of `checked` say of the checks that are red."""
    return [line.removeprefix("RED ") for line in lines if line.startswith("RED ")]
