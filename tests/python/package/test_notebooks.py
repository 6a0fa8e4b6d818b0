"""docs/notebooks: each runs from its first cell to its last in a kernel, in at most a minute of processor time a core."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path

try:
    import nbclient
    import nbformat
    import torch  # noqa: F401: one of the notebooks needs it
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed") from None

NOTEBOOKS = sorted((Path(__file__).resolve().parents[3] / "docs" / "notebooks").glob("*.ipynb"))


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


if __name__ == "__main__":
    unittest.main()
