"""`attnbench coverage` as it is called: with the real program's plans and rows whose figures are planted."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tempfile
import unittest
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from attnbench.coverage.command import _timeout, main

from ..faults import BUILT, PROGRAM
from ..fixture import header

SWEEP = """
name = "tiny"
timeout = "20m"

[[sweep]]
measure = "speed"
variants = ["full", "linear", "truncated[window=[4,8]]", "linformer[rank=4]"]
axes = { length = [16, 32], causal = [false, true], heads = 1, head_dim = 8, repetitions = 3 }

[[sweep]]
variants = ["full", "linear"]
tasks = ["copy[length=16]", "retrieval[preset=small]"]
axes = { seed = [0, 1] }
training = { steps = 400, schedule = "wsd", batch = 4 }
tuning = { learning_rate = [1e-3, 3e-3] }
tune_by = "halving"
"""


class Said(NamedTuple):
    stdout: str
    stderr: str


SPREADS = {"full": 0.002, "linear": 0.02}  # of a time, as a share


def planted(cell: dict[str, Any], seconds: float, spread: float, **more: Any) -> dict[str, Any]:
    """A row of a planned speed cell."""
    time_s = {"median": seconds, "mean": seconds, "min": seconds, "mad": 0.0, "n": 3}
    time_s |= {"ci_low": seconds * (1 - spread), "ci_high": seconds * (1 + spread)}
    metrics = {"time_s": time_s, "tokens_per_s": 1.0, "flops": 1.0, "flops_per_s": 1.0, "peak_fraction": 0.1}
    axes = cell["axes"]
    shape = [axes[name] for name in ("batch", "heads", "length", "head_dim")]
    verified = {"shape": shape, "rows": 1, "error": 0.0, "bound": 1e-4, "by": "reference", "seconds": 0.0}
    row = {
        "schema": "attnbench/1", "kind": "cell", "run": header()["run"], "cell": cell["cell"], "status": "ok", "reason": None,
        "measure": "speed", "variant": cell["variant"], "task": None, "axes": axes, "metrics": metrics, "samples": [seconds] * 3,
        "visits": [1, 1, 1], "started_at": "2026-01-01T00:00:00Z", "duration_s": 0.1, "verified": verified, "source": cell["source"],
    }  # fmt: skip
    return row | more


@BUILT
class Commands(unittest.TestCase):
    folder: Path
    rows: Path
    plan: list[dict[str, Any]]

    @classmethod
    def setUpClass(cls) -> None:
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
        (cls.folder / "tiny.toml").write_text(SWEEP, encoding="utf-8")
        cls.plan = cls.dry_run("tiny.toml")
        cls.rows = cls.folder / "rows.jsonl"
        cls.write(cls.rows, [planted(c, 0.01, SPREADS.get(c["variant"]["name"], 0.001)) for c in cls.speed_cells()])

    @classmethod
    def speed_cells(cls) -> list[dict[str, Any]]:
        return [c for c in cls.plan if c["measure"] == "speed" and not c["skipped"]]

    @classmethod
    def write(cls, file: Path, rows: list[dict[str, Any]]) -> None:
        file.write_text("".join(json.dumps(line) + "\n" for line in [header(), *rows]), encoding="utf-8")

    @classmethod
    def dry_run(cls, file: str) -> list[dict[str, Any]]:
        done = subprocess.run([PROGRAM, "run", file, "--dry-run", "--format", "json"], capture_output=True, text=True, cwd=cls.folder)
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def coverage(self, *words: str | Path, code: int = 0, folder: Path | None = None) -> Said:
        """In this process, whose imports take longer than the verb."""
        out, err = io.StringIO(), io.StringIO()
        program = mock.patch.dict(os.environ, {"ATTNBENCH_PROGRAM": str(PROGRAM)})
        with chdir(folder or self.folder), program, redirect_stdout(out), redirect_stderr(err):
            try:
                found = main(["coverage", *map(str, words)])
            except SystemExit as end:
                found = int(end.code or 0)
        said = Said(out.getvalue(), err.getvalue())
        self.assertEqual(found, code, said.stderr)
        return said

    def told(self, *words: str | Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.coverage(*words, "--json").stdout)["coverage"]
        return found

    def test_the_map_says_what_is_there(self) -> None:
        shown = self.coverage("tiny.toml", self.rows, "-v", "full", "-v", "linear", "-v", "truncated", "-v", "linformer").stdout
        lines = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line}
        self.assertEqual(lines["full"][0], "####")
        self.assertEqual(lines["truncated[window=4]"][0], "####")
        self.assertEqual(lines["linformer[rank=4]"][0], "##--")
        self.assertIn("4 missing", shown)  # the trainings of two variants on two tasks
        self.assertIn("length 16 to 32", shown)

    def test_every_cell_of_the_sweep_is_asked_for_and_none_else(self) -> None:
        told = self.told("tiny.toml", self.rows, "-v", "full", "-v", "linear", "-v", "truncated", "-v", "linformer")
        self.assertEqual({c["state"] for c in told["cells"]}, {"verified", "missing", "cannot run"})
        asked = sum(len(c["seeds"]) for c in told["cells"])
        self.assertEqual(asked, sum("trial" not in c for c in self.plan))
        seconds = sum(c["share_s"] for c in self.plan if c["measure"] == "accuracy")
        self.assertAlmostEqual(told["totals"]["missing"]["seconds"], seconds)

    def test_a_sweep_of_all_that_is_missing_has_exactly_those_cells(self) -> None:
        empty = self.folder / "empty.jsonl"
        self.write(empty, [planted(self.speed_cells()[0], 0.01, 0.001)])
        out = self.folder / "all.toml"
        names = [word for name in ("full", "linear", "truncated", "linformer") for word in ("-v", name)]
        self.coverage("tiny.toml", empty, *names, "-o", out)
        first = self.speed_cells()[0]["cell"]
        expected = {c["cell"] for c in self.plan if not c["skipped"] and c["cell"] != first}
        found = {c["cell"] for c in self.dry_run("all.toml") if not c["skipped"]}
        self.assertEqual(found, expected)
        self.assertIn('timeout = "20m"', out.read_text(encoding="utf-8"))

    def test_the_time_of_a_cell_is_that_of_the_sweep(self) -> None:
        for head, expected in (
            ('timeout = "20m"\n[[sweep]]\ntimeout = "9h"', "20m"),
            ("name = 'a'\n  timeout='90s'\n", "90s"),
            ('extends = "standard"\n', "1h"),
            ('[[sweep]]\nmeasure = "speed"\n', None),
        ):
            file = self.folder / "head.toml"
            file.write_text(head, encoding="utf-8")
            with mock.patch.dict(os.environ, {"ATTNBENCH_PROGRAM": str(PROGRAM)}):
                self.assertEqual(_timeout([[str(file)]]), expected)
                self.assertEqual(_timeout([["--profile", "standard"], [str(file)]]), "1h")

    def test_a_budget_buys_the_cells_that_the_file_has(self) -> None:
        """Those of linear, whose intervals overlap that of exact attention, with four times the repetitions."""
        out = self.folder / "next.toml"
        told = self.told("tiny.toml", self.rows, "-v", "full", "-v", "linear", "--budget", "1h", "-o", out)
        self.assertLessEqual(told["chosen_seconds"], 3600)
        cells = self.dry_run("next.toml")
        chosen = {(c["variant"], c["measure"], c["axes"]["length"], c["axes"]["causal"], seed, c["repetitions"] or c["axes"].get("repetitions"))
                  for c in told["chosen"] for seed in c["seeds"]}  # fmt: skip
        named = {"full[kernel=tiled]": "full"}
        chosen = {(named.get(v, v), *rest) for v, *rest in chosen}
        found = {(c["variant"]["name"], c["measure"], c["axes"]["length"], c["axes"]["causal"], c["axes"]["seed"], c["axes"].get("repetitions"))
                 for c in cells if "trial" not in c}  # fmt: skip
        self.assertEqual({c for c in chosen if c[1] == "speed"}, {c for c in found if c[1] == "speed"})
        self.assertEqual({c[4] for c in found if c[1] == "accuracy"}, {0, 1})
        self.assertEqual({c["task"]["name"] for c in cells if c["task"]}, {"copy", "retrieval"})
        self.assertEqual({c[5] for c in found if c[1] == "speed"}, {12})
        self.assertAlmostEqual(told["chosen_seconds"], sum(c["share_s"] for c in cells), delta=1e-6 + 0.01 * told["chosen_seconds"])

    def test_a_decided_sweep_leaves_nothing_to_choose(self) -> None:
        decided = self.folder / "decided.jsonl"
        times = {"full": 0.01}
        self.write(decided, [planted(c, times.get(c["variant"]["name"], 0.02), 0.001) for c in self.speed_cells()])
        speed = self.folder / "speed.toml"
        speed.write_text(SWEEP.partition("\n[[sweep]]\nvariants")[0], encoding="utf-8")
        done = self.coverage(speed, decided, "-v", "full", "-v", "linear", "--budget", "1h", code=4)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("every pair with exact attention is decided", done.stderr)

    def test_a_budget_below_every_cell_says_the_cheapest(self) -> None:
        done = self.coverage("tiny.toml", self.rows, "-v", "linear", "--budget", "0.001s", code=4)
        self.assertRegex(done.stderr, "the cheapest cell takes .* more than --budget")

    def test_rows_of_other_sources_are_told_apart(self) -> None:
        other = self.folder / "other.jsonl"
        cells = [planted(c, 0.01, 0.001, source=c["source"] | {"variant": "0" * 16}) for c in self.speed_cells()]
        self.write(other, cells)
        states = {c["state"] for c in self.told("tiny.toml", other, "-v", "linear")["cells"] if c["measure"] == "speed"}
        self.assertEqual(states, {"of other sources"})

    def test_a_profile_and_variants_beside_it(self) -> None:
        told = self.told("--profile", "smoke", self.rows, "-v", "gla")
        self.assertEqual({c["variant"].partition("[")[0] for c in told["cells"]}, {"full", "gla"})
        self.assertEqual({c["state"] for c in told["cells"]} - {"cannot run"}, {"missing"})

    def test_wrong_words_are_one_line(self) -> None:
        lost = self.folder / "lost.jsonl"
        for words, code, said in (
            (("tiny.toml", self.rows, "--budget", "2x"), 2, "--budget 2x: expected a time such as 90s"),
            (("tiny.toml", self.rows, "--budget", "0h"), 2, "--budget 0h: a time is longer than 0"),
            (("tiny.toml", self.rows, "-o", "next.jsonl"), 2, "-o next.jsonl: a sweep file ends in .toml"),
            (("tiny.toml", self.rows, "-o", "tiny.toml"), 2, "-o tiny.toml: that file is read"),
            (("tiny.toml", self.rows, "--profile", "quick"), 2, "they name two sweeps"),
            (("tiny.toml", self.rows, "-v", "linaer"), 2, "linear"),
            ((self.rows, "--profile", "qiuck"), 2, "quick"),
            (("tiny.toml", lost), 6, "lost.jsonl: cannot be read"),
            (("gone.toml", self.rows), 6, "gone.toml"),
            (("tiny.toml", self.rows, "-v", "linear", "-o", "no/folder.toml"), 6, "no/folder.toml: cannot be written"),
        ):
            with self.subTest(said):
                done = self.coverage(*words, code=code)
                self.assertIn(said, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_without_rows_everything_is_missing(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            sweep = Path(folder) / "tiny.toml"
            sweep.write_text(SWEEP, encoding="utf-8")
            done = self.coverage(sweep, "-v", "linear", "--json", folder=Path(folder))
        self.assertIn("everything is missing", done.stderr)
        self.assertEqual(set(json.loads(done.stdout)["coverage"]["totals"]), {"missing"})


if __name__ == "__main__":
    unittest.main()
