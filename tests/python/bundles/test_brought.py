"""Which variants a bundle brings: by name, by provider, by the hash of what was measured; and the build, which is ours."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

from attnbench.bundles import brought
from attnbench.bundles.brought import Brought, InPython, brought_by, built, parts_of, plugin_words, write_sources
from attnbench.bundles.container import BundleError
from attnbench.bundles.sandbox import Done, Sandbox
from attnbench.plots.rows.checksum import hash_of_bytes

from .planted import TASKS, VARIANTS, Line, cell, run_line

OWN = set(VARIANTS)


def found(cells: list[Line], **sources: bytes) -> Brought:
    files = {name.replace("_dot_", "."): content for name, content in sources.items()}
    return brought_by(files, cells, {run_line()["run"]: run_line()}, OWN, set(TASKS))


class Names(unittest.TestCase):
    def test_stacks_are_of_their_parts(self) -> None:
        self.assertEqual(parts_of("full+2*linear"), ["full", "linear"])
        self.assertEqual(parts_of("truncated[window=8,as=paper]+linear"), ["truncated", "linear"])
        self.assertEqual(parts_of("gated_deltanet"), ["gated_deltanet"])

    def test_own_variants_need_nothing(self) -> None:
        self.assertEqual(found([cell("memory", "linear")]), Brought())

    def test_sources_are_variants_tasks_or_shared(self) -> None:
        rows = [cell("memory", "mine", provided_by="plugin", plugin="0" * 16),
                cell("accuracy", "linear", 64, task={"name": "own_task", "params": {}}, provided_by="plugin")]  # fmt: skip
        brings = found(rows, mine_dot_cc=b"", own_task_dot_cc=b"", shared_dot_cc=b"", shared_dot_h=b"")
        self.assertEqual(brings, Brought(("mine",), ("own_task",), ("shared.cc",)))

    def test_a_row_that_hides_its_plugin_is_of_it_all_the_same(self) -> None:
        self.assertEqual(found([cell("memory", "mine")], mine_dot_cc=b"").variants, ("mine",))
        self.assertEqual(found([cell("memory", "full+mine")], mine_dot_cc=b"").variants, ("mine",))

    def test_what_is_missing(self) -> None:
        for row in (cell("memory", "mine"), cell("memory", "full+mine"), cell("accuracy", "linear", 64, task={"name": "own_task", "params": {}})):
            with self.assertRaises(BundleError):
                found([row])
        with self.assertRaisesRegex(BundleError, "of no variant that the rows name"):
            found([cell("memory", "linear")], linear_dot_cc=b"")

    def test_a_file_of_python_is_the_one_whose_hash_the_rows_hold(self) -> None:
        run = run_line(config={"protocol": 1, "python": [{"variant": "python_mine", "file": "x.py", "name": "Mine"}]})
        row = cell("memory", "python_mine", provided_by="python", plugin=hash_of_bytes(b"rightMine"))
        files = {"other.py": b"other", "mine.py": b"right"}
        self.assertEqual(brought_by(files, [row], {run["run"]: run}, OWN, set(TASKS)).pythons, (InPython("python_mine", "mine.py", "Mine"),))
        for config in ({}, {"python": 1}, {"python": [1]}, {"python": [{"variant": "python_mine", "name": "os; x"}]}):
            with self.assertRaisesRegex(BundleError, "class or function"):
                brought_by(files, [row], {run["run"]: {**run, "config": config}}, OWN, set(TASKS))


class Build(unittest.TestCase):
    def test_the_cmake_file_is_ours_and_the_first_error_is_told(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            sandbox = Sandbox(Path(folder))
            write_sources(sandbox, {"mine.cc": b"int x", "shared.cc": b""})
            failed = Done(2, "", "noise\nmine.cc:1:6: error: expected ';' \x1b[31m\nmore")
            with (
                patch.object(brought, "_installed", return_value=Path("/none")),
                patch.object(Sandbox, "run", side_effect=[Done(0, "", ""), failed]) as ran,
                self.assertRaises(BundleError) as caught,
            ):
                built(sandbox, Brought(("mine",), (), ("shared.cc",)))
            self.assertEqual(str(caught.exception), "its sources do not build: mine.cc:1:6: error: expected ';' \\x1b[31m")
            self.assertIn("attnbench_add_plugin(bundle VARIANTS mine.cc SOURCES shared.cc)", (Path(folder) / "CMakeLists.txt").read_text())
            self.assertEqual([call.args[0][0] for call in ran.call_args_list], ["cmake", "cmake"])

    def test_the_words_load_what_is_built_and_each_file_of_python(self) -> None:
        sources = {"mine.cc": b"int x;", "mine.py": b"class Mine: pass", "other.py": b"class Other: pass"}
        pythons = (InPython("python_mine", "mine.py", "Mine"), InPython("python_other", "other.py", "Other"))
        for variants, library in ((("mine",), ["--plugin", "libbundle.so"]), ((), [])):
            with tempfile.TemporaryDirectory() as folder, patch.object(brought, "built", return_value=Path("libbundle.so")) as build:
                words = plugin_words(Sandbox(Path(folder)), sources, Brought(variants, (), (), pythons))
                there = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
            self.assertEqual(words, [*library, "--plugin", "python:mine.py:Mine", "--plugin", "python:other.py:Other"])
            self.assertEqual((there, build.called), (sources, bool(variants)))


if __name__ == "__main__":
    unittest.main()
