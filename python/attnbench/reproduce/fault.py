"""What goes wrong, as one line and an exit code."""

from __future__ import annotations

USAGE, NOTHING, IO, INTERRUPTED = 2, 4, 6, 130


class ReproduceError(Exception):
    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


class MissingError(Exception):
    """A row that a verdict needs is not there or is not ok; why, in one line."""
