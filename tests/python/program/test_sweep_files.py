"""Sweep files on the real program (built-in ones, stdin, flags beside a file, resuming, errors that leave no
file), a tuned sweep from end to end, and `repro`: a row's command makes the same cell."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

from attnbench.plots.rows.read import read_rows as drawn_rows

from ..faults import BUILT, PROGRAM, ROOT, SHAPE, FaultCase, InFolder, read_rows
from .test_cli import attnbench, rows_of

TINY = """
# Größe: tiny
name = "tiny"
version = 4
[[sweep]]
measure = "memory"
variants = ["linear", "full"]
axes = { length = [64, 128], heads = [1, 2], head_dim = [16, 8] }
zip = ["heads", "head_dim"]
exclude = [{ variant = "full", length = ">64" }]
"""


def planned(*arguments: str, cwd: Path, text: str | None = None) -> list[dict]:
    command = [PROGRAM, "run", *arguments, "--dry-run", "--format", "json"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cwd)}
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=cwd, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@BUILT
class SweepFiles(InFolder):
    def write(self, text: str, name: str = "mine.toml") -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def run_in(self, *arguments: str):
        return attnbench(*arguments, cwd=self.folder)

    def test_a_built_in_profile_is_the_file_that_show_prints(self) -> None:
        names = [p["name"] for p in json.loads(self.run_in("list", "profiles", "--json").stdout)["profiles"]]
        self.assertEqual(names, ["smoke", "quick", "long", "probes", "baselines", "standard", "lra"])
        for name in names:
            shown = self.run_in("list", "profiles", "--show", name)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertEqual(shown.stdout, (ROOT / "profiles" / f"{name}.toml").read_text())
            file = self.write(shown.stdout)
            want = planned("--profile", name, cwd=self.folder)
            self.assertEqual(planned(file, cwd=self.folder), want, name)
            self.assertEqual(planned("-", cwd=self.folder, text=shown.stdout), want, name)

    def test_flags_beside_a_file_override_it_as_a_profile(self) -> None:
        file = self.write(self.run_in("list", "profiles", "--show", "quick").stdout)
        flags = ["--length", "96", "-v", "truncated", "-t", "mqar", "--seed", "5", "--measure", "speed,accuracy"]
        want = planned("--profile", "quick", *flags, cwd=self.folder)
        self.assertEqual(planned(file, *flags, cwd=self.folder), want)
        self.assertTrue(want)

    def test_rows_record_the_file_and_are_resumed_and_widened(self) -> None:
        file = self.write(TINY)
        done = self.run_in("run", file, "-o", "rows.jsonl", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = rows_of(self.folder / "rows.jsonl")
        self.assertEqual(len(rows), 1 + 6)
        self.assertEqual(rows[0]["argv"][0], file)
        config = rows[0]["config"]
        self.assertEqual((config["profile"], config["profile_version"]), ("tiny", 4))
        self.assertEqual(config["sweep_file"], TINY)
        shapes = {(r["axes"]["heads"], r["axes"]["head_dim"]) for r in rows[1:]}
        self.assertEqual(shapes, {(1, 16), (2, 8)})

        again = self.run_in("run", file, "-o", "rows.jsonl")
        self.assertIn("6 of 6 cells reused", again.stderr)
        self.assertEqual(rows_of(self.folder / "rows.jsonl"), rows)

        self.write(TINY.replace('">64"', '">128"'))  # the same axes; only the rule differs
        wider = self.run_in("run", file, "-o", "rows.jsonl")
        self.assertIn("6 of 8 cells reused", wider.stderr)
        now = rows_of(self.folder / "rows.jsonl")
        self.assertEqual([r["kind"] for r in now[7:]].count("run"), 1)
        self.assertEqual(len(now), 7 + 1 + 2)

    def test_rows_may_go_to_standard_output(self) -> None:
        done = subprocess.run(
            [PROGRAM, "run", "-", "-o", "-", "-q", "--length", "64", "-v", "linear"],
            input=TINY, capture_output=True, text=True, cwd=self.folder,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
        self.assertEqual(kinds, ["run", "cell", "cell"])

    def test_the_default_output_has_the_file_s_name(self) -> None:
        done = self.run_in("run", self.write(TINY), "-v", "linear", "--length", "64")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex([p.name for p in (self.folder / "results").glob("*.jsonl")][0], r"Z-mine\.jsonl$")

    def test_an_error_is_one_line_and_leaves_no_file(self) -> None:
        cases = (
            ("[[sweep]]\nvariants = 'lienar'", ["mine.toml:2:", "'lienar'", "'linear'"]),
            ("[[sweep]]\nlenght = 3", ["mine.toml:2:", "'lenght'", "'axes.length'"]),
            ("[[sweep]]\naxes.length = 'x:y:*2'", ["mine.toml:2:", "'x:y:*2'"]),
            ("[[[", ["mine.toml:1:"]),
            ("[" * 100_000, ["mine.toml:1:"]),
            ("x = " + "[" * 100_000, ["mine.toml:1:"]),
            ("a." * 100_000, ["mine.toml:1:", "16 dots"]),
            ("[[sweep]]\nname\u0430 = 1", ["mine.toml:2:", "'\u0430'"]),
            ("", ["mine.toml:1:", "[[sweep]]"]),
            (" " * 300_000, ["262144 bytes"]),
        )
        for text, words in cases:
            done = self.run_in("run", self.write(text))
            self.assertEqual((done.returncode, done.stdout), (2, ""), text[:80])
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertEqual([p.name for p in self.folder.iterdir()], ["mine.toml"])

    def test_wrong_use_is_named(self) -> None:
        file = self.write(TINY)
        for arguments, code, word in (
            (["run", "nothing.toml"], 6, "'nothing.toml'"),
            (["run", str(self.folder)], 6, str(self.folder)),
            (["run", "linear"], 2, "-v"),
            (["run", file, "--profile", "quick"], 2, 'extends = "quick"'),
            (["run", file, "other.toml"], 2, "other.toml"),
            (["list", "profiles", "--show", "quikc"], 2, "'quick'"),
            (["list", "--show", "quick"], 2, "list profiles --show quick"),
            (["run", file, "--heads", "4", "-n"], 2, "zip: heads has 1"),
            (["run", file, "-v", "full", "--length", "256", "-n"], 4, "nothing matched"),
        ):
            done = self.run_in(*arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(word, done.stderr)

    def test_thousands_of_cells_are_planned_at_once(self) -> None:
        """19152 cells took 18 s when each was forecast alone; they take 0.8 s. The bound is of processor time."""
        axes = 'length = "64:4096:*2", heads = [1,2,4], head_dim = [16,32,64], batch = [1,2], seed = "0:7:+1"'
        names = "'full', 'linear', 'performer', 'conv', 'recurrent', 'reformer', 'linformer[rank=[8,9,10,11,12,13,14,15,16,17,18,19]]'"
        file = self.write(f"[[sweep]]\nvariants = [{names}]\naxes = {{ {axes} }}")
        with open(self.folder / "cells.txt", "wb") as out:
            child = subprocess.Popen([PROGRAM, "run", file, "-n"], cwd=self.folder, stdout=out, stderr=out)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        self.assertIn("18144 cells", (self.folder / "cells.txt").read_text())
        self.assertLess(used.ru_utime + used.ru_stime, 6)
        self.assertLess(used.ru_maxrss, 500 * 1024)

    def test_the_documented_example_plans_what_it_says(self) -> None:
        page = (ROOT / "docs" / "sweep_files.md").read_text(encoding="utf-8")
        (example,) = re.findall(r"^```toml\n(.*?)^```", page, re.S | re.M)
        cells = planned(self.write(example), cwd=self.folder)
        heads = {
            (c["axes"]["heads"], c["axes"]["head_dim"])
            for c in cells
            if c["measure"] == "speed" and c["axes"]["length"] == 1024
        }
        self.assertEqual(heads, {(1, 128), (2, 64), (4, 32), (8, 16)})
        self.assertNotIn("reformer", {c["variant"]["name"] for c in cells})
        trained = [c for c in cells if c["measure"] == "accuracy"]
        self.assertEqual(len(trained), 2 * 2 * 2, "2 variants, 2 seeds, 2 learning rates")


MODEL = "steps=20,width=32,layers=1,heads=2,batch=8,eval_every=10,validation_examples=32,test_examples=32"
TASK = "mqar[vocab=32,pairs=2,length=16,train_examples=128]"
SWEEPS = (
    ["-v", "linformer[rank=4]", "--measure", "memory", "--length", "32", *SHAPE],
    ["-v", "linear", "--measure", "speed", "--length", "32", "--mode", "decode", *SHAPE],
    ["-v", "linear", "--measure", "fidelity", "--length", "32", "--input", "needle", *SHAPE],
    ["-v", "full", "-t", TASK, "--train", MODEL],
    ["-v", "full", "-t", TASK, "--train", MODEL, "--test-on", "length=8;pairs=4"],
    ["-v", "linear", "--measure", "reach", "--length", "16", "--layers", "2", *SHAPE],
)


@BUILT
class Repro(FaultCase):
    def rows_of(self, sweep: list[str]) -> dict:
        done = self.run_program("run", *sweep, "-o", "rows.jsonl", "-q", "--force")
        self.assertEqual(done.returncode, 0, done.stderr)
        [row] = read_rows(self.rows_file)[1:]
        return row

    def change(self, **fields: object) -> None:
        head, row = read_rows(self.rows_file)
        row["metrics"] |= fields
        for line in (head, row):
            line.pop("checksum")
        self.rows_file.write_text("".join(json.dumps(line) + "\n" for line in (head, row)))

    def test_the_command_makes_the_same_cell(self) -> None:
        for sweep in SWEEPS:
            with self.subTest(sweep):
                row = self.rows_of(sweep)
                shown = self.run_program("repro", "rows.jsonl", row["cell"], "--print")
                self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                words = shlex.split(shown.stdout)
                self.assertEqual(words[:2], ["attnbench", "run"])
                again = self.run_program(*words[1:], "-o", "again.jsonl", "-q", "--force")
                self.assertEqual(again.returncode, 0, again.stderr)
                self.assertEqual(read_rows(self.folder / "again.jsonl")[1]["cell"], row["cell"])
                held = self.rows_file.read_bytes()
                done = self.run_program("repro", "rows.jsonl", row["cell"][:8])
                self.assertRegex(done.stdout, r"^attnbench run [^\n]*\n[^\n]* then, [^\n]* now[^\n]*\n$")
                if row["measure"] != "speed":  # times of a loaded machine may differ
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertRegex(done.stdout, r": agrees\n$")
                self.assertEqual(self.rows_file.read_bytes(), held)

    def test_a_changed_row_does_not_agree(self) -> None:
        row = self.rows_of(SWEEPS[0])
        self.change(peak_bytes=row["metrics"]["peak_bytes"] // 2)
        done = self.run_program("repro", "rows.jsonl", row["cell"], "-o", "new.jsonl")
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertIn("does not agree: more memory", done.stdout)
        self.assertEqual(read_rows(self.folder / "new.jsonl")[1]["cell"], row["cell"])

    def test_wrong_use_is_one_line(self) -> None:
        row = self.rows_of(["-v", "full", *SWEEPS[0][2:]])
        for words, code, message in (
            (["rows.jsonl"], 2, "needs a rows file and a cell"),
            (["rows.jsonl", "xyz"], 2, "'xyz' is no cell"),
            (["rows.jsonl", "ab"], 2, "'ab' is no cell"),
            (["rows.jsonl", "0" * 16], 2, "no cell of 'rows.jsonl' begins with"),
            (["missing.jsonl", row["cell"]], 6, "missing.jsonl"),
            (["rows.jsonl", row["cell"], "-o", "rows.jsonl"], 2, "'rows.jsonl' exists"),
        ):
            with self.subTest(words):
                done = self.run_program("repro", *words)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), done.stderr)
                self.assertIn(message, done.stderr)


TUNED_TASK = "mqar[vocab=32,pairs=2,length=16,train_examples=64]"
SMALL = "steps=2,width=16,heads=1,layers=1,feed_forward=16,validation_examples=8,test_examples=8"
SWEEP = ["run", "-v", "full", "-v", "linear", "-t", TUNED_TASK, "--train", SMALL]
TUNE = ["--tune", "learning_rate=[1e-3,3e-3]", "--seed", "0,1", "-q", "-o", "rows.jsonl"]


@BUILT
class TunedRun(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.rows = self.folder / "rows.jsonl"

    def run_sweep(self, *more: str) -> subprocess.CompletedProcess[str]:
        return attnbench(*SWEEP, *TUNE, *more, cwd=self.folder)

    def test_the_table_shows_what_validation_chose(self) -> None:
        self.assertEqual(self.run_sweep().returncode, 0)
        head, *cells = rows_of(self.rows)
        self.assertEqual(len(cells), 2 * 2 * 2)
        for row in cells:
            best = (row["variant"]["name"] == "full") == (row["training"]["learning_rate"] == 0.001)
            row["metrics"].update(validation=0.8 if best else 0.7, test=0.6 if best else 0.75, shortcuts={"majority": 0.1})
        lines = [json.dumps(row, separators=(",", ":")) for row in (head, *cells)]
        self.rows.write_text("".join(line + "\n" for line in lines))
        shown = self.run_sweep()
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertRegex(shown.stdout, r"full, mqar\S*: learning_rate 0.001, best of 2")
        self.assertRegex(shown.stdout, r"linear, mqar\S*: learning_rate 0.003, best of 2")
        self.assertEqual(shown.stdout.count("0.600† ±0.000"), 2)
        self.assertNotIn("0.750", shown.stdout)
        markdown = self.run_sweep("--format", "md").stdout
        self.assertIn("0.600† ±0.000", markdown)
        self.assertNotIn("0.750", markdown)
        self.assertEqual(len(json.loads(self.run_sweep("--format", "json").stdout)), 8)
        self.assertEqual(len(self.run_sweep("--format", "csv").stdout.splitlines()), 1 + 8)

    def test_half_of_the_rows_are_measured_again(self) -> None:
        self.assertEqual(self.run_sweep().returncode, 0)
        lines = self.rows.read_text().splitlines(keepends=True)
        self.rows.write_text("".join(lines[:5]))
        self.assertEqual(self.run_sweep().returncode, 0)
        again = self.rows.read_text().splitlines(keepends=True)
        self.assertEqual((again[:5], len(again)), (lines[:5], len(lines)))
        alone = [word + ",learning_rate=1e-3" if word.startswith("steps=") else word for word in SWEEP]
        other = attnbench(*alone, *TUNE[2:], cwd=self.folder)  # a cell that is one of the choices
        self.assertEqual((other.returncode, len(other.stderr.splitlines())), (2, 1), other.stderr)
        self.assertIn("as a choice of --tune", other.stderr)

    def test_refusals(self) -> None:
        cases = [
            (["--tune", "learning_rate=1e-3"], "learning_rate=1e-3.*two"),
            (["--tune", "learning_rate=[1e-3,0.001]"], "1e-3,0.001.*two"),
            (["--tune", "learning_rat=[1e-3,2e-3]"], "'learning_rat'.*'learning_rate'"),
            (["--tune", "learning_rate=[1e-3,fast]"], "learning_rate=fast"),
            (["--tune", "dropout"], "'dropout' is not param=value"),
            (["--tune", "learning_rate", "--tune-by", "half"], "half.*grid, halving"),
            (["--tune-by", "halving"], "nothing is tuned"),
            (["--tune", "learning_rate", "--tune-by", "halving"], "needs 4 steps or more, not 2"),
            (["--train", "schedule=wds"], "schedule=wds.*cosine.*wsd"),
            (["--train", "decay=0.5"], "decay applies to schedule=wsd"),
            (["--train", "schedule=wsd,min_delta=2"], "min_delta=2"),
            (["--tune", "width=[16,32]"], "width.*--train and --tune"),
            (["--tune", "batch=[1,2]", "--measure", "memory"], "does not apply to measure memory"),
            (["-t", "mqar[preset=smal]"], "preset=smal .*small"),
        ]
        for arguments, expected in cases:
            with self.subTest(arguments=arguments):
                words = SWEEP[: SWEEP.index("--train")] if arguments[0] == "--train" else SWEEP
                done = attnbench(*words, *arguments, "-o", "rows.jsonl", cwd=self.folder)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertRegex(done.stderr, expected)
                self.assertFalse(self.rows.exists())

    def test_a_search_by_halving_in_two_shards_goes_on_where_it_was_killed(self) -> None:
        file = "[[sweep]]\ntasks = ['%s']\nvariants = ['full', 'linear']\naxes = { seed = [1, 2] }\ntraining = '%s'\n"
        file += "tuning = { learning_rate = [1e-3, 2e-3, 4e-3] }\ntune_by = 'halving'\n"
        longer = SMALL.replace("steps=2", "steps=40,eval_every=5,warmup=2")
        (self.folder / "mine.toml").write_text(file % (TUNED_TASK, longer))
        held: dict[str, tuple[str, bool]] = {}
        count = 0
        for shard in ("0/2", "1/2"):
            rows = self.folder / f"{shard[0]}.jsonl"
            words = ["run", "mine.toml", "--shard", shard, "-q", "-o", rows.name]
            self.assertEqual(attnbench(*words, cwd=self.folder).returncode, 0)
            lines = rows.read_text().splitlines(keepends=True)
            second = len(lines) - (1 + 3 + 2)  # a run line, the first round, a result a seed
            self.assertIn(second, (2, 3), "the better half, or all where none has begun to learn")
            rows.write_text("".join(lines[:4]))
            done = attnbench(*words, "--ledger", cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            steps = 3 * 10 + second * 20
            self.assertRegex(done.stdout, f"best of 3, by {3 + second} trainings of {steps} steps in all")
            again = rows.read_text().splitlines(keepends=True)
            self.assertEqual((again[:4], len(again)), (lines[:4], len(lines)))
            cells = rows_of(rows)[1:]
            self.assertEqual(len({row["variant"]["name"] for row in cells}), 1)
            self.assertEqual([row.get("trial", {}).get("round", 0) for row in cells], [1] * 3 + [2] * second + [0] * 2)
            held |= {row["cell"]: (row["variant"]["name"], "trial" in row) for row in cells}
            count += len(cells)
        self.assertEqual(len(held), count)
        drawn = {c.id for c in drawn_rows([self.folder / "0.jsonl", self.folder / "1.jsonl"]).cells}
        self.assertEqual(drawn, {cell for cell, (_, is_trial) in held.items() if not is_trial})

    def test_a_dry_run_runs_and_writes_nothing(self) -> None:
        dry = self.run_sweep("--dry-run")
        self.assertEqual((dry.returncode, len(dry.stdout.splitlines())), (0, 8), dry.stderr)
        self.assertRegex(dry.stderr, r"\A8 cells, .*; nothing was run\n\Z")
        self.assertEqual(list(self.folder.iterdir()), [])
        piloted = self.run_sweep("--dry-run", "--pilots")
        self.assertEqual(piloted.returncode, 0, piloted.stderr)
        self.assertRegex(piloted.stderr, "; nothing but pilots was run\n$")
        self.assertTrue((self.folder / "attnbench" / "pilots.json").exists())
        again = self.run_sweep("--dry-run")
        self.assertEqual(again.stdout, piloted.stdout, "by the pilots that were kept")

    def test_an_interrupted_dry_run_ends_with_130_and_says_nothing_untrue(self) -> None:
        cache = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
        command = [str(PROGRAM), "run", "-t", "listops", "-n", "--pilots"]
        command += ["--train", "steps=9,batch=64,width=128"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=cache
        ) as child:
            assert child.stderr is not None and child.stdout is not None
            self.assertIn("pilot 1/", child.stderr.readline())
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
        self.assertEqual((child.returncode, out), (130, ""))
        self.assertIn("interrupted", err.splitlines()[-1])
        left = {path.name for path in self.folder.rglob("*") if path.is_file()}
        self.assertLessEqual(left, {"pilots.json"})
