"""What has to be there: our program, built, and a Python that holds the other libraries."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .._place import BUILT, ROOT

PROGRAM = BUILT
VENV = ROOT / ".venv-peers"
OLDEST = (3, 11)
ROOM = 10 << 30  # bytes free on the disk: the wheels while they are unpacked


class InstallError(Exception):
    """Why it could not be made, in one line."""


def built_program() -> Path:
    done = subprocess.run([ROOT / "scripts" / "bench", "--version"], stdout=subprocess.DEVNULL)
    if done.returncode:
        raise InstallError("attnbench could not be built (see above)")
    return PROGRAM


def peers_python(say: Callable[[str], None]) -> Path:
    """That of .venv-peers, which scripts/setup makes when it is missing or its requirements changed."""
    if not (VENV / "stamp").is_file():
        if sys.version_info < OLDEST:
            raise InstallError(
                "the libraries need Python 3.11 or later; --python PATH names another"
            )
        if shutil.disk_usage(ROOT).free < ROOM:
            raise InstallError(
                f"{VENV} needs 10 GB of free disk; --python PATH names an existing one"
            )
        say(f"making {VENV}: gigabytes, once")
    setup = [ROOT / "scripts" / "setup", "--venv", "peers"]
    if subprocess.run(setup, stdout=sys.stderr).returncode:
        raise InstallError(f"{VENV} could not be made (see above); --python PATH names another")
    return VENV / "bin" / "python"
