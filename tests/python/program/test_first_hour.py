"""What a new user meets in the first hour: hints instead of dead ends, defaults that can be run, no silence;
and habits of the shell: completion by bash itself, the manual page, help on topics, doctor."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

from ..faults import BUILT, PROGRAM, ROOT, InFolder, read_terminal
from .test_cli import TINY, attnbench

MODEL = "width=16,heads=1,layers=1,feed_forward=16,batch=8,steps=2,validation_examples=8,test_examples=8"
TASK = "mqar[vocab=32,pairs=2,length=16,train_examples=64]"


class FirstHour(InFolder):
    def run_ok(self, *arguments: str, new: bool = False) -> subprocess.CompletedProcess:
        done = attnbench(*arguments, cwd=self.folder, new=new)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def planned(self, *arguments: str) -> list[dict]:
        return json.loads(self.run_ok("run", *arguments, "-n", "--format", "json").stdout)

    def test_a_slip_is_answered_with_what_was_meant(self) -> None:
        cases = (
            (["-v", "mqar"], "'mqar' is a task, not a variant: use -t mqar"),
            (["-t", "full"], "'full' is a variant, not a task: use -v full"),
            (["-v", "full,linear"], "'full,linear' names more than one.*-v full -v linear"),
            (["-v", "full", "--device", "cuda"], "'device'; .*processor alone"),
            (["-v", "full", "--max-memory", "8"], "'8' has no unit; write 8M or 8G"),
            (["-v", "full", "-t", TASK, "--train", "{'steps': 4}"], "neither settings.* nor a row's"),
        )
        for arguments, expected in cases:
            done = attnbench("run", *arguments, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertRegex(done.stderr, expected)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_lengths_may_be_written_as_on_the_axes(self) -> None:
        cells = self.planned("-v", "full", "--length", "64k,1k:4k:*2,100")
        self.assertEqual(
            [cell["axes"]["length"] for cell in cells], [65536, 1024, 2048, 4096, 100]
        )
        cells = self.planned("-v", "linear", "-t", "mqar[length=1k]")
        self.assertEqual(cells[0]["task"]["params"]["length"], 1024)

    def test_a_task_is_its_standard_level_unless_another_is_named(self) -> None:
        def params(task: str) -> dict:
            return self.planned("-v", "linear", "-t", task)[0]["task"]["params"]

        for task in ("text", "listops", "image", "mqar", "pathfinder", "sort"):
            self.assertEqual(params(task), params(f"{task}[preset=standard]"), task)
        self.assertEqual(params("text[preset=lra]")["length"], 4000)
        self.assertEqual(params("listops[max_depth=3]")["length"], 200)
        shown = json.loads(self.run_ok("info", "text", "--json").stdout)
        defaults = {param["name"]: param["default"] for param in shown["params"]}
        self.assertEqual(defaults["length"], 1024)
        self.run_ok("sample", "listops[max_depth=4]", "--count", "3")

    def test_a_profile_lends_no_grid_to_a_variant_that_is_named(self) -> None:
        cells = self.planned("--profile", "quick", "--measure", "speed", "-v", "full")
        kernels = {cell["variant"]["params"]["kernel"] for cell in cells}
        self.assertEqual(kernels, {"tiled"})

    def test_a_dry_run_has_every_format(self) -> None:
        arguments = ["run", *TINY, "-n", "--format"]
        cells = json.loads(self.run_ok(*arguments, "json").stdout)
        self.assertEqual([cell["axes"]["length"] for cell in cells], [64, 128])
        self.assertGreater(cells[0]["forecast_s"], 0)
        self.assertEqual(len(self.run_ok(*arguments, "csv").stdout.splitlines()), 3)
        self.assertIn("|---|", self.run_ok(*arguments, "md").stdout)

    def test_lines_name_what_varies(self) -> None:
        command = ["run", "-v", "linear", "-t", TASK, "-n", "--train", MODEL]
        lines = self.run_ok(*command, "--seed", "0,1").stdout.splitlines()
        self.assertEqual(len({line.split(" ", 1)[1] for line in lines}), 2, lines)
        self.assertIn(" seed=1 ", lines[1])
        self.assertNotIn("threads", lines[1])
        lines = self.run_ok(*command[:-1], f"{MODEL},learning_rate=[1e-3,2e-3]").stdout.splitlines()
        self.assertIn(" learning_rate=0.002 ", lines[1])
        lines = self.run_ok("run", "-v", "linear", "-t", "text[preset=small]", "-n").stdout
        self.assertIn("accuracy linear on text[preset=small] ", lines)

    def test_a_point_is_reproduced_from_its_row(self) -> None:
        self.run_ok("run", "-v", "linear", "-t", TASK, "--train", MODEL, "-o", "r.jsonl")
        row = json.loads((self.folder / "r.jsonl").read_text().splitlines()[1])
        cells = self.planned("-v", "linear", "-t", TASK, "--train", json.dumps(row["training"]))
        self.assertEqual([cell["cell"] for cell in cells], [row["cell"]])

    def test_help_tells_defaults(self) -> None:
        said = self.run_ok("run", "--help").stdout
        for expected in (
            "tokens of a sequence; default 1024",
            "attention heads; default 4",
            "default speed, with -t accuracy",
            "steps=2000",
            "attnbench info training",
        ):
            self.assertIn(expected, said)
        settings = json.loads(self.run_ok("info", "training", "--json").stdout)["params"]
        self.assertIn("learning_rate", {setting["name"] for setting in settings})
        self.assertIn("steps of linear warm-up", self.run_ok("info", "training").stdout)

    def test_a_piped_run_says_its_phases_and_verbose_its_cells(self) -> None:
        said = self.run_ok("run", *TINY, "-o", "a.jsonl", new=True).stderr
        self.assertRegex(said, r"(?m)^calibration")
        self.assertRegex(said, r"(?m)^contract checks: 1 subject")
        self.assertRegex(said, r"(?m)^memory: 2 cells; about .* left")
        self.assertNotIn("[1/2]", said)
        said = self.run_ok("run", *TINY, "-o", "b.jsonl", "--verbose").stderr
        self.assertRegex(said, r"\[1/2\] memory linear length=128 ok")

    def test_a_failure_is_named_at_once(self) -> None:
        arguments = ["-v", "full", "--measure", "memory", "--length", "4k", "--max-memory", "1M"]
        done = attnbench("run", *arguments, "-o", "r.jsonl", cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\[1/1\] memory full length=4096 oom")

    def test_a_file_is_reused_and_widened(self) -> None:
        self.run_ok("run", *TINY, "-o", "r.jsonl")
        again = self.run_ok("run", *TINY, "-o", "r.jsonl")
        self.assertIn("2 of 2 cells reused", again.stderr)
        wider = [word.replace("64,128", "64,128,256") for word in TINY]
        said = self.run_ok("run", *wider, "-v", "full", "-o", "r.jsonl").stderr
        self.assertIn("2 of 6 cells reused", said)
        rows = [json.loads(line) for line in (self.folder / "r.jsonl").read_text().splitlines()]
        self.assertEqual([row["kind"] for row in rows].count("run"), 2)
        self.assertEqual(len({row["run"] for row in rows}), 1)

    def ask(self, answer: str) -> tuple[int, str]:
        """Runs what would take hours on a terminal that answers."""
        master, slave = pty.openpty()
        command = [PROGRAM, "run", "-v", "full", "-t", "text[preset=lra]", "--train", "steps=1000000"]
        run = subprocess.Popen(
            command, stdin=slave, stdout=subprocess.DEVNULL, stderr=slave, cwd=self.folder
        )
        os.close(slave)
        os.write(master, answer.encode())
        said = read_terminal(master)
        return run.wait(timeout=60), said.decode()

    def test_a_long_run_asks_first(self) -> None:
        code, said = self.ask("n\n")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"takes about .* accuracy on text\[preset=lra\]")
        self.assertIn("run it? [y/N]", said)
        self.assertIn("nothing was run", said)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_traits_and_states_are_explained(self) -> None:
        self.assertIn("cannot decode", self.run_ok("info", "linformer").stdout)
        self.assertIn("bytes of state to decode", self.run_ok("info", "full").stdout)
        self.assertRegex(self.run_ok("info", "full").stdout, r"convex +an output is a weighted mean")

    def test_what_ignores_keys_has_no_error_against_exact_attention(self) -> None:
        array = np.random.default_rng(0).normal(size=(1, 2, 8, 4)).astype(np.float32)
        for name in "qkv":
            np.save(self.folder / f"{name}.npy", array)
        inputs = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--out", "o.npy"]
        said = self.run_ok("apply", "-v", "reformer", *inputs).stdout
        self.assertIn("no error against exact attention: reformer ignores keys", said)
        self.assertRegex(self.run_ok("apply", "-v", "linear", *inputs).stdout, "relative error")

    def test_one_block_of_sinkhorn_is_said_to_be_exact(self) -> None:
        arguments = ["-v", "full", "-v", "sinkhorn[block=64]", "--measure", "memory"]
        said = self.run_ok("run", *arguments, "--length", "64", "-o", "r.jsonl").stdout
        self.assertIn("sinkhorn sees every position at length 64", said)

    def test_tables_end_with_what_matters(self) -> None:
        arguments = ["-v", "full", "-v", "linear", "--measure", "speed,memory", "--heads", "1"]
        arguments += ["--head-dim", "16", "--length", "64,128", "--repetitions", "1", "-q"]
        said = self.run_ok("run", *arguments, "-o", "r.jsonl").stdout
        closing = said[said.rindex("in short") :].splitlines()
        self.assertLessEqual(len(closing), 10)
        self.assertIn("memory at 128, full = 1", closing[1])
        self.assertNotIn("parity ledger", said)
        said = self.run_ok("run", *arguments, "-o", "r.jsonl", "--ledger").stdout
        self.assertIn("parity ledger", said)


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
