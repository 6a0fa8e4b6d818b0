"""A program outside a checkout: pictures, reports and Parquet by the package that is installed with it, or one line that says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import unittest

from attnbench.__main__ import NEEDS

from ..faults import BUILT, PROGRAM, ROOT, FaultCase

ROWS = ROOT / "results" / "reference" / "quick.jsonl"


@BUILT
class Installed(FaultCase):
    def setUp(self) -> None:
        super().setUp()
        self.program = self.folder / "usr" / "bin" / "attnbench"
        self.program.parent.mkdir(parents=True)
        shutil.copy(PROGRAM, self.program)

    def install_package(self) -> None:
        """As cmake/install.cmake puts it."""
        shared = self.folder / "usr" / "share" / "attnbench" / "python" / "attnbench"
        shutil.copytree(ROOT / "python" / "attnbench", shared, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "results" / "schema.json", shared)

    def run_installed(self, python: str, *words: str) -> subprocess.CompletedProcess:
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        environment = {**os.environ, "ATTNBENCH_PYTHON": python}
        environment.pop("PYTHONPATH", None)
        return subprocess.run([self.program, *words], cwd=empty, env=environment, capture_output=True, text=True)

    def test_without_the_package_one_line_says_so(self) -> None:
        for words in (("plot", "rows.jsonl"), ("report", "rows.jsonl"), ("export", "rows.jsonl", "-o", "x.parquet")):
            done = self.run_installed(sys.executable, *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(f"{words[0]} is done in Python, and the package attnbench does not lie by '{self.program}'", done.stderr)
            self.assertIn(f"scripts/bench {words[0]} in a clone", done.stderr)

    def test_pictures_and_reports_come_from_an_empty_folder(self) -> None:
        self.install_package()
        rows = self.folder / "rows.jsonl"
        shutil.copy(ROWS, rows)
        done = self.run_installed(sys.executable, "plot", str(rows), "--kind", "overview", "-o", "pictures")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue((self.folder / "empty" / "pictures" / "overview.png").is_file())
        done = self.run_installed(sys.executable, "report", str(rows), "-o", "page.html")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = (self.folder / "empty" / "page.html").read_text(encoding="utf-8")
        self.assertNotIn("the program is not built", page)  # it is asked for exponents of growth
        done = self.run_installed(sys.executable, "plot")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("'attnbench run --profile quick -o results/quick.jsonl' makes one", done.stderr)

    def test_an_interpreter_without_the_libraries_is_told_what_to_install(self) -> None:
        self.install_package()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder / "bare"], check=True)
        bare = str(self.folder / "bare" / "bin" / "python")
        for verb, output in (("plot", "pictures"), ("report", "page.html"), ("export", "x.parquet")):
            done = self.run_installed(bare, verb, str(ROWS), "-o", output)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(f"{bare} -m pip install {' '.join(NEEDS[verb])}\n", done.stderr)


class Needs(unittest.TestCase):
    def test_what_a_verb_needs_is_what_the_package_s_extras_name(self) -> None:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = {extra: tuple(need.split(">=")[0] for need in needs) for extra, needs in extras.items()}
        self.assertEqual(NEEDS["plot"], named["plot"])
        self.assertEqual(NEEDS["report"], (*named["plot"], *named["report"][1:]))
        self.assertEqual(NEEDS["export"], named["parquet"])
