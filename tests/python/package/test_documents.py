"""docs/python.md: every Python example runs, in its order."""

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

from attnbench._program import environment, program

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"


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


if __name__ == "__main__":
    unittest.main()
