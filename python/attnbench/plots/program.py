"""What the program computes from rows: `attnbench VERB ... --format json`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from .._place import program

ABSENT = "the program is not built (scripts/bench --version builds it)"


class NoAnswer(Exception):
    """Why the program computed nothing, as one line."""


def asked(verb: str, *words: str | Path) -> Any:
    """Returns what the verb prints as JSON. Exit 3 of `compare` is an answer: something is worse.
    Error where the program is absent, or says why it gives no answer."""
    path = program()
    if not path.exists():
        raise NoAnswer(ABSENT)
    command = [str(path), verb, *map(str, words), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        said = lines[-1].removeprefix("attnbench: ")
        for word in words:  # a report names no folder of the machine that it was made on
            said = said.replace(str(word), word.name) if isinstance(word, Path) else said
        raise NoAnswer(said)
    return json.loads(done.stdout)
