"""The Debian package that cpack makes in the build folder: what it depends on, where its files lie, and that nothing is left when it is removed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from ..faults import BUILT, PROGRAM, ROOT

CONFIGURED = PROGRAM.parent / "CPackConfig.cmake"
TOOLS = ("cpack", "dpkg", "dpkg-deb", "dpkg-shlibdeps")
ROWS = ROOT / "results" / "reference" / "quick.jsonl"


@BUILT
@unittest.skipUnless(CONFIGURED.exists(), "the build folder has no CPackConfig.cmake: cmake --preset native writes it")
@unittest.skipUnless(all(map(shutil.which, TOOLS)), "no dpkg-dev here")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
        fast = ("-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none")
        cls.must("cpack", "--config", CONFIGURED, "-B", cls.folder / "made", *fast)
        (cls.package,) = (cls.folder / "made").glob("*.deb")

    @classmethod
    def must(cls, *command: object, **environment: str) -> str:
        held = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run([*map(str, command)], cwd=cls.folder, env=held | environment, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def test_it_depends_on_the_libraries_that_the_program_loads(self) -> None:
        needs = self.must("dpkg-deb", "--field", self.package, "Depends")
        for library in ("libc6", "libstdc++6", "libgomp1", "libboost-program-options", "libpng16-16"):
            self.assertIn(library, needs)
        fields = self.must("dpkg-deb", "--info", self.package)
        version = re.search(r"project\(attnbench VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertIn(f"Version: {version}\n", fields)

    def test_it_installs_runs_and_leaves_nothing(self) -> None:
        root = self.folder / "root"
        state = root / "var" / "lib" / "dpkg"
        for name in ("info", "updates", "triggers"):
            (state / name).mkdir(parents=True)
        for name in ("status", "available"):
            (state / name).touch()
        dpkg = ("dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-script-chrootless", "--log=/dev/null")
        self.must(*dpkg, "--install", self.package)
        for path in ("share/man/man1/attnbench.1", "share/bash-completion/completions/attnbench", "share/fish/vendor_completions.d/attnbench.fish",
                     "share/attnbench/python/attnbench/__main__.py", "include/attnbench/variants/api/attention.h"):  # fmt: skip
            self.assertTrue((root / "usr" / path).is_file(), path)
        program = root / "usr" / "bin" / "attnbench"
        self.assertIn("attnbench ", self.must(program, "--version"))
        self.must(program, "plot", ROWS, "--kind", "overview", "-o", "pictures", ATTNBENCH_PYTHON=sys.executable)
        self.assertTrue((self.folder / "pictures" / "overview.png").is_file())
        self.assertTrue(list(root.rglob("__pycache__")))  # what dpkg does not know of
        self.must(*dpkg, "--remove", "attnbench")
        self.assertEqual([str(p) for p in root.rglob("*") if p.is_file() and state not in p.parents], [])
        self.assertFalse((root / "usr" / "share" / "attnbench").exists())
