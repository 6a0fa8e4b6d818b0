"""`attnbench new` outside and inside a source tree, and what it refuses; variants in Python as the program
sees them, without torch, by an interpreter that answers as the package does."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess

from ..faults import BUILT, PROGRAM, ROOT, InFolder, calibrated, validator
from .test_cli import attnbench

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
class New(InFolder):
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
        bench = ROOT / "scripts" / "bench"  # no Python of a clone has the package: scripts/bench finds it
        self.assertIn(f"  {bench} check python:switch.py:Switch\n", done.stdout)
        self.assertIn(f"  {bench} run -v full -v 'python:switch.py:Switch[window=32]' ", done.stdout)
        self.assertNotIn("  python switch.py", done.stdout)
        if not (ROOT / ".venv-python").exists():
            self.assertIn(f"  {ROOT / 'scripts' / 'setup'} --venv python", done.stdout)
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


SIGN = "\u2021"
TINY = ["--length", "64", "--heads", "1", "--head-dim", "16", "--measure", "memory,fidelity", "--quiet"]
FAKE = """#!/usr/bin/env python3
import json, os, re, subprocess, sys
what, file = sys.argv[3:5]
said = os.environ.get("FAKE_SAYS")
if said:
    print(said, file=sys.stderr)
    sys.exit(int(os.environ["FAKE_CODE"]))
text = open(file).read()
if what == "describe":
    promises = {name: False for name in ("exact", "causal", "cross", "padding", "convex", "permutable", "rowwise", "random", "fixed_length")}
    found = [{"attribute": name, "own": True, "summary": "a fake", "fault": "it is bad" if name == "Bad" else "",
              "params": [{"name": "scale", "default": 8.0, "help": "a number"}],
              "promises": {**promises, "causal": True, "multiple_of": 1}} for name in re.findall("class (\\\\w+)", text)]
    print(json.dumps({"python": "3.99.0", "torch": "9.9.9", "variants": found}))
    sys.exit()
request = json.load(sys.stdin)
if what == "check":
    print(json.dumps({"results": [["python_cosine", "exact", "failed" if "RED" in text else "passed", "as asked"]]}))
elif what == "weights":
    print(json.dumps({"weights": [{"name": "scale", "shape": [4, 1, 1], "learned": True}]}))
elif request["do"] == "check":
    print(json.dumps({"status": "ok", "reason": None, "red": None, "detail": ""}))
elif "FAILS" in text and request["do"] == "measure":
    print(json.dumps({"status": "failed", "reason": "KeyError: 'my own words'"}))
else:
    for place in (request.get("key") or {}), request:
        if place.get("variant"):
            place["variant"] = {"name": "full", "params": {"kernel": "tiled"}}
    sys.exit(subprocess.run([os.environ["FAKE_PROGRAM"], "cell"], input=json.dumps(request), text=True).returncode)
"""


@BUILT
class PythonVariants(InFolder):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "fake").write_text(FAKE)
        (self.folder / "fake").chmod(0o755)
        self.write("class Cosine: pass\nclass Bad: pass\n")

    def write(self, text: str, name: str = "mine.py") -> None:
        (self.folder / name).write_text(text)

    def attnbench(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        fake = {"ATTNBENCH_PYTHON": str(self.folder / "fake"), "FAKE_PROGRAM": str(PROGRAM), "XDG_CACHE_HOME": str(self.folder)}
        return subprocess.run(
            [PROGRAM, *words], capture_output=True, text=True, cwd=self.folder, env={**calibrated({**os.environ}), **fake, **variables}
        )

    def rows(self, name: str = "a.jsonl") -> list[dict]:
        lines = [json.loads(line) for line in (self.folder / name).read_text().splitlines()]
        for line in lines:
            validator().validate(line)
        self.head = lines[0]
        return [line for line in lines if line["kind"] == "cell"]

    def test_rows_say_where_they_come_from_and_tables_mark_them(self) -> None:
        sweep = ["run", "-v", "full", "-v", "python:mine.py:Cosine[scale=[4,8]]", *TINY, "-o", "a.jsonl"]
        done = self.attnbench(*sweep)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.rows()
        ours = [row for row in rows if row["variant"]["name"] == "python_cosine"]
        self.assertEqual((len(rows), len(ours)), (6, 4))
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        self.assertEqual({row["provided_by"] for row in ours}, {"python"})
        self.assertEqual({row["ledger"]["kernel"] for row in ours}, {"torch 9.9.9"})
        self.assertEqual({row["variant"]["params"]["scale"] for row in ours}, {4.0, 8.0})
        entry = {"variant": "python_cosine", "file": "mine.py", "name": "Cosine", "python": "3.99.0", "torch": "9.9.9"}
        self.assertEqual([{**p, "hash": None} for p in self.head["config"]["python"]], [{**entry, "hash": None}])
        self.assertEqual({p["hash"] for p in self.head["config"]["python"]}, {row["plugin"] for row in ours})
        for format, count in (("table", 2), ("md", 2)):
            text = self.attnbench("table", "a.jsonl", "--format", format).stdout
            self.assertGreaterEqual(text.count("python_cosine"), 4)
            self.assertEqual(text.count("python_cosine"), text.count(f"python_cosine{SIGN}"), text)
            self.assertEqual(text.count(f"{SIGN}: written in Python"), count, text)
        self.assertIn("python\\_cosine\\ddag{}", self.attnbench("table", "a.jsonl", "--format", "latex").stdout)

        again = self.attnbench(*sweep)  # nothing is measured anew
        self.assertEqual((again.returncode, self.rows()), (0, rows), again.stderr)
        self.assertIn("python:mine.py:Cosine[scale=4]", self.attnbench("repro", "a.jsonl", ours[0]["cell"], "--print").stdout)
        other = self.attnbench("run", "-v", "full", "--length", "128", *TINY[2:], "-o", "a.jsonl")
        self.assertEqual((other.returncode, "--plugin python:FILE.py:NAME" in other.stderr), (2, True), other.stderr)
        self.write("class Cosine: pass  # another\n")
        changed = self.attnbench(*sweep, "--dry-run", "--format", "json")
        ids = {row["cell"] for row in json.loads(changed.stdout) if row["variant"]["name"] == "python_cosine"}
        self.assertEqual(len(ids), 4)
        self.assertTrue(ids.isdisjoint(row["cell"] for row in ours))

    def test_a_sweep_file_and_plugin_name_it_too(self) -> None:
        self.write('[[sweep]]\nmeasure = "memory"\nvariants = ["python:mine.py:Cosine[scale=2]"]\n'
                   "axes = {length = 64, heads = 1, head_dim = 16}\n", "sweep.toml")  # fmt: skip
        done = self.attnbench("run", "sweep.toml", "-o", "a.jsonl", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["variant"]["params"] for row in self.rows()], [{"scale": 2.0}])
        named = self.attnbench("run", "-v", "python_cosine", "--plugin", "python:mine.py:Cosine", *TINY, "--dry-run")
        self.assertEqual(named.returncode, 0, named.stderr)

    def test_list_info_and_check(self) -> None:
        listed = self.attnbench("list", "python:mine.py")
        self.assertIn("python:mine.py:Cosine\n", listed.stdout)
        self.assertNotIn("Bad", listed.stdout)
        self.assertIn("of mine.py", self.attnbench("list", "variants", "--plugin", "python:mine.py:Cosine").stdout)
        info = self.attnbench("info", "python:mine.py:Cosine")
        for words in ("a fake", "mine.py, Cosine (Python 3.99.0, torch 9.9.9)", "scale", "[4,1,1]", "learned"):
            self.assertIn(words, info.stdout)
        shown = json.loads(self.attnbench("info", "python:mine.py:Cosine", "--json").stdout)
        self.assertEqual((shown["provided_by"], shown["weights"][0]["name"]), ("python", "scale"))
        self.assertEqual(self.attnbench("check", "python:mine.py:Cosine").returncode, 0)
        self.write("class Cosine: pass  # RED\n")
        red = self.attnbench("check", "python:mine.py:Cosine")
        self.assertEqual((red.returncode, "as asked" in red.stdout), (5, True))

    def test_a_cell_that_fails_is_a_row_with_its_reason(self) -> None:
        self.write("class Cosine: pass  # FAILS\n")
        done = self.attnbench("run", "-v", "python:mine.py:Cosine", *TINY, "-o", "a.jsonl")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual({(r["status"], r["reason"]) for r in self.rows()}, {("failed", "KeyError: 'my own words'")})

    def test_what_is_missing_is_told_in_one_line(self) -> None:
        self.write("class COSINE: pass\n", "other.py")
        spec, broken = "python:mine.py:Cosine", {"FAKE_CODE": "2", "FAKE_SAYS": "/x/python has no torch, in which"}
        for code, words, names, variables in (
            (2, "no program", [spec], {"ATTNBENCH_PYTHON": "/no/such/python"}),
            (2, "does not run the package attnbench (No module named attnbench)", [spec], {**broken, "FAKE_CODE": "1", "FAKE_SAYS": "No module named attnbench"}),
            (2, "has no torch", [spec], broken),
            (6, "cannot read 'absent.py'", ["python:absent.py:Cosine"], {}),
            (2, "no class or function 'Cosin'; nearest is 'Cosine'", ["python:mine.py:Cosin"], {}),
            (2, "mine.py:Bad: it is bad", ["python:mine.py:Bad"], {}),
            (2, "write python:FILE.py:NAME", ["python:mine.py"], {}),
            (2, "unknown parameter 'scal'", [spec + "[scal=1]"], {}),
            (2, "would both be called python_cosine", [spec, "python:other.py:COSINE"], {}),
        ):
            with self.subTest(words):
                done = self.attnbench("run", *(w for n in names for w in ("-v", n)), *TINY, "-o", "none.jsonl", **variables)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), done.stderr)
                self.assertIn(words, done.stderr)
        self.assertFalse((self.folder / "none.jsonl").exists())
