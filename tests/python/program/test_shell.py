"""Habits of the shell: completion by bash itself, the manual page, help on topics, doctor."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from ..faults import BUILT
from .test_cli import PROGRAM, ROOT, attnbench

# Asks bash's own completion for each line: what COMPREPLY holds then.
ASK = """
source <("$PROGRAM" completion bash)
while IFS= read -r line; do
  COMP_LINE="attnbench $line" COMP_POINT=$((10 + ${#line})) COMPREPLY=()
  _attnbench 2>/dev/null
  printf '%s\\t' "${COMPREPLY[@]}"
  echo
done
"""


@BUILT
class Shell(unittest.TestCase):
    def completed(self, *lines):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "attnbench").symlink_to(PROGRAM)
            done = subprocess.run(
                ["bash", "--norc", "-c", ASK],
                input="".join(line + "\n" for line in lines),
                capture_output=True,
                text=True,
                env={"PATH": f"{folder}:/usr/bin:/bin", "PROGRAM": str(PROGRAM)},
                cwd=folder,
            )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [line.split("\t")[:-1] for line in done.stdout.splitlines()]

    def test_bash_completes_verbs_options_names_and_parameters(self):
        asked = {
            "re": ["repro", "report"],
            "run --prof": ["--profile"],
            "run --profile q": ["quick"],
            "run -v linf": ["linformer"],
            "run -v linformer": ["linformer", "linformer["],
            "run -v linformer[ra": ["linformer[rank="],
            "run -v linformer[share_kv=": ["false", "true"],  # bash breaks words at '='
            "run -v linformer[rank=8,share_h": ["share_heads="],
            "run -t mq": ["mqar"],
            "run --measure speed,mem": ["speed,memory"],
            "run --mode forward,tr": ["forward,train"],
            "run --color=al": ["always"],
            "info trunc": ["truncated"],
            "sample index": [""],
            "list mach": ["machine"],
            "help exit": ["exit_codes"],
            "completion f": ["fish"],
            "table results": [""],
        }
        found = dict(zip(asked, self.completed(*asked), strict=True))
        # After '=', bash replaces what follows it, and the rest of the word stays.
        found["run -v linformer[rank=8,share_h"] = [
            word.removeprefix("8,") for word in found["run -v linformer[rank=8,share_h"]
        ]
        for line, words in asked.items():
            self.assertEqual(found[line] or [""], words, line)

    def test_every_verb_and_option_of_the_help_is_completed(self):
        verbs = re.findall(r"^  (\w+) +\S", attnbench("--help").stdout.split("\n\n")[2], re.M)
        self.assertGreater(len(verbs), 14)
        offered, *options = self.completed("", *(f"{verb} --" for verb in verbs))
        self.assertLessEqual(set(verbs), set(offered))
        for verb, words in zip(verbs, options, strict=True):
            told = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", attnbench(verb, "--help").stdout, re.M))
            self.assertEqual({*told, "--help"}, set(words), verb)

    def test_scripts_of_other_shells_are_right_where_the_shell_is_there(self):
        for shell, check in (("zsh", "-n"), ("fish", "--no-execute"), ("bash", "-n")):
            script = attnbench("completion", shell)
            self.assertEqual((script.returncode, script.stderr), (0, ""))
            self.assertIn("complete --", script.stdout)
            if shutil.which(shell):
                done = subprocess.run([shell, check], input=script.stdout, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)
        wrong = attnbench("completion", "csh")
        self.assertEqual((wrong.returncode, wrong.stderr.count("\n")), (2, 1))

    def test_the_manual_page_has_every_verb_and_is_read_without_a_warning(self):
        page = attnbench("help", "--man").stdout
        for verb in ("run", "check", "new", "doctor"):
            self.assertIn(f".SS attnbench {verb}", page)
        self.assertIn("\\-\\-plugin", page)
        if not shutil.which("groff"):
            self.skipTest("no groff")
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-Kutf8"], input=page, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("attnbench run", done.stdout)

    def test_topics_are_short_and_named_in_the_overview(self):
        overview = attnbench("help").stdout
        topics = sorted(p.stem for p in (ROOT / "docs" / "help").glob("*.txt"))
        self.assertGreaterEqual(len(topics), 6)
        for topic in topics:
            self.assertIn(topic, overview)
            told = attnbench("help", topic)
            self.assertEqual((told.returncode, told.stderr), (0, ""))
            text = (ROOT / "docs" / "help" / f"{topic}.txt").read_text()
            self.assertTrue(told.stdout.startswith(text), topic)
            self.assertLessEqual(len(text.splitlines()), 25, topic)
        wrong = attnbench("help", "plugin")
        self.assertEqual((wrong.returncode, wrong.stderr.count("\n")), (2, 1))
        self.assertIn("plugins", wrong.stderr)

    def test_doctor_tells_a_line_each(self):
        done = attnbench("doctor")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        subjects = {re.match(r"(?:ok    |advice) (\w+(?: \w+)?)  +\S", line)[1] for line in lines}
        self.assertEqual(len(subjects), len(lines))
        self.assertLessEqual({"compiler", "huge pages", "memory", "disk", "Python", "noise"}, subjects)
        enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
        if enabled.exists():
            (line,) = (line for line in lines if "huge pages" in line)
            self.assertEqual(line.startswith("advice"), "[never]" in enabled.read_text())


if __name__ == "__main__":
    unittest.main()
