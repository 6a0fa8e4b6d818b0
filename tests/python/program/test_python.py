"""The Python package, by its own tests (tests/python/package), with the extension that the native build made.

They run in .venv-python, which scripts/setup --venv python makes with PyTorch, where there is one; else in .venv, without the
tests that need PyTorch.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
import unittest

from ..faults import BUILT, ROOT

PYTHONS = [ROOT / venv / "bin" / "python" for venv in (".venv-python", ".venv")]
PACKAGE = ROOT / "build" / "native" / "package"


@BUILT
@unittest.skipUnless(list(PACKAGE.glob("attnbench/_core.*.so")), "the extension is not built: it needs what scripts/setup installs")
class Package(unittest.TestCase):
    def test_its_own_tests_pass(self) -> None:
        path = str(PACKAGE)
        python = next(p for p in PYTHONS if p.exists())
        done = subprocess.run(
            [python, "-m", "unittest", "discover", "-s", "tests/python/package", "-t", "."],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=500,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        ran = re.search(r"^Ran (\d+) tests", done.stderr, re.M)
        self.assertGreaterEqual(int(ran[1]), 25, done.stderr)


class Metadata(unittest.TestCase):
    def setUp(self) -> None:
        self.project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    def test_the_build_uses_the_versions_that_are_tested(self) -> None:
        tested = (ROOT / "scripts" / "requirements-python.txt").read_text().splitlines()
        for requirement in self.project["build-system"]["requires"]:
            self.assertIn(requirement, tested)
        built_with = (ROOT / "scripts" / "requirements.txt").read_text().splitlines()
        self.assertEqual([r for r in built_with if r.startswith("nanobind")], [r for r in tested if r.startswith("nanobind")])

    def test_what_is_exported_is_described(self) -> None:
        """Each public function of the package has a docstring that names what it raises or returns."""
        found = 0
        for path in (ROOT / "python" / "attnbench").glob("*.py"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                    if path.stem in ("_attention", "_check", "_measure", "_rows", "_run", "_tasks") and node.name != "Call":
                        self.assertTrue(ast.get_docstring(node), f"{path.name}: {node.name}")
                        found += 1
        self.assertGreater(found, 15)

    def test_torch_is_asked_for_only_where_it_is_needed(self) -> None:
        for path in (ROOT / "python" / "attnbench").glob("*.py"):
            tops = [n for n in ast.parse(path.read_text()).body if isinstance(n, (ast.Import, ast.ImportFrom))]
            names = {a.name.split(".")[0] for n in tops if isinstance(n, ast.Import) for a in n.names}
            names |= {(n.module or "").split(".")[0] for n in tops if isinstance(n, ast.ImportFrom) and not n.level}
            if not path.stem.startswith("_torch"):
                self.assertFalse({"torch", "pandas", "matplotlib"} & names, path.name)
