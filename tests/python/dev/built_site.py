"""The site as scripts/site builds it, with a report of few rows, for its tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dev.site.__main__ import written

from ..faults import ROOT

MKDOCS = ROOT / ".venv-site" / "bin" / "mkdocs"
FEW = ("results/reference/quick.jsonl",)


def build(folder: Path) -> Path:
    """Builds the site below `folder`, whose parent is there, and returns its own folder. Needs the program and .venv-site."""
    written(ROOT, folder, FEW)
    command = [MKDOCS, "build", "--quiet", "--strict", "--config-file", folder / "mkdocs.yml", "--site-dir", folder / "site"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return folder / "site"
