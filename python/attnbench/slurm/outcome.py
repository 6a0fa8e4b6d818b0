"""How a command ends: one line on stderr and an exit code."""

from __future__ import annotations

import sys
from typing import NoReturn

FAILED, USAGE, IO = 1, 2, 6


class Refused(Exception):
    """What is wrong, in one line, and the exit code."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def refuse(message: str, code: int = USAGE) -> NoReturn:
    raise Refused(message, code)


def one_line(text: str) -> str:
    """What a program said on stderr, without its name before each line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(line.split(": error: ", 1)[-1] for line in lines)
