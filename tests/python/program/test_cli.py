"""The command line as its users meet it: help, listings, errors of one line with exit 2 and nothing written, exit codes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
import unittest
from contextlib import nullcontext
from pathlib import Path

from ..faults import BUILT, PROGRAM, calibrated
from ..passed import passed_checks

CACHE = tempfile.TemporaryDirectory()  # of this run of the tests alone
TINY = [
    "-v",
    "linear",
    "--measure",
    "memory",
    "--length",
    "64,128",
    "--heads",
    "1",
    "--head-dim",
    "16",
]
VERBS = ("list", "info", "check", "run", "sample", "apply", "compare", "table", "plot", "report")


def attnbench(*arguments, cwd=None, cache=None, new=False):
    """Runs the program; `cache` is where it keeps its pilot measurements and checks that passed, of other tests too, and it takes the
    speed of the machine as told, unless the machine is to be `new` to it."""
    folder = cache or cwd or CACHE.name
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    environment = environment if new else calibrated(environment)
    with nullcontext() if new else passed_checks(folder):
        return subprocess.run(
            [PROGRAM, *arguments], capture_output=True, text=True, cwd=cwd, env=environment
        )


def rows_of(path):
    """The lines of a rows file without their checksums, so that a test may change and write them."""
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    for row in rows:
        del row["checksum"]
    return rows


@BUILT
class CommandLine(unittest.TestCase):
    def test_help_goes_to_stdout(self):
        for arguments in (
            ["--help"],
            ["--version"],
            *([verb, "--help"] for verb in VERBS),
        ):
            done = attnbench(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
            self.assertTrue(done.stdout)
        bare = attnbench()
        self.assertEqual((bare.returncode, bare.stdout), (2, ""))

    def test_help_of_a_verb_is_its_help(self):
        for verb in VERBS:
            done = attnbench("help", verb)
            self.assertEqual((done.returncode, done.stderr), (0, ""), verb)
            self.assertEqual(done.stdout, attnbench(verb, "--help").stdout)
        overview = attnbench("--help").stdout
        for arguments in (["help"], ["help", "help"], ["help", "--help"]):
            self.assertEqual(attnbench(*arguments).stdout, overview)
        self.assertIn("6 input or output failed", overview)
        self.assertIn("7 compare --strict: something is undecided", overview)

    def refuses(self, code, arguments, expected):
        """One line, nothing on stdout, nothing written."""
        with self.subTest(arguments=arguments), tempfile.TemporaryDirectory() as folder:
            done = attnbench(*arguments, cwd=folder)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertRegex(done.stderr, expected)
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_files_that_the_system_refuses(self):
        """Each: exit 6, one line that names the file and what the system says."""
        arrays = ["--k", "absent.npy", "--v", "absent.npy", "--out", "o.npy"]
        apply = ["apply", "-v", "full", "--q"]
        long = "a" * 300
        cases = [
            (["run", "-c", "absent.conf"], "absent.conf"),
            (["run", "-c", "/"], "config file '/'"),
            (["run", *TINY, "-o", "/proc/none/rows.jsonl"], "/proc/none"),
            (["run", *TINY, "-o", "/"], "'/' is a folder"),
            (["run", *TINY, "-qo", "/dev/full"], "/dev/full.*No space left"),
            (["run", *TINY, "-o", f"{long}.jsonl"], f"{long}.jsonl.*too long"),
            (["run", "-v", "full", "-t", "listops[data=/nowhere]"], "/nowhere: no such folder"),
            (["sample", "mqar", "-o", "/dev/full"], "/dev/full.*No space left"),
            (["sample", "mqar", "-o", "/proc/rows.jsonl"], "/proc/rows.jsonl"),
            (["info", "image[side=16]", "--picture", "/dev/full"], "/dev/full.*No space left"),
            ([*apply, "absent.npy", *arrays], "absent.npy.*No such file"),
            ([*apply, "/", *arrays], "'/' is a folder"),
        ]
        for arguments, expected in cases:
            self.refuses(6, arguments, expected)

    def test_usage_errors(self):
        """Each: exit 2, one line that names the value and what would be right, nothing on stdout, nothing written."""
        cases = [
            (["rum"], "'rum'.*'run'"),
            (["list", "varints"], "'varints'"),
            (["list", "variants", "--family", "gatd"], "'gatd'; nearest is 'gated'"),
            (["list", "variants", "--trait", "causal,decodes"], "'decodes'; nearest is 'decode'"),
            (["list", "--year", "24"], "2024 or 2020:2023, not '24'"),
            (["list", "--year", "2024:2020"], "2024:2020"),
            (["list", "tasks", "--year", "2024"], "list variants, not list tasks"),
            (["info"], "needs the name"),
            (["info", "linfromer"], "'linfromer'.*'linformer'"),
            (["check", "performer[features=0]"], "features=0.*1"),
            (["run", "--profile", "quik"], "'quik'.*'quick'"),
            (["run", "-v", "fulll"], "'fulll'.*'full'"),
            (["run", "-t", "listop", "--measure", "accuracy"], "'listop'.*'listops'"),
            (["run", "-v", "linformer[rnk=4]"], "'rnk'.*'rank'"),
            (["run", "-v", "linformer[rank=-4]"], "rank=-4"),
            (["run", "-v", "linformer[rank=64"], r"linformer\[rank=64"),
            (["run", *TINY, "--length", "0"], "given twice"),
            (["run", "-v", "full", "--length", "0"], "0"),
            (["run", "-v", "full", "--length", "12x"], "12x"),
            (["run", "-v", "full", "--length", "64:16:*2"], "64:16:.2"),
            (["run", "-v", "full", "--mode", "backward"], "backward"),
            (["run", "--mode", "decode", "--causal", "false"], "causal=false.*decode"),
            (["run", "--mode", "decode", "--causal", "false,true"], "causal=false.*decode"),
            (["run", "-v", "full", "--measure", "sped"], "'?sped'?.*speed"),
            (["run", "-v", "full", "--causal", "maybe"], "maybe"),
            (["run", *TINY, "--timeout", "soon"], "soon"),
            (["run", *TINY, "--max-memory", "lots"], "lots"),
            (["run", *TINY, "--shard", "2/2"], "2/2"),
            (["run", *TINY, "--format", "xml"], "xml"),
            (["run", *TINY, "--lenght", "64"], "'lenght'.*'length'"),
            (["run", *TINY, "--jobs", "0"], "--jobs 0"),
            (
                [
                    "run",
                    "-v",
                    "linear",
                    "-t",
                    "mqar",
                    "--measure",
                    "accuracy",
                    "--train",
                    "stebs=4",
                ],
                "stebs.*steps",
            ),
            (
                ["run", "-v", "full", "-t", "mqar", "--measure", "accuracy", "--train", "mimicry=5"],
                "full.*mimicry=5",
            ),
            (["run", *TINY, "--resume=perhaps"], "perhaps.*true, false"),
            (["run", "--length", "1:999:+1", "--batch", "1:999:+1"], "more than 20000"),
            (["run", "--length", "1:999:+1", "--batch", "1:19:+1"], "more than 20000"),
            (["run", *TINY, "--pilots"], "--pilots.*--dry-run"),
            (["help", "rum"], "'rum'.*'run'"),
            (["help", "run", "list"], "'list'.*help .VERB"),
            (["sample", "full"], "'full'"),
            (["sample", "mqar", "--split", "tset"], "tset"),
            (["sample", "mqar", "--count", "-1"], "-1"),
            (["sample", "listops[length=10,min_length=20]"], "length"),
            (["apply"], "--variant"),
        ]
        for arguments, expected in cases:
            self.refuses(2, arguments, expected)

    def test_config_file(self):
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder, "sweep.conf")
            config.write_text(
                '# quotes are taken away\nvariant = "linear"\nmeasure = memory\n'
                "length = 64:128:*2\nheads = 1\nhead-dim = 16\n"
            )
            dry = attnbench("run", "-c", config, "--dry-run", cwd=folder)
            self.assertEqual(dry.returncode, 0, dry.stderr)
            self.assertEqual(len(dry.stdout.splitlines()), 2)
            override = attnbench("run", "-c", config, "--length", "64", "-n", cwd=folder)
            self.assertEqual(len(override.stdout.splitlines()), 1)  # a flag wins over the file
            config.write_text("variant = linear\nlenght = 64\n")
            done = attnbench("run", "-c", config, cwd=folder)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, "sweep.conf.*'lenght'.*'length'")
            self.assertEqual([p.name for p in Path(folder).iterdir()], ["sweep.conf"])

    def test_run_writes_rows_resumes_and_formats(self):
        with tempfile.TemporaryDirectory() as folder:
            first = attnbench("run", *TINY, "-o", "rows.jsonl", cwd=folder)
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertIn("peak memory", first.stdout)
            rows = rows_of(Path(folder, "rows.jsonl"))
            self.assertEqual([row["kind"] for row in rows], ["run", "cell", "cell"])
            again = attnbench(
                "run", *TINY, "--resume", "-o", "rows.jsonl", "--format", "json", cwd=folder
            )
            by_length = sorted(rows[1:], key=lambda row: row["axes"]["length"])
            self.assertEqual(json.loads(again.stdout), by_length)  # nothing measured again
            table = attnbench("run", *TINY, "-o", "rows.jsonl", "--format", "csv", "-q", cwd=folder)
            self.assertEqual((len(table.stdout.splitlines()), table.stderr), (3, ""))
            refused = attnbench("run", *TINY, "-o", "rows.jsonl", "--resume=false", cwd=folder)
            self.assertEqual(refused.returncode, 2)
            forced = attnbench(
                "run", *TINY, "-o", "rows.jsonl", "--force", "-q", "--format", "md", cwd=folder
            )
            self.assertIn("|---|", forced.stdout)
            self.assertNotEqual(
                Path(folder, "rows.jsonl").read_text().splitlines()[0], json.dumps(rows[0])
            )
            Path(folder, "rows.jsonl").write_text("not rows\n")
            corrupt = attnbench("run", *TINY, "-o", "rows.jsonl", cwd=folder)
            self.assertEqual(corrupt.returncode, 2)
            self.assertIn("rows.jsonl is not a rows file", corrupt.stderr)
            self.assertEqual(Path(folder, "rows.jsonl").read_text(), "not rows\n")

    def test_the_hint_after_an_interrupt_can_be_pasted(self):
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder, "sweep.conf")
            config.write_text("measure = speed\nforce = true\n")
            run = subprocess.Popen(
                [PROGRAM, "run", "-c", config, "-v", "linear", "-v", "full[kernel=[tiled]]"]
                + ["--length", "64:65536:*1024", "--repetitions", "50", "-fo", "it's.jsonl", "--verbose"],
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
                cwd=folder,
            )
            for said in run.stderr:  # to the first cell that is done
                if "[1/4]" in said:
                    break
            run.send_signal(signal.SIGINT)
            said = run.stderr.read()
            self.assertEqual(run.wait(), 130)
            run.stderr.close()
            self.assertRegex(said, "To go on: ")
            hint = shlex.split(said.split("To go on: ")[1])
            self.assertEqual(hint[:2], [str(PROGRAM), "run"])
            self.assertEqual(  # what the file said as well, but never --force
                sorted(hint[2:]),
                sorted(
                    ["--variant=linear", "--variant=full[kernel=[tiled]]", "--measure=speed"]
                    + ["--length=64:65536:*1024", "--repetitions=50", "--verbose"]
                    + ["--output=it's.jsonl"]
                ),
            )
            held = Path(folder, "it's.jsonl").read_text().splitlines()
            self.assertGreaterEqual(len(held), 2)
            dry = subprocess.run([*hint, "--dry-run"], capture_output=True, text=True, cwd=folder)
            self.assertEqual((dry.returncode, len(dry.stdout.splitlines())), (0, 4), dry.stderr)

    def test_tables_keep_apart_what_differs(self):
        with tempfile.TemporaryDirectory() as folder:
            seeds = attnbench("run", *TINY, "--seed", "0,1", "-q", "-o", "seeds.jsonl", cwd=folder)
            self.assertEqual(seeds.stdout.count("peak memory"), 2)
            self.assertIn("seed 1", seeds.stdout)
            tiny = "width=16,heads=1,layers=1,feed_forward=16,validation_examples=8,test_examples=8"
            tasks = attnbench(
                *["run", "-q", "-v", "linear", "-t"],
                "mqar[vocab=32,pairs=[2,4],length=16,train_examples=64]",
                *["--train", f"steps=[1,2],{tiny}", "-o", "tasks.jsonl"],
                cwd=folder,
            )
            self.assertEqual(tasks.returncode, 0, tasks.stderr)
            self.assertRegex(tasks.stdout, r"mqar\[\S*pairs=2\S*\] ¶ +mqar\[\S*pairs=4\S*\]")
            self.assertRegex(tasks.stdout, "(?s)steps 1.*steps 2")

    def test_the_crossing_with_full_is_read_from_the_last_length(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["run", "-v", "full", "-v", "linear", "--repetitions", "1", "-o", "r.jsonl"]
            arguments += ["--length", "64,128", "--heads", "1", "--head-dim", "16"]
            self.assertEqual(attnbench(*arguments, cwd=folder).returncode, 0)
            path = Path(folder, "r.jsonl")
            header, *cells = rows_of(path)

            def table(times, status="ok"):
                for row in cells:
                    name, length = row["variant"]["name"], row["axes"]["length"]
                    seconds = times[name, length]
                    row["metrics"]["time_s"].update(ci_low=seconds, ci_high=seconds)
                held = [dict(row) for row in cells]
                for row in held:
                    if status != "ok" and (row["variant"]["name"], row["axes"]["length"]) == (
                        "linear",
                        128,
                    ):
                        row.update(status=status, reason="a test", metrics=None, samples=None)
                lines = [json.dumps(row, separators=(",", ":")) for row in (header, *held)]
                path.write_text("".join(line + "\n" for line in lines))
                shown = attnbench(*arguments, cwd=folder).stdout
                return next(x for x in shown.splitlines() if x.startswith("  linear ")).rstrip()

            slow = {("full", 64): 1, ("full", 128): 2, ("linear", 64): 2, ("linear", 128): 3}
            self.assertTrue(table(slow).endswith("not up to 128"))
            self.assertTrue(table(slow | {("linear", 128): 1}).endswith(" 128"))
            self.assertTrue(table(slow | {("linear", 64): 0.5, ("linear", 128): 1}).endswith(" 64"))
            self.assertTrue(table(slow, "oom").endswith("oom"))  # no claim where it has no time

    def test_intervals_of_one_process_are_said_to_be_so(self):
        """One repetition is one visit; three are three processes, and rows record which gave what."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["run", "-v", "linear", "--length", "64", "--heads", "1"]
            arguments += ["--head-dim", "16", "-o", "r.jsonl", "--force", "--repetitions"]
            for repetitions, visits in (("1", [1]), ("4", [2, 1, 1])):
                done = attnbench(*arguments, repetitions, cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                row = json.loads(Path(folder, "r.jsonl").read_text().splitlines()[1])
                self.assertEqual(row["visits"], visits)
                self.assertEqual("as of one process" in done.stdout, len(visits) == 1)
                time = row["metrics"]["time_s"]
                self.assertLessEqual(time["ci_low"], time["median"])
                self.assertLessEqual(time["median"], time["ci_high"])

    def test_decoding_is_causal_and_says_what_it_holds(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["run", "-v", "full", "-v", "linear", "-v", "linformer", "-o", "r.jsonl"]
            arguments += ["--mode", "decode", "--length", "64,128", "--heads", "2"]
            arguments += ["--head-dim", "16", "--repetitions", "1", "--measure", "speed,memory"]
            done = attnbench(*arguments, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, "time of one token .*causal true")
            rows = [json.loads(x) for x in Path(folder, "r.jsonl").read_text().splitlines()[1:]]
            self.assertEqual(len(rows), 12)
            for row in rows:
                name, length = row["variant"]["name"], row["axes"]["length"]
                self.assertIs(row["axes"]["causal"], True)
                if name == "linformer":
                    self.assertEqual(row["status"], "skipped")
                    self.assertIn("cannot decode", row["reason"])
                    continue
                state = 2 * length * 16 if name == "full" else 16 * 17
                self.assertEqual(row["metrics"]["state_bytes"], 2 * state * 4)
                if row["measure"] == "speed":
                    rate = 1 / row["metrics"]["time_s"]["median"]
                    self.assertAlmostEqual(row["metrics"]["tokens_per_s"] / rate, 1)

    def test_skipped_cells_are_rows_with_reasons(self):
        with tempfile.TemporaryDirectory() as folder:
            done = attnbench(
                "run",
                "-v",
                "linformer",
                "--measure",
                "memory",
                "--causal",
                "true",
                "--length",
                "64",
                "-o",
                "rows.jsonl",
                cwd=folder,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            row = json.loads(Path(folder, "rows.jsonl").read_text().splitlines()[1])
            self.assertEqual((row["status"], row["metrics"]), ("skipped", None))
            self.assertIn("causal", row["reason"])

    def test_sample(self):
        with tempfile.TemporaryDirectory() as folder:
            for task in (
                "listops[length=40,min_length=5]",
                "mqar[vocab=64,pairs=4]",
                "image[side=16]",
            ):
                done = attnbench(
                    "sample", task, "--split", "test", "--count", "3", "-o", "out.jsonl", cwd=folder
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = Path(folder, "out.jsonl").read_text().splitlines()
                self.assertEqual(
                    attnbench(
                        "sample", task, "--split", "test", "--count", "3"
                    ).stdout.splitlines(),
                    lines,
                )
                for line in lines:
                    example = json.loads(line)
                    self.assertEqual(("tokens" in example) + ("values" in example), 1)
                    self.assertTrue({"target", "evidence", "slices"} <= set(example))

    def test_full_disk_is_one_line(self):
        done = subprocess.run(
            f"{PROGRAM} list > /dev/full", shell=True, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 6)
        self.assertEqual(done.stderr.count("\n"), 1)
