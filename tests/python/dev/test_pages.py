"""Notebooks of docs/ that Jupyter reads, without outputs, in Python that compiles
(tests/python/package/test_documents.py executes them); results/packages.md is of the packages that are pinned
and of the reasons that are written down (making it needs .venv-packages); results/tasks.md is what the
program writes, and `info` gives every task's datasheet."""

from __future__ import annotations

import ast
import json
import os
import re
import tempfile
import unittest
from pathlib import Path

from PIL import Image

from attnbench.plots.rows.settings import is_error
from dev.packages.reasons import REASONS

from ..faults import BUILT, ROOT
from ..program.test_cli import attnbench

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
IMPORTED = {"attnbench", "numpy", "torch"}


class Notebooks(unittest.TestCase):
    def setUp(self) -> None:
        self.read = {path: json.loads(path.read_text(encoding="utf-8")) for path in NOTEBOOKS}
        self.assertGreaterEqual(len(self.read), 3)

    def cells(self, kind: str) -> list[tuple[str, str]]:
        """(name of the notebook, text) of its cells of a kind."""
        found = []
        for path, notebook in self.read.items():
            found += [(path.name, "".join(c["source"])) for c in notebook["cells"] if c["cell_type"] == kind]
        return found

    def test_the_format_is_jupyters(self) -> None:
        for path, notebook in self.read.items():
            with self.subTest(path.name):
                self.assertEqual((notebook["nbformat"], notebook["nbformat_minor"]), (4, 5))
                self.assertEqual(notebook["metadata"]["kernelspec"]["name"], "python3")
                ids = [cell["id"] for cell in notebook["cells"]]
                self.assertEqual(len(set(ids)), len(ids))
                self.assertRegex("".join(notebook["cells"][0]["source"]), "^# ")

    def test_nothing_of_the_machine_that_ran_them_is_kept(self) -> None:
        for path, notebook in self.read.items():
            with self.subTest(path.name):
                for cell in notebook["cells"]:
                    self.assertEqual(cell["metadata"], {})
                    if cell["cell_type"] == "code":
                        self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))
                self.assertNotRegex(path.read_text(encoding="utf-8"), r"/(home|root|work|tmp|Users)/")

    def test_the_code_compiles_and_imports_what_the_page_asks_for(self) -> None:
        for name, text in self.cells("code"):
            tree = ast.parse(text, name)
            for node in ast.walk(tree):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                self.assertLessEqual({n.split(".")[0] for n in names}, IMPORTED, name)

    def test_links_lead_somewhere_and_each_notebook_is_linked(self) -> None:
        for name, text in self.cells("markdown"):
            for target in re.findall(r"\]\(([^)#]+)", text):
                self.assertTrue((ROOT / "docs" / "notebooks" / target).exists(), f"{name}: {target}")
        for page in ("README.md", "docs/python.md"):
            text = (ROOT / page).read_text(encoding="utf-8")
            for path in NOTEBOOKS:
                self.assertIn(f"notebooks/{path.name}", text, page)


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        self.page = (ROOT / "results" / "packages.md").read_text(encoding="utf-8")
        self.rows = re.findall(r"^\| ([a-z0-9-]+) ([0-9.]+) \|.*\| (.*) \|$", self.page, re.M)
        self.assertGreaterEqual(len(self.rows), 12)

    def test_versions_are_those_that_are_pinned(self) -> None:
        pinned = (ROOT / "scripts" / "requirements-packages.txt").read_text().splitlines()
        for package, version, _ in self.rows:
            self.assertIn(f"{package}=={version}", pinned)
        python = (ROOT / "scripts" / "requirements-python.txt").read_text().splitlines()
        for name in ("torch", "numpy"):
            self.assertEqual([p for p in pinned if p.startswith(f"{name}==")], [p for p in python if p.startswith(f"{name}==")])

    def test_each_red_check_has_its_reason(self) -> None:
        red = {(package, check) for package, _, checks in self.rows for check in re.findall(r"`(\w+)`", checks)}
        self.assertEqual(red, set(REASONS))
        for (package, check), reason in REASONS.items():
            self.assertIn(f"- **{package}, `{check}`**: {reason} The check says: ", self.page)

    def test_the_words_of_the_page_are_those_of_the_command(self) -> None:
        source = (ROOT / "scripts" / "dev" / "packages" / "__main__.py").read_text(encoding="utf-8")  # imports the packages
        head, tail = (re.search(f'^{name} = """(.*?)"""', source, re.M | re.S)[1] for name in ("HEAD", "TAIL"))
        self.assertTrue(self.page.startswith(head))
        self.assertIn(tail.partition("{torch}")[0], self.page)

    def test_each_package_has_its_adapter(self) -> None:
        adapters = (ROOT / "scripts" / "dev" / "packages" / "adapters.py").read_text(encoding="utf-8")
        self.assertEqual([p for p, _, _ in self.rows], re.findall(r'^    "([a-z0-9-]+)": \(', adapters, re.M))


ALL = bool(os.environ.get("ATTN_GOLDEN_ALL"))
SOON = ("mqar", "copy", "induction", "parity", "listops")


@BUILT
class TasksPage(unittest.TestCase):
    maxDiff = 2000

    def test_is_not_stale(self) -> None:
        """Every task with scripts/test --all; else those whose shortcuts are soon fitted."""
        page = (ROOT / "results" / "tasks.md").read_text(encoding="utf-8")
        stale = "stale: attnbench info tasks --markdown > results/tasks.md"
        for name in ("tasks",) if ALL else SOON:
            written = attnbench("info", name, "--markdown")
            self.assertEqual((written.returncode, written.stderr), (0, ""))
            if ALL:
                self.assertEqual(page, written.stdout, stale)
            else:
                self.assertIn(written.stdout.strip(), page, stale)

    def test_names_every_task_with_its_presets(self) -> None:
        page = (ROOT / "results" / "tasks.md").read_text(encoding="utf-8")
        for task in json.loads(attnbench("list", "tasks", "--json").stdout)["tasks"]:
            self.assertIn(f"## {task['name']}\n", page)
            for preset in task["presets"]:
                self.assertIn(f"`{task['name']}[preset={preset['name']}]`", page)

    def test_says_which_tasks_are_controls(self) -> None:
        """So do `list` and `info`, as text and as JSON. That a shortcut solves these tasks and no
        others is tested beside the tasks, and read off the page here."""
        page = (ROOT / "results" / "tasks.md").read_text(encoding="utf-8")
        tasks = json.loads(attnbench("list", "tasks", "--json").stdout)["tasks"]
        self.assertEqual(
            {t["name"] for t in tasks if t["control"]}, {"majority", "memorization", "adding"}
        )
        listed = attnbench("list", "tasks").stdout
        for task in tasks:
            said = f"control: {task['control']} solves this task; lift would say nothing"
            (section,) = re.findall(rf"^## {task['name']}\n(.*?)(?=^## |\Z)", page, re.S | re.M)
            entry = listed.partition(f"\n  {task['name']} ")[2].partition("parameters:")[0]
            for where in (section, entry):
                self.assertEqual(said in where, task["control"] is not None, task["name"])
            rows = section.partition("| scores without attention |")[2].split("\n\n")[0]
            scores = [float(x) for x in re.findall(r"\| ([0-9.]+) \|$", rows, re.M)]
            chance, *shortcuts = scores
            error = is_error(task["metric"])
            solved = [score <= 0.01 * chance if error else score >= 0.99 for score in shortcuts]
            self.assertEqual(any(solved), task["control"] is not None, task["name"])
        for name in ("majority", "parity"):
            self.assertEqual("control: " in attnbench("info", name).stdout, name == "majority")
            sheet = json.loads(attnbench("info", name, "--json").stdout)
            self.assertEqual(sheet["control"] is not None, name == "majority")

    def test_rows_of_a_control_have_no_lift(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["run", "-v", "mean", "--train"]
            arguments += [
                "steps=2,batch=4,width=16,heads=1,test_examples=64,validation_examples=64"
            ]
            arguments += ["-t", "majority[length=15]", "-t", "parity[length=12]", "-o", "r.jsonl"]
            done = attnbench(*arguments, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = map(json.loads, Path(folder, "r.jsonl").read_text().splitlines()[1:])
            found = {row["task"]["name"]: row["metrics"] for row in rows}
            self.assertIsNone(found["majority"]["lift"])
            self.assertEqual(found["majority"]["control"], "a bag of tokens")
            self.assertIsInstance(found["parity"]["lift"], float)
            self.assertNotIn("control", found["parity"])
            score = r"0\.\d{3}† ±0\.\d{3}"  # cut off after two steps
            lift = r"\([+-]0\.\d{3}\)"
            self.assertRegex(done.stdout, rf"mean +{score} \(control\) +{score} {lift}")
            self.assertIn("majority is a control: a bag of tokens solves it", done.stdout)


@BUILT
class Datasheet(unittest.TestCase):
    def test_counts_add_up(self) -> None:
        sheet = json.loads(attnbench("info", "mqar[preset=small]", "--json").stdout)
        self.assertEqual(sheet["examples"], 1000)
        labels = sum(sheet["labels"].values())
        self.assertEqual(labels, 1000 * 4)
        self.assertEqual(sum(b["labels"] for b in sheet["distances"]), labels)
        self.assertEqual(sheet["lengths"], {"shortest": 64, "mean": 64.0, "longest": 64})
        self.assertEqual(sheet["shape"]["length"], 64)

    def test_counts_inputs_that_splits_would_share(self) -> None:
        few = "listops[length=8,min_length=3,max_depth=2]"
        tiny = json.loads(attnbench("info", few, "--json").stdout)
        self.assertGreater(tiny["duplicates"], 100)
        self.assertEqual(json.loads(attnbench("info", "mqar", "--json").stdout)["duplicates"], 0)

    def test_presets_give_way_to_parameters(self) -> None:
        sheet = json.loads(attnbench("info", "mqar[preset=small,length=32]", "--json").stdout)
        self.assertEqual((sheet["shape"]["length"], sheet["shape"]["vocab"]), (32, 64))
        wrong = attnbench("info", "mqar[preset=smal]")
        self.assertEqual((wrong.returncode, len(wrong.stderr.splitlines())), (2, 1))
        self.assertIn("small", wrong.stderr)

    def test_figures_of_data_that_is_read_count_what_is_there(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made = ["sample", "retrieval[preset=small]", "--format", "released", "--count", "7"]
            self.assertEqual(attnbench(*made, "-o", folder).returncode, 0)
            spec = f"retrieval[preset=small,data={folder}]"
            sheet = json.loads(attnbench("info", spec, "--json").stdout)
            self.assertEqual((sheet["examples"], sum(sheet["labels"].values())), (7, 7))
            shown = attnbench("info", spec).stdout
            self.assertRegex(shown, r"fitted on \d{1,2} examples and scored on 7\n")

    def test_forms_exclude_each_other(self) -> None:
        for forms in (["--json", "--markdown"], ["--json", "--picture", "/tmp/x.png"]):
            done = attnbench("info", "image", *forms)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)

    def test_picture(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "x.png"
            done = attnbench("info", "image[preset=small]", "--picture", str(file))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with Image.open(file) as picture:
                self.assertEqual((picture.size, picture.mode), ((16, 16), "L"))
                self.assertGreater(len(set(picture.tobytes())), 20)
            for wrong in (["listops", "--picture", str(file)], ["full", "--picture", str(file)]):
                done = attnbench("info", *wrong)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), wrong)
            done = attnbench("info", "image", "--picture", "/proc/x.png")
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (6, 1), done.stderr)
