"""`attnbench new` outside and inside a source tree, and what it refuses."""

from __future__ import annotations

import ast
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from ..faults import BUILT
from .test_cli import PROGRAM, ROOT, attnbench

FORMAT = ROOT / ".venv" / "bin" / "clang-format"
FAMILIES = ("pattern", "scores", "kernel", "mixer")
LISTS = (
    "variants/CMakeLists.txt",
    "variants/api/variant_info.h",
    "tasks/CMakeLists.txt",
    "tests/variants/sources.cmake",
    "tests/tasks/sources.cmake",
)


@BUILT
class New(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)

    def new(self, *arguments, cwd=None):
        return attnbench("new", *arguments, cwd=cwd or self.folder)

    def files(self):
        return {str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if p.is_file()}

    def tree(self):
        """The files of a source tree that `new` looks at."""
        for path in LISTS:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.folder / path)

    def test_each_family_is_formatted_as_the_house_is(self):
        shutil.copy(ROOT / ".clang-format", self.folder)
        for family in FAMILIES:
            self.assertEqual(self.new("variant", f"a_{family}", "--family", family).returncode, 0)
        self.assertEqual(self.new("task", "a_task").returncode, 0)
        sources = sorted(self.folder.rglob("*.cc"))
        self.assertEqual(len(sources), len(FAMILIES) + 1)
        done = subprocess.run([FORMAT, "--dry-run", "-Werror", *sources], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for source in sources:
            text = source.read_text()
            self.assertGreaterEqual(text.lower().count("change here"), 3, source)
            self.assertNotIn("@", text)

    def test_a_variant_in_python_is_one_file_wherever_it_is_made(self):
        self.tree()
        done = self.new("variant", "switch", "--python")  # a word of C++, not of Python
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.files(), {*LISTS, "switch.py"})
        text = (self.folder / "switch.py").read_text()
        defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
        self.assertEqual(defined, {"Switch"})
        self.assertGreaterEqual(text.lower().count("change here"), 3)
        self.assertNotIn("@", text)
        self.assertIn("python:switch.py:Switch", done.stdout)
        self.assertEqual(self.new("variant", "other", "--python", "--out", "in here").returncode, 0)
        self.assertIn("in here/other.py", self.files())

    def test_inside_the_tree_a_variant_has_its_file_its_word_and_its_test(self):
        self.tree()
        below = self.folder / "variants"
        done = self.new("variant", "cosine", "--family", "kernel", cwd=below)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(
            self.files(), {*LISTS, "variants/features/cosine.cc", "tests/variants/features/cosine_test.cc"}
        )
        listed = (self.folder / LISTS[0]).read_text()
        self.assertIn("\n  features/cosine\n  )\n", listed)
        self.assertEqual(listed.replace("\n  features/cosine", ""), (ROOT / LISTS[0]).read_text())
        tests = (self.folder / LISTS[3]).read_text().removeprefix((ROOT / LISTS[3]).read_text())
        self.assertEqual(tests, "list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/features/cosine_test.cc)\n")

    def test_inside_the_tree_a_task_has_its_file_its_word_and_its_test(self):
        self.tree()
        self.assertEqual(self.new("task", "lookup").returncode, 0)
        self.assertEqual(self.files(), {*LISTS, "tasks/probes/lookup.cc", "tests/tasks/probes/lookup_test.cc"})
        self.assertIn("\n  probes/lookup)\n", (self.folder / LISTS[2]).read_text())
        self.assertIn("/probes/lookup_test.cc)\n", (self.folder / LISTS[4]).read_text())

    def test_wrong_orders_are_refused_in_one_line_and_write_nothing(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "mine.cc").write_text("kept\n")
        before = self.files()
        for arguments, word in (
            (["variant"], "usage"),
            (["family", "own"], "variant or task"),
            (["variant", "Own"], "'Own'"),
            (["variant", "own-one"], "'own-one'"),
            (["variant", "x" * 41], "40"),
            (["variant", "switch"], "word of C++"),
            (["variant", "full"], "already"),
            (["task", "mqar"], "already"),
            (["variant", "own", "--family", "patern"], "pattern"),
            (["task", "own", "--family", "pattern"], "--family"),
            (["variant", "mine"], "mine.cc' exists"),
            (["variant", "torch", "--python"], "'torch'"),
            (["variant", "full", "--python"], "already"),
            (["task", "own", "--python"], "--python"),
            (["variant", "own", "--python", "--family", "kernel"], "--family"),
        ):
            done = self.new(*arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), arguments)
            self.assertIn(word, done.stderr)
        self.assertEqual(self.files(), before)
        self.assertEqual((self.folder / "mine" / "mine.cc").read_text(), "kept\n")


if __name__ == "__main__":
    unittest.main()
