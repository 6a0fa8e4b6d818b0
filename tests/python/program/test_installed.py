"""A program outside a checkout: pictures, reports and Parquet by the package that is installed with it, or one line that says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

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


@BUILT
class Texts(FaultCase):
    """The manual page and the completions, as `cmake --install` writes them (cmake/install_texts.cmake)."""

    def install(self, prefix: str, stage: str = "") -> dict[str, str]:
        """What each file below `prefix` holds, which is in the folder `stage` of the test's own."""
        staged = self.folder / stage if stage else ""
        settings = {"CMAKE_INSTALL_PREFIX": prefix, "program": PROGRAM, "shared": f"{prefix}/share", "manuals": f"{prefix}/share/man"}
        command = ["cmake", *(f"-D{name}={value}" for name, value in settings.items()), "-P", ROOT / "cmake" / "install_texts.cmake"]
        done = subprocess.run(command, env={**os.environ, "DESTDIR": str(staged)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        root = Path(f"{staged}{prefix}")
        return {str(p.relative_to(root)): p.read_text(encoding="utf-8") for p in root.rglob("*") if p.is_file()}

    def test_each_shell_finds_its_completion_and_man_the_page(self) -> None:
        found = self.install(str(self.folder / "local"))
        wanted = {"share/man/man1/attnbench.1": ("help", "--man"), "share/bash-completion/completions/attnbench": ("completion", "bash"),
                  "share/zsh/site-functions/_attnbench": ("completion", "zsh"),
                  "share/fish/vendor_completions.d/attnbench.fish": ("completion", "fish")}  # fmt: skip
        self.assertEqual(found.keys(), wanted.keys())
        for path, words in wanted.items():
            printed = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout
            self.assertEqual(found[path], printed, path)
            self.assertGreater(len(printed), 100, path)
        self.assertTrue(found["share/zsh/site-functions/_attnbench"].startswith("#compdef attnbench\n"))  # else zsh does not load it

    def test_below_usr_of_debian_zsh_has_another_folder(self) -> None:
        found = self.install("/usr", "stage")
        is_debian = Path("/etc/debian_version").exists()
        self.assertIn(f"share/zsh/{'vendor-completions' if is_debian else 'site-functions'}/_attnbench", found)
        self.assertEqual(len(found), 4)

    def test_a_program_that_fails_fails_the_installation(self) -> None:
        command = ["cmake", "-Dprogram=false", f"-Dshared={self.folder}/s", f"-Dmanuals={self.folder}/m", "-P", ROOT / "cmake" / "install_texts.cmake"]
        self.assertNotEqual(subprocess.run(command, capture_output=True).returncode, 0)


class Needs(unittest.TestCase):
    def test_what_a_verb_needs_is_what_the_package_s_extras_name(self) -> None:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = {extra: tuple(need.split(">=")[0] for need in needs) for extra, needs in extras.items()}
        self.assertEqual(NEEDS["plot"], named["plot"])
        self.assertEqual(NEEDS["report"], (*named["plot"], *named["report"][1:]))
        self.assertEqual(NEEDS["export"], named["parquet"])
