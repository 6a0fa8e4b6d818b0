"""docs/python.md: every Python example runs, in its order. docs/notebooks: each runs from its first cell to its
last in a kernel, in at most a minute of processor time a core."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

try:
    import torch  # noqa: F401: the page's examples use it
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None
try:
    import nbclient
    import nbformat
except ImportError:
    nbclient = None

from attnbench._program import environment, program

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "python.md"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


class Documents(unittest.TestCase):
    def test_every_example_runs(self) -> None:
        blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
        self.assertGreaterEqual(len(blocks), 6)
        names: dict[str, object] = {}
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for block in blocks:
                if named := re.match(r"# (\w+\.py)\n", block):  # a file, which commands name
                    Path(named[1]).write_text(block, encoding="utf-8")
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    exec(compile(block, str(PAGE), "exec"), names)  # the page is ours
                if "print(" in block:
                    self.assertTrue(said.getvalue(), block)
            report = checked("python:mine.py:Cosine")
            os.chdir(before)
        self.assertEqual(report.returncode, 0, report.stdout + report.stderr)


def checked(spec: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program(), "check", spec, "--quick", "--quiet"], capture_output=True,
                          text=True, env=environment())  # fmt: skip


@unittest.skipUnless(nbclient, "nbclient or nbformat is not installed")
class Notebooks(unittest.TestCase):
    def test_each_runs(self) -> None:
        self.assertGreaterEqual(len(NOTEBOOKS), 3)
        for path in NOTEBOOKS:
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder:
                before = os.times()
                notebook = nbformat.read(path, as_version=4)
                client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3",
                                                 resources={"metadata": {"path": folder}})  # fmt: skip
                client.execute()
                nbformat.validate(notebook)
                after = os.times()
                spent = after.children_user + after.children_system - before.children_user - before.children_system
                self.assertLess(spent, 120)  # of two cores
                shown = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
                pictures = [o for o in shown if "data:image/png" in o.get("data", {}).get("text/html", "")]
                self.assertTrue(pictures, f"{path.name} shows no picture")
