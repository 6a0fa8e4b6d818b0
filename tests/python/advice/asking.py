"""Asks `advise` as a user does: words in, what it prints and its exit code out."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnbench.advice import command


def said(files: Sequence[Path], *words: str) -> tuple[int, str, str]:
    """Returns exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = command.main(["advise", *map(str, files), *words])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return code, out.getvalue(), err.getvalue()


def answered(files: Sequence[Path], *words: str) -> dict[str, Any]:
    """Returns the fields of an answer. AssertionError where there is none."""
    code, out, err = said(files, *words, "--json")
    if code:
        raise AssertionError(f"exit {code}: {err}")
    found: dict[str, Any] = json.loads(out)
    return found
