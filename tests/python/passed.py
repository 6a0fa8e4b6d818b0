"""A file of the contract checks that passed, which all tests share: a check takes seconds, and few tests are about checks. The program
keeps each result under a hash of the sources of what it checked."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "native" / "attnbench"
KEPT = PROGRAM.with_name("tests_checks.json")


def _read(file: Path) -> dict[str, str]:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):  # none, or one that a test has damaged
        return {}


@contextmanager
def passed_checks(cache: Path | str) -> Iterator[None]:
    """Lends them to a run whose cache is this folder, and keeps those that it adds."""
    file = Path(cache, "attnbench", "checks.json")
    lends = KEPT.exists() and not file.exists() and Path(cache).is_dir()
    if lends:
        file.parent.mkdir(exist_ok=True)
        shutil.copyfile(KEPT, file)
    try:
        yield
    finally:
        _keep(file, lends)


def _keep(file: Path, lent: bool) -> None:
    found, kept = _read(file), _read(KEPT)
    if found.keys() - kept.keys():
        draft = KEPT.with_name(f"tests_checks.{os.getpid()}.json")  # tests run side by side
        draft.write_text(json.dumps(kept | found))
        draft.replace(KEPT)
    elif lent:  # a run that is refused leaves nothing
        file.unlink(missing_ok=True)
        if file.parent.is_dir() and not any(file.parent.iterdir()):
            file.parent.rmdir()
