"""docs/notebooks: notebooks that Jupyter reads, without outputs, in Python that compiles; tests/python/package/test_notebooks.py executes them."""

from __future__ import annotations

import ast
import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
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


if __name__ == "__main__":
    unittest.main()
