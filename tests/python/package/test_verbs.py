"""The verbs that Python does, as a shell starts them: a full disk, Ctrl-C, a reader that left."""

from __future__ import annotations

import io
import subprocess
import sys
import unittest
from contextlib import redirect_stderr
from unittest import mock

from attnbench import __main__

from ..faults import BUILT, ROOT


class Ends(unittest.TestCase):
    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)

    def told(self, output: str) -> subprocess.CompletedProcess[str]:
        code = "from attnbench.plots.command import Parser; Parser('board', '').tell('x' * 100000)"
        return self.shell(f"PYTHONPATH=python '{sys.executable}' -c \"{code}\" {output}; echo ${{PIPESTATUS[0]}} >&2")

    def test_a_full_disk_is_one_line(self) -> None:
        self.assertEqual(self.told("> /dev/full").stderr.splitlines(), ["board: standard output: cannot be written: No space left on device", "6"])

    def test_a_reader_that_left_is_no_fault(self) -> None:
        self.assertEqual(self.told("| true").stderr.splitlines(), ["0"])

    def test_no_verb_prints_a_result_past_the_parser(self) -> None:
        for module in ("advice.command", "boards.command", "coverage.command", "bundles.submit", "bundles.verify"):
            with self.subTest(module):
                text = (ROOT / "python" / "attnbench" / f"{module.replace('.', '/')}.py").read_text()
                self.assertIn("parser.tell(", text)
                bare = [line for line in text.splitlines() if line.strip().startswith("print(") and "sys.stderr" not in line]
                self.assertLessEqual(len(bare), 1 if module == "bundles.verify" else 0, bare)  # the refusal in JSON

    def test_control_c_is_one_line(self) -> None:
        for verb, module in __main__.VERBS.items():
            with self.subTest(verb), mock.patch.object(__main__, "import_module", side_effect=KeyboardInterrupt), redirect_stderr(io.StringIO()) as err:
                self.assertEqual((__main__.main([verb]), err.getvalue()), (130, f"{verb}: interrupted\n"), module)

    @BUILT
    def test_the_program_too_takes_a_reader_that_left_for_no_fault(self) -> None:
        done = self.shell(f"PYTHONPATH=python '{sys.executable}' -m attnbench list variants --json | true; echo ${{PIPESTATUS[0]}}")
        self.assertEqual((done.stdout.strip(), done.stderr), ("141", ""))


if __name__ == "__main__":
    unittest.main()
