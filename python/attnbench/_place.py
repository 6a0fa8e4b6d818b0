"""Where things are: the package, the program, and the clone of the repository around them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IMPORTED = Path(__file__).absolute().parents[1]  # what is in PYTHONPATH: beside the extension
ROOT = PACKAGE.parents[1]  # of a clone
IS_CLONE = (ROOT / "scripts" / "bench").is_file()
BUILT = ROOT / "build" / "native" / "attnbench"
SCHEMA = ROOT / "results" / "schema.json" if IS_CLONE else PACKAGE / "schema.json"
COMMAND = "scripts/bench" if IS_CLONE else "attnbench"  # what a reader types


def require_clone(tool: str) -> None:
    """Ends a tool of the repository with exit code 2 and one line where there is no clone around the package."""
    if not IS_CLONE:
        print(f"{tool}: needs a clone of the repository, where scripts/{tool} runs this", file=sys.stderr)
        raise SystemExit(2)


def program() -> Path:
    """The program: $ATTNBENCH_PROGRAM, the one installed with the package, or, in a clone of the
    repository, the one that scripts/bench builds. It may not exist."""
    if named := os.environ.get("ATTNBENCH_PROGRAM"):
        return Path(named)
    beside = PACKAGE / "bin" / "attnbench"
    return BUILT if IS_CLONE and not beside.is_file() else beside
