"""What `advise` prints, what it says to wrong words, and which rows it reads where none are named."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from attnbench._place import program
from attnbench.advice import command
from attnbench.advice.kinds import KINDS, SOLVERS

from ..faults import ROOT
from .asking import answered, said
from .planted import EXACT, World, power

WORLD = World({"full": EXACT, **{f"linear{i}": power(2e-7 * (i + 1), 1.0) for i in range(5)}}, peaks={"full": power(2e3, 1.0)})
QUICK = ROOT / "results" / "reference" / "quick.jsonl"


class Command(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        without_program = mock.patch.object(command, "forecast", lambda _: "")
        without_program.start()
        self.addCleanup(without_program.stop)

    def test_three_lines_at_most_then_what_they_rest_on(self) -> None:
        code, out, err = said(WORLD.write(self.folder), "--length", "4096")
        lines = out.splitlines()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual([line[:12] for line in lines[1:4]], ["1. linear0: ", "2. linear1: ", "2. linear2: "])
        self.assertTrue(lines[0].startswith("forward at length 4096, not causal: take the first of these"))
        self.assertRegex(lines[1], r"×0\.04\d+ of exact attention's time \(0\.04\d+ to 0\.0\d+\), faster on 3 of 3 machines; memory not measured$")
        self.assertEqual(lines[4], "   and 2. linear3, 2. linear4")
        self.assertIn("rests on 3 machines (Planted CPU 1, 2 cores, 2 threads, AVX2 FMA; Planted CPU 2", lines[5])
        self.assertIn("18 times at length 4096, batch 1, 4 heads", lines[5])
        self.assertIn("no task was named", lines[-1])

    def test_explain_names_each_row_of_a_line(self) -> None:
        files = WORLD.write(self.folder)
        _, out, _ = said(files, "--length", "4096", "--explain")
        commands = [shlex.split(line) for line in out.splitlines() if " repro " in line]
        held = {cell for cell in re.findall(r'"cell": "(\w+)"', files[0].read_text(encoding="utf-8"))}
        self.assertEqual(len(commands), 9)  # three lines of three machines
        for words in commands:
            self.assertEqual((words[1], words[2] in map(str, files), words[3] in held), ("repro", True, True), words)

    def test_json_is_the_same_answer(self) -> None:
        files = WORLD.write(self.folder)
        answer, (_, out, _) = answered(files, "--length", "3000"), said(files, "--length", "3000")
        self.assertEqual(out.splitlines()[0], answer["text"])
        for line, found in zip(out.splitlines()[1:4], answer["lines"], strict=False):
            ratio = found["ratio"]
            told = f"×{ratio['value']:.3g} of exact attention's time ({ratio['low']:.3g} to {ratio['high']:.3g})"
            self.assertTrue(line.startswith(f"{found['place']}. {found['variant']}: {told}"), line)
            self.assertEqual(len(found["cells"]), 6)  # two lengths on three machines
        self.assertIn(answer["rests_on"]["text"], out)

    def test_wrong_words_get_a_line_that_names_them(self) -> None:
        files = WORLD.write(self.folder)
        for words, right in (
            (("--length", "8k"), "--length '8k' is no length; write a number of tokens such as 8192"),
            (("--length", "0"), "--length '0' is no length"),
            (("--length", "64", "--memory", "64"), "--memory '64' has no unit; write 64M or 64G"),
            (("--length", "64", "--memory", "0M"), "--memory '0M' is not an amount of memory"),
            (("--length", "64", "--mode", "decoding"), "expected forward, train, decode; did you mean decode?"),
            (("--length", "64", "--task", "recal"), "did you mean recall?"),
            (("--length", "64", "--task", "zzz"), "kinds are recall, copying"),
            ((), "--length"),
        ):
            code, out, err = said(files, *words)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn(right, err)

    def test_files_that_are_none(self) -> None:
        self.assertEqual(said([self.folder / "none.jsonl"], "--length", "64")[0], 6)
        (self.folder / "text.jsonl").write_text("hello\n", encoding="utf-8")
        self.assertEqual(said([self.folder / "text.jsonl"], "--length", "64")[0], 2)

    def test_words_may_stand_in_any_order(self) -> None:
        files = WORLD.write(self.folder)
        self.assertEqual(said([], "--length", "4096", *map(str, files)), said(files, "--length", "4096"))

    def test_without_rows_it_reads_the_newest_else_the_reference_rows_and_says_so(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(os.chdir, os.getcwd())
            os.chdir(self.folder)
            code, _, err = said([], "--length", "1024")
            self.assertEqual(code, 0)
            self.assertIn("reads the reference rows of the repository, quick, standard5, performance-avx512, settings", err)
            (self.folder / "results").mkdir()
            newest = WORLD.write(self.folder / "results")
            code, out, err = said([], "--length", "1024")
            self.assertIn(f"reads {newest[-1].resolve()}, the newest rows", err)
            self.assertIn("linear0", out)

    def test_the_kinds_name_tasks_that_there_are_and_all_of_them(self) -> None:
        text = (ROOT / "tasks" / "CMakeLists.txt").read_text(encoding="utf-8")
        tasks = set(re.findall(r"^  \w+/(\w+)\)?$", text.partition("attn_library")[0], re.MULTILINE))
        self.assertEqual({task for kind in KINDS.values() for task in kind.tasks}, tasks)
        solved = {f.stem: found[1] for f in (ROOT / "tasks").rglob("*.cc") if (found := re.search(r'\.solver = "(\w+)"', f.read_text(encoding="utf-8")))}
        self.assertEqual(SOLVERS, solved)

    @unittest.skipUnless(program().exists(), "the program is not built")
    def test_the_program_takes_every_command_that_it_says(self) -> None:
        asked = ("--length 16384", "--length 1500 --task tracking", "--length 1500 --task recall --memory 1G", "--length 512 --mode train --memory 1G",
                 "--length 512 --mode decode")  # fmt: skip
        commands = {found["run"] for words in asked for found in answered([QUICK], *words.split())["undecided"]}
        self.assertGreater(len(commands), 4)
        for one in commands:
            words = [str(program()), *shlex.split(one)[1:], "--dry-run"]
            done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{one}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
