"""attnbench run --find crossing by the real program: what is measured, how a search that was killed goes on, and wrong use."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import signal

from attnbench.plots.kinds.overview_rows import peaks_of, telling_panel
from attnbench.plots.rows.read import read_rows as plotted
from attnbench.plots.rows.style import Styles

from ..faults import BUILT, EASY, SHAPE, FaultCase, read_rows

VARIANTS = ["-v", "linear", "-v", "performer"]
MEMORY = ["run", "--find", "crossing", *VARIANTS, "--measure", "memory", "--length", "16:2048:*2", *SHAPE]
SPEED = ["run", "--find", "crossing", "-v", "linear", "--length", "16,256", "--repetitions", "3", *SHAPE]
KERNELS = ("full[kernel=tiled]", "full[kernel=materialized]")
FOUND: list[tuple[bytes, list[dict]]] = []  # see Find.whole


def cells(rows: list[dict]) -> list[dict]:
    return [row for row in rows if row["kind"] == "cell"]


def name_of(row: dict) -> str:
    params = row["variant"]["params"]
    return f"full[kernel={params['kernel']}]" if row["variant"]["name"] == "full" else row["variant"]["name"]


@BUILT
class Find(FaultCase):
    def lengths(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for row in cells(read_rows(self.rows_file)):
            found.setdefault(name_of(row), set()).add(row["axes"]["length"])
        return found

    def peaks(self) -> dict[tuple[str, int], int]:
        rows = cells(read_rows(self.rows_file))
        return {(name_of(row), row["axes"]["length"]): row["metrics"]["peak_bytes"] for row in rows}

    def found(self, done) -> list[dict]:
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def whole(self) -> list[dict]:
        """A whole search for crossings of memory, measured once for all tests: its rows and what it says."""
        if not FOUND:
            lines = self.found(self.sweep("--format", "json", sweep=MEMORY))
            FOUND.append((self.rows_file.read_bytes(), lines))
        rows, lines = FOUND[0]
        self.rows_file.write_bytes(rows)
        return lines

    def test_memory_crosses_where_the_rows_say_so(self) -> None:
        lines = self.whole()
        self.assertEqual({(re.sub(r"\[.*", "", line["variant"]), line["rival"]) for line in lines},
                         {(variant, kernel) for variant in ("linear", "performer") for kernel in KERNELS})
        peaks = self.peaks()
        crossings = [line for line in lines if line["crossing"] is not None]
        self.assertGreaterEqual(len(crossings), 1)
        for line in crossings:
            variant, low, high = re.sub(r"\[.*", "", line["variant"]), int(line["low"]), int(line["high"])
            less = [peaks[variant, at] < peaks[line["rival"], at] for at in (low, high)]
            self.assertEqual(less, [line["becomes"] == "more", line["becomes"] == "less"], line)
            middle = math.sqrt(low * high)
            self.assertTrue(high - low == 1 or (low >= 0.95 * middle and high <= 1.05 * middle), line)
            self.assertTrue(line["ended"])
        grid = 4 * (math.ceil(math.log(2048 / 16) / math.log(1.1)) + 1)
        self.assertLess(len(peaks), grid / 3)
        runs = [row for row in read_rows(self.rows_file) if row["kind"] == "run"]
        self.assertEqual([run["config"]["find"] for run in runs], ["crossing"])
        self.assertEqual(runs[0]["config"]["sweeps"][0]["axes"]["length"], [16, 2048])

    def test_the_overview_shows_what_the_search_found_against_the_default_kernel(self) -> None:
        last = {re.sub(r"\[.*", "", line["variant"]): line for line in self.whole() if line["rival"] == KERNELS[0]}
        rows = plotted([self.rows_file])
        answers = peaks_of(telling_panel("memory", rows), 2048, Styles(rows), rows)
        told = {variant: answer for (variant, _), (answer, _) in answers.items() if variant in last}
        self.assertEqual(set(told), {"linear", "performer"})
        for variant, line in last.items():
            is_won = line["becomes"] == "less"
            self.assertEqual((told[variant].value, told[variant].low, told[variant].high),
                             (line["crossing"], line["low"], line["high"]) if is_won else (None, None, None), line)

    def test_every_format_and_table_show_the_same(self) -> None:
        lines = self.whole()
        held = self.rows_file.read_bytes()
        text = self.sweep(sweep=MEMORY).stdout
        self.assertIn("memory against exact attention", text)
        self.assertIn("a grid in steps of 10 %", text)
        for line in lines:
            self.assertIn(line["outcome"], text)
        markdown = self.sweep("--format", "md", sweep=MEMORY).stdout
        self.assertIn("| variant |", markdown)
        listed = list(csv.DictReader(io.StringIO(self.sweep("--format", "csv", sweep=MEMORY).stdout)))
        self.assertEqual([line["outcome"] for line in listed], [line["outcome"] for line in lines])
        self.assertEqual(self.rows_file.read_bytes(), held, "the rows hold everything")
        table = self.run_program("table", self.rows_file)
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        self.assertTrue(table.stdout.endswith(text), "the tables of the sweep, then those of crossings")
        alone = self.run_program("table", self.rows_file, "--crossings")
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (0, text, ""))
        again = self.run_program("table", self.rows_file, "--crossings", "--format", "json").stdout
        self.assertEqual(json.loads(again), lines)
        both = self.run_program("table", self.rows_file, "--crossings", "--ledger")
        self.assertEqual((both.returncode, both.stdout, both.stderr.count("\n")), (2, "", 1))
        latex = self.run_program("table", self.rows_file, "--format", "latex").stdout
        self.assertIn("against exact attention", latex)
        plain = [word for word in MEMORY if word not in ("--find", "crossing")]
        self.run_program(*plain, "-q", "-o", "grid.jsonl")
        self.assertNotIn("against exact attention", self.run_program("table", "grid.jsonl").stdout)
        none = self.run_program("table", "grid.jsonl", "--crossings")
        self.assertEqual((none.returncode, none.stdout), (2, ""))
        self.assertIn("no search for crossings", none.stderr)

    def test_a_killed_search_goes_on_as_if_it_had_not_been(self) -> None:
        whole = self.whole()
        peaks = self.peaks()
        for lines in (4, 12, 22):
            self.rows_file.unlink()
            running = self.start(sweep=MEMORY)
            self.wait_until(self.has_lines(lines), running=running)
            running.kill()
            running.wait()
            held = cells(read_rows(self.rows_file)) if self.rows_file.read_bytes().endswith(b"\n") else []
            self.assertEqual(self.found(self.sweep("--format", "json", sweep=MEMORY)), whole)
            self.assertEqual(self.peaks(), peaks)
            self.assertEqual(cells(read_rows(self.rows_file))[: len(held)], held)

    def test_an_interrupted_search_names_the_command_that_goes_on(self) -> None:
        running = self.start(sweep=MEMORY)
        self.wait_until(self.has_lines(6), running=running)
        running.send_signal(signal.SIGINT)
        text, hint = running.communicate()
        self.assertEqual(running.returncode, 130, hint)
        self.assertIn("--find=crossing", hint)
        self.assertIn("the search has not ended", text)

    def test_times_of_both_stand_at_every_length(self) -> None:
        lines = self.found(self.sweep("--format", "json", sweep=SPEED))
        self.assertEqual({line["rival"] for line in lines}, set(KERNELS))
        lengths = self.lengths()
        self.assertEqual(lengths["linear"], lengths[KERNELS[0]] | lengths[KERNELS[1]])
        for found in lengths.values():
            self.assertLessEqual({16, 256}, found)

    def plant(self, seconds: dict[tuple[str, int], float]) -> None:
        """Puts these times into the rows that the file holds, and drops all others."""
        lines = []
        for line in self.rows_file.read_text().splitlines():
            row = json.loads(line)
            row.pop("checksum", None)
            if row["kind"] == "cell":
                time = seconds.get((name_of(row), row["axes"]["length"]))
                if time is None:
                    continue
                row.pop("noisy", None)
                row["samples"] = [time * factor for factor in (0.999, 1.0, 1.001)]
                row["metrics"]["time_s"]["median"] = time
            lines.append(json.dumps(row, separators=(",", ":"), ensure_ascii=False))
        self.rows_file.write_text("\n".join(lines) + "\n")

    def test_the_rows_decide_what_is_measured_next(self) -> None:
        self.sweep(sweep=SPEED, faults=EASY)
        same = {(kernel, at): 1e-3 for kernel in KERNELS for at in (16, 64, 256)}
        self.plant({**same, ("linear", 16): 5e-4, ("linear", 64): 5e-4, ("linear", 256): 5e-4})
        lines = self.found(self.sweep("--format", "json", sweep=SPEED))
        self.assertEqual({line["outcome"] for line in lines}, {"faster at every length from 16 to 256"})
        self.assertEqual(self.lengths()["linear"], {16, 64, 256})
        self.plant({**same, ("linear", 16): 2e-3, ("linear", 64): 2e-3, ("linear", 256): 5e-4})
        times = [(f'"measure":"speed","variant":{{"name":"{name}"', f'say:{{"status":"ok","reason":null,"samples":[{time}],"flops":1000}}')
                 for name, time in (("linear", 5e-4), ("full", 1e-3))]  # fmt: skip
        self.found(self.sweep("--format", "json", sweep=SPEED, faults=times))
        more = self.lengths()["linear"] - {16, 64, 256}
        self.assertGreaterEqual(len(more), 1)
        for length in more:
            self.assertTrue(16 < length < 256, more)

    def test_lengths_that_fail_are_left_out(self) -> None:
        answer = json.dumps({"status": "oom", "reason": "planted"})
        fault = [('"length":2048', "say:" + answer)]
        done = self.sweep("--format", "json", sweep=MEMORY, faults=fault)
        self.assertEqual(done.returncode, 1, done.stderr)
        for line in json.loads(done.stdout):
            self.assertTrue(line["ended"])
        self.assertIn("1 length without a figure", self.sweep(sweep=MEMORY).stdout)

    def test_variants_that_cannot_run_say_why(self) -> None:
        causal = ["run", "--find", "crossing", "-v", "linformer", "--length", "16,64", "--causal", "true", *SHAPE]
        done = self.sweep(sweep=causal)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not measured", done.stdout)
        self.assertIn("linformer skipped", done.stdout)

    def test_a_dry_run_tells_the_first_step(self) -> None:
        done = self.run_program(*MEMORY, "-n", "-o", self.rows_file)
        self.assertEqual(done.returncode, 0)
        self.assertFalse(self.rows_file.exists())
        self.assertRegex(done.stderr, r"the first step of the search; all steps have at most \d+ cells")
        first = len(done.stdout.splitlines())
        most = int(re.search(r"at most (\d+) cells", done.stderr)[1])
        self.whole()
        self.assertTrue(first < len(self.peaks()) <= most)

    def test_wrong_use_is_one_line(self) -> None:
        base = ["run", "-v", "linear", *SHAPE]
        for words, pattern in (
            (["--find", "minimum"], "--find minimum .*crossing"),
            (["--shard", "0/2"], "--shard 0/2 does not go with --find"),
            (["-o", "-"], "--output - does not go with --find"),
            (["--ledger"], "--ledger does not go with --find"),
            (["--measure", "fidelity"], "fidelity.*--measure speed,memory"),
            (["--measure", "speed,accuracy"], "accuracy.*--measure speed,memory"),
            (["-t", "mqar"], "accuracy.*--measure speed,memory"),
            (["--length", "64"], "two lengths.*--length 64,16384"),
            (["--repetitions", "2"], "--repetitions 2 is too few"),
        ):
            find = [] if "--find" in words else ["--find", "crossing"]
            self.assert_one_line(self.run_program(*base, *find, *words), 2, pattern)
        self.assertEqual(list(self.folder.glob("**/*.jsonl")), [])
