"""scripts/regress in a small repository of its own, whose commits build a program that passes its words on to attnbench."""

from __future__ import annotations

import json
import subprocess
import sys

from ..faults import BUILT, EASY, PROGRAM, ROOT, SHAPE, FaultCase, read_rows

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(small NONE)
add_custom_target(attnbench COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/program ${PROJECT_BINARY_DIR}/attnbench)
"""
PRESETS = {
    "version": 3,
    "configurePresets": [{"name": "native", "generator": "Ninja", "binaryDir": "${sourceDir}/build/native"}],
}
# Passes its words on, then gives each time of the new rows figures of its own, `factor` times a hundredth of a millisecond.
PASSER = """#!{python}
import json, subprocess, sys
from pathlib import Path
words = sys.argv[1:]
mine, theirs = json.dumps({commit!r}), Path(__file__).with_name("commit")
if words[0] == "run" and (rows := Path(words[words.index("-o") + 1])).exists():  # the rest of a sweep
    rows.write_text(rows.read_text().replace('"commit":' + mine, '"commit":' + theirs.read_text()))
code = subprocess.run([{program!r}, *words]).returncode
if words[0] == "run" and code == 0:
    rows = Path(words[words.index("-o") + 1])
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    for line in lines:
        line.pop("checksum", None)
        if line["kind"] == "run":
            theirs.write_text(json.dumps(line["environment"]["commit"]))
        line["environment" if line["kind"] == "run" else "kind"] = (
            {{**line["environment"], "commit": {commit!r}}} if line["kind"] == "run" else "cell")
        if line.get("measure") == "speed":
            jitter = 1 + {jitter} * (int(rows.name.split(".")[1]) % 3)
            line["samples"] = [{factor} * 1e-5 * jitter * part for part in (0.999, 1, 1.001)]
            line["visits"] = [1, 1, 1]
            line.pop("noisy", None)
    rows.write_text("".join(json.dumps(line, separators=(",", ":")) + "\\n" for line in lines))
sys.exit(code)
"""
MEASURE = ["--", "-v", "mean", "-v", "linear", "--measure", "speed,memory", "--length", "16", *SHAPE, "--repetitions", "3"]


@BUILT
class Regress(FaultCase):
    def setUp(self) -> None:
        super().setUp()
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        (self.repository / "CMakeLists.txt").write_text(CMAKE)
        (self.repository / "CMakePresets.json").write_text(json.dumps(PRESETS))
        (self.repository / ".gitignore").write_text("/build/\n")
        self.git("init", "-q", "-b", "trunk")
        self.commit("same", 1.0)
        self.commit("slow", 1.2)

    def git(self, *words: str) -> None:
        names = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *names, *words], cwd=self.repository, check=True, capture_output=True)

    def commit(self, name: str, factor: float, jitter: float = 0.002) -> None:
        program = self.repository / "program"
        text = PASSER.format(python=sys.executable, program=str(PROGRAM), commit=name, factor=factor, jitter=jitter)
        program.write_text(text)
        program.chmod(0o755)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", name)
        self.git("tag", name)

    def regress(self, *words: str):
        # As scripts/regress starts it, but of this repository.
        start = "import runpy, sys, attnbench.regress.programs as p\nfrom pathlib import Path\n"
        start += f"p.ROOT = Path({str(self.repository)!r})\np.program_of.__defaults__ = (p.ROOT,)\n"
        start += "sys.argv[0] = 'regress'\nrunpy.run_module('attnbench.regress', run_name='__main__')\n"
        return subprocess.run(
            [sys.executable, "-c", start, *words],
            capture_output=True,
            text=True,
            cwd=self.repository,
            env={**self.environment(EASY), "PYTHONPATH": str(ROOT / "python")},
        )

    def test_a_slower_commit_is_a_regression(self) -> None:
        done = self.regress("same", "slow", "--rounds", "3", "-o", "rows", "--format", "json", *MEASURE)
        self.assertEqual(done.returncode, 3, done.stderr)
        report = json.loads(done.stdout)
        verdicts = {(pair["measure"], pair["verdict"]) for pair in report["pairs"]}
        self.assertEqual(verdicts, {("speed", "worse"), ("memory", "same")})
        for pair in report["pairs"]:
            if pair["measure"] == "speed":
                self.assertAlmostEqual(pair["value"], 1.2, delta=0.01)
                self.assertEqual(pair["basis"], "3 and 3 visits")
        rounds = [line for line in done.stderr.splitlines() if "round" in line]
        self.assertEqual(sorted(line.rpartition(" ")[2] for line in rounds), ["same"] * 3 + ["slow"] * 3)
        rows = read_rows(self.repository / "rows" / "base.jsonl")
        self.assertEqual([len(row["samples"]) for row in rows if row.get("measure") == "speed"], [9, 9])
        # The other way round the new program is the faster one, and its build is there already.
        done = self.regress("slow", "same", "--rounds", "2", *MEASURE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("faster", done.stdout)
        self.assertTrue((self.repository / "build" / "regress" / "rows" / "head.jsonl").is_file())

    def test_the_files_as_they_are(self) -> None:
        program = self.repository / "program"
        program.write_text(program.read_text().replace("1.2 * 1e-5", "3.0 * 1e-5"))
        done = self.regress("slow", ".", "--rounds", "2", "--format", "json", *MEASURE)
        self.assertEqual(done.returncode, 3, done.stderr)
        values = [pair["value"] for pair in json.loads(done.stdout)["pairs"] if pair["measure"] == "speed"]
        for value in values:
            self.assertAlmostEqual(value, 2.5, delta=0.02)
        done = self.regress("slow", "slow", "--rounds", "2", *MEASURE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("both are the same program", done.stderr)

    def test_undecided_times_get_more_rounds(self) -> None:
        """A change of 10 % among visits that scatter by 7 %: two rounds do not tell, sixteen do."""
        self.commit("scattered", 1.0, 0.07)
        self.commit("slower", 1.1, 0.07)
        short = self.regress("scattered", "slower", "--rounds", "2", "--max-time", "0s", "--strict", *MEASURE)
        self.assertEqual(short.returncode, 7, short.stderr)
        self.assertNotIn("undecided:", short.stderr)
        done = self.regress("scattered", "slower", "--rounds", "2", "-o", "rows", "--format", "json", *MEASURE)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("2 times are undecided: up to 2 rounds more of them", done.stderr)
        pairs = json.loads(done.stdout)["pairs"]
        self.assertEqual({pair["verdict"] for pair in pairs if pair["measure"] == "speed"}, {"worse"})
        rows = [row for row in read_rows(self.repository / "rows" / "base.jsonl") if row["kind"] == "cell"]
        self.assertEqual([row["measure"] for row in rows].count("memory"), 2, "measured once")
        self.assertGreaterEqual(min(len(row["visits"]) for row in rows if row["measure"] == "speed"), 4)
        later = read_rows(self.repository / "rows" / "base.3.jsonl")
        self.assertEqual({row.get("measure") for row in later if row["kind"] == "cell"}, {"speed"})

    def test_wrong_use_is_one_line(self) -> None:
        (self.repository / "file").write_text("")
        for words, code, told in (
            (["nowhere", "slow"], 2, "'nowhere' is no commit of this repository"),
            (["same", "slow", "--", "-o", "x"], 2, "-o after --"),
            (["same", "slow", "--", "--format=csv"], 2, "--format=csv after --"),
            (["same", "slow", "-o", "file"], 6, "cannot make the folder 'file'"),
        ):
            done = self.regress(*words)
            self.assertEqual((done.returncode, done.stdout), (code, ""), words)
            self.assertIn(told, done.stderr.splitlines()[-1])
        for words in (["same"], ["same", "slow", "--rounds", "1"], ["same", "slow", "--rounds", "two"], ["same", "slow", "--max-time", "5"]):
            self.assertEqual(self.regress(*words).returncode, 2, words)
        done = self.regress("same", "slow", "--rounds", "2", "--", "-v", "nothing")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("the sweep of", done.stderr.splitlines()[-1])
        self.commit("broken", 1)
        (self.repository / "CMakeLists.txt").write_text("nonsense(")
        self.git("commit", "-q", "-a", "-m", "broken")
        done = self.regress("same", "HEAD", *MEASURE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not build: cmake --preset failed", done.stderr.splitlines()[-1])
