"""The hash of the sources behind a row: whatever a plug-in's figures depend on changes it, and another plug-
in does not. And which commit a program says that it is of, and whether its sources differ
(harness/measure/commit.cmake)."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from ..faults import ROOT

COMMIT_SCRIPT = Path(__file__).resolve().parents[3] / "harness" / "measure" / "commit.cmake"


class Commit(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.top = Path(held.name, "top")
        (self.top / "results").mkdir(parents=True)
        for file in ("source.cc", "results/rows.jsonl"):
            (self.top / file).write_text("before\n", encoding="utf-8")
        Path(held.name, "template").write_text("@commit@ @dirty@", encoding="utf-8")

    def git(self, *words: str) -> str:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        return subprocess.run(["git", *settings, *words], cwd=self.top, check=True, capture_output=True, text=True).stdout.strip()

    def told(self) -> str:
        made = self.top.parent / "made"
        subprocess.run(["cmake", "-D", f"SOURCE={self.top}", "-D", f"TEMPLATE={self.top.parent / 'template'}", "-D", f"OUTPUT={made}",
                        "-P", COMMIT_SCRIPT], check=True)  # fmt: skip
        return made.read_text(encoding="utf-8").rstrip("\n")

    def test_changed_sources_make_a_tree_dirty_and_changed_rows_do_not(self) -> None:
        self.assertEqual(self.told(), " ")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "first")
        commit = self.git("rev-parse", "HEAD")
        self.assertEqual(self.told(), f"{commit} false")
        (self.top / "results" / "rows.jsonl").write_text("after\n", encoding="utf-8")
        (self.top / "untracked.cc").write_text("new\n", encoding="utf-8")
        self.assertEqual(self.told(), f"{commit} false")
        (self.top / "source.cc").write_text("after\n", encoding="utf-8")
        self.assertEqual(self.told(), f"{commit} true")


SCRIPT = ROOT / "cmake" / "source_hashes.cmake"
VARIANTS = {"full": "softmax", "linear": "features", "conv": "convolution"}  # name: family
TASKS = {"mqar": "recall", "copy": "sequences"}
# Sources that several plug-ins share, and whose hashes an edit changes. Most of them are made up: a
# file that is new counts like those that are old.
EVERY_VARIANT = (
    "harness/model/layer.cc",
    "harness/train/deeper/loop.h",
    "harness/measure/speed.cc",
    "harness/child/one_cell.cc",
    "harness/plan/rounds.h",
    "harness/plan/something_new.cc",
    "harness/run/something_new.cc",
    "harness/process/something_new.cc",
    "harness/child/training_cell.cc",
    "harness/run/sweeper_rounds.cc",
    "harness/cell/source_hash.cc",
    "harness/room_of_the_future/clock.cc",
    "variants/api/attention.h",
    "variants/api/mixer.cc",
    "variants/api/mixer.h",
    "variants/softmax/linear.cc",  # an engine named like a variant is no variant
    "variants/softmax/deeper/tiles.inc",
    "variants/family/shared.h",
)
EVERY_TASK = ("tasks/api/task.h", "tasks/chances.h", "tasks/data/png.cc", "tasks/recall/deep/draws.h")
EVERYTHING = ("core/tensor/tensor.h", "core/simd/exp2.cc", "core/simd/rows/rows.h")
CHECKS = ("harness/check/algebra.cc", "variants/reference/attention.h")  # no figure depends on them
NOTHING = (
    "variants/catalog.h",
    "tasks/catalog.h",
    "harness/tables/table.cc",
    "harness/compare/times.cc",
    "harness/growth/growth.cc",
    "harness/crossing/search.cc",
    "harness/store/rows.cc",
    "harness/plan/profiles.cc",
    "harness/plan/profile_texts.cc.in",
    "harness/plan/sweep_file.cc",
    "harness/plan/toml_text.h",
    "harness/plan/rules.cc",
    "harness/plan/filter.cc",
    "harness/plan/costs.cc",
    "harness/plan/forecast.h",
    "harness/process/interrupt.cc",
    "harness/plan/labels.cc",
    "harness/run/noise_floors.cc",
    "harness/run/run.h",
    "harness/run/time_left.h",
    "harness/store/user_cache.cc",
    "variants/README.md",
    "variants/.full.cc.swp",
    "variants/softmax/full.cc~",
    "tests/core/tensor/tensor_test.cc",
)


@unittest.skipUnless(shutil.which("cmake"), "needs cmake")
class SourceHashes(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name, "tree")
        for path in (*EVERY_VARIANT, *EVERY_TASK, *EVERYTHING, *CHECKS, *NOTHING):
            self.write(path, "old\n")
        for folder, names in (("variants", VARIANTS), ("tasks", TASKS)):
            words = "".join(f"\n  {family}/{name}" for name, family in names.items())
            self.write(f"{folder}/CMakeLists.txt", f"# The list.\nset({folder}{words})\n")
            for name in names:
                self.write(self.own(f"{folder}/{name}"), f"{name}() {{}}\n")

    @staticmethod
    def own(plugin):
        """The file of "variants/full"."""
        folder, name = plugin.split("/")
        return f"{folder}/{(VARIANTS | TASKS)[name]}/{name}.cc"

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run_script(self):
        out = self.root.parent / "hashes.cc"
        command = ["cmake", f"-DROOT={self.root}", f"-DOUT={out}", "-P", SCRIPT]
        done = subprocess.run(command, capture_output=True, text=True)
        return done, out.read_text() if out.exists() else ""

    def hashes(self):
        done, text = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        found = dict(re.findall(r'\{"([^"]+)", "([0-9a-f]{16})"\}', text))
        wanted = {f"variants/{v}" for v in VARIANTS} | {f"tasks/{t}" for t in TASKS}
        wanted |= {"variants/", "tasks/", "harness/check"}  # the first two: of plug-ins loaded at run time
        self.assertEqual(set(found), wanted)
        self.assertEqual(len(set(found.values())), len(found))
        return found

    def changed(self, edit):
        """The plug-ins whose hash an edit changes."""
        before = self.hashes()
        edit()
        after = self.hashes()
        return {name for name in before if before[name] != after[name]}

    def test_a_shared_source_changes_all_that_depend_on_it(self):
        variants = {"variants/"} | {f"variants/{v}" for v in VARIANTS}
        tasks = {"tasks/"} | {f"tasks/{t}" for t in TASKS}
        for paths, wanted in (
            (EVERY_VARIANT, variants),
            (EVERY_TASK, tasks),
            (EVERYTHING, variants | tasks),
            (CHECKS, {"harness/check"}),
            (NOTHING, set()),
        ):
            for path in paths:
                with self.subTest(path):
                    edit = lambda path=path: self.write(path, f"new {path}\n")  # noqa: E731
                    self.assertEqual(self.changed(edit), wanted)

    def test_a_plug_in_s_own_file_changes_only_its_own(self):
        for name in (*(f"variants/{v}" for v in VARIANTS), *(f"tasks/{t}" for t in TASKS)):
            text = (self.root / self.own(name)).read_text()
            edit = lambda n=name, t=text: self.write(self.own(n), t + "// more\n")  # noqa: E731
            self.assertEqual(self.changed(edit), {name})

    def test_what_else_the_list_of_the_build_says_counts_nothing(self):
        listed = (self.root / "variants/CMakeLists.txt").read_text()
        more = "attn_library(variants SOURCES catalog.cc)\n"
        self.assertEqual(self.changed(lambda: self.write("variants/CMakeLists.txt", listed + more)), set())

    def test_files_that_come_move_or_go_count(self):
        variants = {"variants/"} | {f"variants/{v}" for v in VARIANTS}
        self.assertEqual(self.changed(lambda: self.write("variants/new.h", "")), variants)
        header = self.root / "variants/new.h"
        moved = lambda: header.rename(self.root / "variants/newer.h")  # noqa: E731
        self.assertEqual(self.changed(moved), variants)
        self.assertEqual(self.changed(lambda: (self.root / "variants/newer.h").unlink()), variants)

    def test_a_new_plug_in_leaves_the_others_alone(self):
        before = self.hashes()
        catalog = (self.root / "variants/CMakeLists.txt").read_text()
        self.write("variants/CMakeLists.txt", catalog.replace("full", "full scores/newer"))
        done, _ = self.run_script()
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "lists\\s+scores/newer")
        self.write("variants/scores/newer.cc", "newer() {}\n")
        done, text = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        after = dict(re.findall(r'\{"([^"]+)", "([0-9a-f]{16})"\}', text))
        self.assertEqual({**before, "variants/newer": after["variants/newer"]}, after)

    def test_the_real_tree_has_every_plug_in(self):
        out = self.root.parent / "hashes.cc"
        command = ["cmake", f"-DROOT={ROOT}", f"-DOUT={out}", "-P", SCRIPT]
        self.assertEqual(subprocess.run(command, capture_output=True).returncode, 0)
        text = out.read_text()
        for folder in ("variants", "tasks"):
            listed = (ROOT / folder / "CMakeLists.txt").read_text()
            names = re.findall(r"/(\w+)", listed[listed.index("set(") : listed.index(")")])
            self.assertGreater(len(names), 15)
            for name in names:
                self.assertIn(f'"{folder}/{name}"', text)
