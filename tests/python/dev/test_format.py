"""Every C++ file is as clang-format leaves it, with the version that scripts/requirements.txt pins."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

from ..faults import ROOT

CLANG_FORMAT = Path(sys.executable).parent / "clang-format"


def sources() -> list[Path]:
    folders = ("core", "variants", "tasks", "harness", "python", "tests")
    return sorted(p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in (".cc", ".h"))


def faults(paths: list[Path]) -> str:
    command = [CLANG_FORMAT, "--dry-run", "-Werror", *paths]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stderr


class Format(unittest.TestCase):
    def test_every_source_is_formatted(self) -> None:
        self.assertGreater(len(sources()), 400)
        self.assertEqual(faults(sources()), "")

    def test_a_fault_is_seen(self) -> None:
        planted = ROOT / "build" / "native" / "planted.cc"
        planted.write_text("int  main ( ) { }\n")
        self.addCleanup(planted.unlink)
        self.assertIn("code should be clang-formatted", faults([planted]))
