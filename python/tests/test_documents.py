"""docs/python.md: every Python example runs, in its order."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path

try:
    import torch  # noqa: F401: the page's examples use it
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


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
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    exec(compile(block, str(PAGE), "exec"), names)  # the page is ours
                if "print(" in block:
                    self.assertTrue(said.getvalue(), block)
            os.chdir(before)


if __name__ == "__main__":
    unittest.main()
