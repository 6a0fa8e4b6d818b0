"""Plug-ins: one is built from an installed tree, outside the sources, and is listed, checked and measured; what does not fit is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from ..faults import BUILT, PROGRAM, ROOT, calibrated, validator

NAME = "own_scores"
LATE = ("late_fault", "bare_fault")
TINY = ["--length", "64", "--heads", "1", "--head-dim", "16", "--quiet"]
SIZE = {"length": 1024, "heads": 4, "head_dim": 64}  # for which `info` tells costs


def run(*command, cwd, **environment):
    variables = {**calibrated({**os.environ}), "XDG_CACHE_HOME": str(cwd), **environment}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=cwd, env=variables)


@BUILT
class Plugin(unittest.TestCase):
    """One folder, made by `new`, built once."""

    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory(prefix="attn-plugin-")
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
        prefix = cls.folder / "installed"
        cls.must("cmake", "--install", ROOT / "build" / "native", "--prefix", prefix)
        cls.program = prefix / "bin" / "attnbench"
        made = cls.must(cls.program, "new", "variant", NAME, "--family", "scores", "--out", "own")
        cls.files = sorted(p.name for p in (cls.folder / "own").iterdir())
        cls.steps = [line.strip() for line in made.stdout.splitlines() if line.startswith("  cmake")]
        for step in cls.steps:  # as it is printed
            cls.must("bash", "-c", step)
        cls.library = cls.folder / "own" / "build" / f"lib{NAME}.so"

    @classmethod
    def must(cls, *command):
        done = run(*command, cwd=cls.folder)
        if done.returncode:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
        return done

    def attnbench(self, *arguments, **environment):
        return run(self.program, *arguments, cwd=self.folder, **environment)

    def changed(self, name, *pairs):
        """A copy of the plug-in with some bytes in place of others."""
        contents = self.library.read_bytes()
        for old, new in pairs:
            self.assertIn(old, contents)
            contents = contents.replace(old, new)
        path = self.folder / name
        path.write_bytes(contents)
        return path

    def rows(self, path):
        lines = [json.loads(line) for line in (self.folder / path).read_text().splitlines()]
        for line in lines:
            validator().validate(line)
        return [line for line in lines if line["kind"] == "cell"]

    def measured(self, output, library, *more):
        return self.attnbench(
            "run", "-v", NAME, "--measure", "memory,fidelity", "-o", output, "--plugin", library, *TINY, *more
        )

    def test_a_plugin_is_one_source_and_four_lines(self):
        self.assertEqual(self.files, ["CMakeLists.txt", f"{NAME}.cc"])
        self.assertEqual(len((self.folder / "own" / "CMakeLists.txt").read_text().splitlines()), 4)

    def test_the_installed_program_knows_where_its_headers_are(self):
        folder = Path(self.must(self.program, "config", "--cmake").stdout.rstrip("\n"))
        self.assertEqual(folder, self.program.parents[1] / "lib" / "cmake" / "attnbench")
        self.assertTrue((folder / "attnbenchConfig.cmake").is_file())
        printed = dict(line.split(maxsplit=1) for line in self.must(self.program, "config").stdout.splitlines())
        self.assertEqual(printed["cmake"], str(folder))
        self.assertTrue((Path(printed["headers"]) / "variants/api/variant_info.h").is_file())

    def test_the_program_of_a_clone_has_none_and_says_what_installs_them(self):
        done = run(PROGRAM, "config", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn("'cmake --install build/native --prefix ~/attnbench' installs them", done.stderr)

    def test_is_listed_and_checked_in_float_and_in_double(self):
        listed = self.attnbench("list", "variants", "--plugin", self.library)
        self.assertIn(f"{NAME} ", listed.stdout)
        self.assertIn("of a plug-in", listed.stdout)
        self.assertNotIn(NAME, self.attnbench("list").stdout)
        checked = self.attnbench("check", NAME, "--quick", "--plugin", self.library)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertIn("(double)", checked.stdout)

    def test_the_variable_loads_it_too(self):
        listed = self.attnbench("list", "--json", ATTNBENCH_PLUGINS=f"{self.library}:{self.library}")
        variants = {v["name"]: v["provided_by"] for v in json.loads(listed.stdout)["variants"]}
        self.assertEqual((variants[NAME], variants["full"]), ("plugin", "native"))

    def test_the_programs_pool_and_counter_see_it(self):
        """A plug-in with a pool or a counter of its own would show nothing here."""
        done = self.attnbench("info", NAME, "--json", "--plugin", self.library)
        cost = json.loads(done.stdout)["cost"]
        pairs = SIZE["heads"] * SIZE["length"] ** 2
        self.assertEqual({name: cost[name] for name in SIZE}, SIZE)
        self.assertFalse(cost["declared"])
        self.assertEqual(cost["flops"], 4 * pairs * SIZE["head_dim"])  # two products
        self.assertGreaterEqual(cost["peak_bytes"], 2 * 4 * pairs)  # logits and weights in float

    def test_rows_tell_the_file_and_children_load_it(self):
        done = self.measured("first.jsonl", self.library)
        self.assertEqual(done.returncode, 0, done.stderr)
        first = self.rows("first.jsonl")
        self.assertEqual([row["status"] for row in first], ["ok", "ok"])
        self.assertEqual({row["provided_by"] for row in first}, {"plugin"})
        self.assertGreater(first[0]["metrics"]["peak_bytes"], 2 * 4 * 64 * 64)
        table = self.attnbench("table", "first.jsonl")  # without the plug-in
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertIn(NAME, table.stdout)

        again = self.changed("again.so", (b"attnbench_plugin_double\0", b"attnbench_plugin_double\0"))
        self.assertEqual(self.measured("same.jsonl", again).returncode, 0)
        self.assertEqual([r["cell"] for r in self.rows("same.jsonl")], [r["cell"] for r in first])

        other = self.folder / "other.so"  # bytes after the end are not loaded, but are of the file
        other.write_bytes(self.library.read_bytes() + b"\0")
        self.assertEqual(self.measured("other.jsonl", other).returncode, 0)
        ids = {row["cell"] for row in self.rows("other.jsonl")}
        self.assertTrue(ids.isdisjoint(row["cell"] for row in first))
        self.assertNotEqual(self.rows("other.jsonl")[0]["plugin"], first[0]["plugin"])
        self.refused(self.measured("first.jsonl", other), "other sources")
        self.refused(self.attnbench("run", "-v", "full", "--measure", "memory", "-o", "first.jsonl", *TINY), "--plugin")

    def refused(self, done, *words, code=2):
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def loads(self, path):
        return self.attnbench("list", "--plugin", path)

    def test_what_does_not_fit_is_refused_in_one_line(self):
        for name, new, words in (
            (b"version=0.", b"version=9.", ("built for attnbench 9.",)),
            (b"compiler=", b"compiler=x", ()),
            (b"real=float", b"real=quart", ("`real` is quart", "float")),
        ):
            old = name if len(new) == len(name) else name + b"g"
            self.refused(self.loads(self.changed("foreign.so", (old, new))), "foreign.so", *words)
        text = self.folder / "text.so"
        text.write_text("not a library")
        self.refused(self.loads(text), "no shared library")
        self.refused(self.loads(shutil.which("bash")), "no plug-in of attnbench")
        without = self.changed("without.so", (b"attnbench_plugin\0", b"attnbench_pluggin"[:16] + b"\0"))
        self.refused(self.loads(without), "attnbench_plugin")
        self.refused(self.loads("none.so"), "none.so", code=6)
        twice = shutil.copy(self.library, self.folder / "twice.so")
        self.refused(
            self.attnbench("list", "--plugin", self.library, "--plugin", twice), f"variant '{NAME}' already"
        )

    def late_faults(self):
        """A plug-in of variants that are right up to 1100 positions and wrong beyond."""
        folder = self.folder / "late"
        folder.mkdir()
        for name in LATE:
            shutil.copy(ROOT / "tests" / "harness" / "verify" / f"{name}.cc", folder)
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(late CXX)\nfind_package(attnbench REQUIRED)\n"
            f"attnbench_add_plugin(late VARIANTS {' '.join(f'{name}.cc' for name in LATE)})\n"
        )
        path = {"CMAKE_PREFIX_PATH": str(self.folder / "installed")}
        soon = ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG"]  # compiled, not when it runs
        for step in (["cmake", "-S", "late", "-B", "late/build", *soon], ["cmake", "--build", "late/build", "-j", "2"]):
            done = run(*step, cwd=self.folder, **path)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return folder / "build" / "liblate.so"

    def test_no_figure_of_an_answer_that_is_wrong_at_its_own_length(self):
        library = self.late_faults()
        for fault, mode in (("values", "forward"), ("gradient_k", "train"), ("decoder", "decode")):
            specs = [f"{name}[fault={{}}]".format(f"[none,{fault}]") for name in LATE]
            output = f"{fault}.jsonl"
            done = self.attnbench("run", *(word for spec in specs for word in ("-v", spec)), "--measure", "speed,memory",
                                  "--mode", mode, "--causal", "true", "--length", "2048", "--heads", "2", "--head-dim", "16",
                                  "--plugin", library, "-o", output)  # fmt: skip
            self.assertEqual(done.returncode, 5, done.stderr)
            for row in self.rows(output):
                if row["variant"]["params"]["fault"] == "none":
                    by = "reference" if row["variant"]["name"] == "late_fault" else "identities"
                    self.assertEqual((row["status"], row["verified"]["by"]), ("ok", by))
                    continue
                self.assertEqual((row["status"], row["gate"], row["metrics"]), ("failed", "red", None))
                self.assertIn("wrong answer at the shape that was measured", row["reason"])
            self.assertIn("~", done.stdout)  # beside what no reference was compared with
