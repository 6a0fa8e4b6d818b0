"""An edit of a row is noticed, also by one who makes a right checksum; unverified, unfinished and nameless rows are, and names of folders."""

from __future__ import annotations

import json
import unittest
from collections import Counter
from typing import Any

from attnbench.bundles.consistency import faults_of_rows, first_of_each
from attnbench.bundles.figures import id_of, scores_of
from attnbench.bundles.private import private_part

from ..faults import ROOT
from .planted import PROTOCOL, Line, cell, edited, honest, run_line, sealed

BY_MEASURE = {measure: next(c for c in honest()[1:] if c["measure"] == measure and c["variant"]["name"] == "linear")
              for measure in ("speed", "memory", "accuracy", "fidelity")}  # fmt: skip


def faults(*cells: Line, run: Line | None = None, names: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    return [(f.kind, f.words) for f in faults_of_rows("a", [run or run_line(), *cells], PROTOCOL, names)]


class Edits(unittest.TestCase):
    def test_honest_rows_have_no_fault(self) -> None:
        self.assertEqual(list(faults_of_rows("a", honest(), PROTOCOL)), [])

    def test_real_rows_fit_together(self) -> None:
        """Rows of this repository, of two versions: no figure is called edited."""
        found = Counter[str]()
        for name in ("standard5", "budget", "quick"):
            lines = [json.loads(line) for line in (ROOT / "results" / "reference" / f"{name}.jsonl").read_text().splitlines()[:400]]
            for index, line in enumerate(lines):
                if line["kind"] == "run":
                    lines[index] = sealed({**line, "protocol": {"name": PROTOCOL["name"], "hash": PROTOCOL["hash"], "departs": ["timeout", "sweep_file"]}})
            found.update(fault.kind for fault in faults_of_rows(name, lines, PROTOCOL))
            self.assertGreater(len(lines), 300)
        self.assertEqual(found["edited"] + found["form"] + found["private"], 0, found)

    def test_an_edit_without_a_checksum(self) -> None:
        for measure, path, value in (("speed", "metrics.time_s.median", 1e-9), ("memory", "duration_s", 9.0), ("accuracy", "metrics.test", 0.99)):
            found = faults(edited(BY_MEASURE[measure], path, value, seal=False))
            self.assertEqual([kind for kind, _ in found], ["form"], path)
            self.assertIn("changed after it was written", found[0][1])
        self.assertIn("no checksum", faults({k: v for k, v in BY_MEASURE["speed"].items() if k != "checksum"})[0][1])

    def test_an_edit_with_a_right_checksum(self) -> None:
        shorter = [s * 0.9 for s in BY_MEASURE["speed"]["samples"]]
        edits: list[tuple[str, str, Any]] = [
            ("speed", "metrics.time_s.median", 1e-6), ("speed", "metrics.time_s.mean", 1e-6), ("speed", "metrics.time_s.min", 1e-6),
            ("speed", "metrics.time_s.mad", 1e-4), ("speed", "metrics.time_s.ci_low", 1e-6), ("speed", "metrics.time_s.ci_high", 1e-3),
            ("speed", "metrics.time_s.n", 8), ("speed", "samples", shorter), ("speed", "samples", BY_MEASURE["speed"]["samples"][:6]),
            ("speed", "visits", [4, 4, 1]), ("speed", "metrics.tokens_per_s", 1e12), ("speed", "metrics.flops", 1.0), ("speed", "metrics.peak_fraction", 0.5),
            ("memory", "metrics.peak_bytes", 7), ("memory", "metrics.workspace_bytes", -9),
            ("fidelity", "metrics.cosine", 1.5), ("fidelity", "metrics.relative_error", -1.0),
            ("accuracy", "metrics.test", 0.97), ("accuracy", "metrics.lift", 0.9), ("accuracy", "metrics.validation", 0.999),
            ("accuracy", "metrics.examples", 1), ("accuracy", "metrics.steps", 100),
            ("accuracy", "metrics.by_example.scores", "f" * 64), ("accuracy", "metrics.examples_per_s", 1e9),
            ("accuracy", "metrics.shortcuts", {"majority": 0.1}), ("accuracy", "training.target", 0.999),
        ]  # fmt: skip
        for measure, path, value in edits:
            found = faults(edited(BY_MEASURE[measure], path, value))
            self.assertTrue(found and found[0][0] in ("edited", "form"), f"{measure} {path}: {found}")

    def test_an_id_of_another_setting(self) -> None:
        for path, value in (("axes.length", 512), ("axes.seed", 1), ("variant.params", {"window": 8}), ("source.variant", "0" * 16), ("cell", "0" * 16),
                            ("variant.name", "truncated")):  # fmt: skip
            found = faults(edited(BY_MEASURE["memory"], path, value))
            self.assertTrue(any("its id is that of another setting" in words for _, words in found), f"{path}: {found}")
        row = BY_MEASURE["speed"]
        self.assertEqual(id_of(row, run_line()), row["cell"])

    def test_scores_by_example_unpack_as_they_were_packed(self) -> None:
        self.assertEqual(scores_of({"count": 6, "levels": 2, "scores": "a4"}), [1, 0, 1, 0, 0, 1])
        self.assertEqual(scores_of({"count": 2, "levels": 16, "scores": "f3"}), [1, 0.2])


class Conditions(unittest.TestCase):
    def test_unverified(self) -> None:
        bare = sealed({k: v for k, v in BY_MEASURE["speed"].items() if k != "verified"})
        self.assertEqual([kind for kind, _ in faults(bare)], ["unverified"])
        for path, value in (("verified.error", 1.0), ("verified.bound", 0.0)):
            self.assertEqual([kind for kind, _ in faults(edited(BY_MEASURE["memory"], path, value))], ["unverified"])
        wrong = edited(edited(BY_MEASURE["memory"], "verified.gradient_error", 0.1), "verified.gradient_bound", 0.01)
        self.assertEqual([kind for kind, _ in faults(wrong)], ["unverified"])

    def test_unfinished(self) -> None:
        for ended in ("steps", "time"):
            found = faults(edited(BY_MEASURE["accuracy"], "metrics.ended_by", ended))
            self.assertEqual([kind for kind, _ in found], ["unfinished"])
            self.assertIn("--train steps=N", found[0][1])
        bare = BY_MEASURE["accuracy"]
        (found,) = faults(sealed({**bare, "metrics": {k: v for k, v in bare["metrics"].items() if k != "ended_by"}}))
        self.assertEqual(found[0], "unfinished")
        self.assertIn("it does not say why its training ended", found[1])
        self.assertEqual(faults(edited(BY_MEASURE["accuracy"], "metrics.ended_by", "plateau")), [])
        trial = edited(edited(BY_MEASURE["accuracy"], "metrics.ended_by", "steps"), "trial", {"round": 1, "choices": 2})
        self.assertEqual(faults(trial), [], "a short training of a search is no result")

    def test_failures_are_results_too(self) -> None:
        failed = cell("fidelity", "linear", status="failed", reason="it threw", metrics=None)
        self.assertEqual(faults(failed), [])

    def test_departures_that_are_not_said(self) -> None:
        config = run_line()["config"]
        for name, changed in (("timeout", {"timeout_s": 60.0}), ("pin", {"pin": "none"}), ("max_memory", {"max_memory_bytes": 1}),
                              ("precision", {"precision": 0.02}), ("max_time", {"max_time_s": 5}), ("sweep_file", {"sweep_file": "name = 1"})):  # fmt: skip
            run = run_line(config={**config, **changed})
            self.assertEqual([kind for kind, _ in faults(run=run)], ["departs"], name)
            self.assertEqual(faults(run=sealed({**run, "protocol": {**run["protocol"], "departs": [name]}})), [])
        self.assertIn("measure again", faults(run=run_line(protocol={"name": "attnbench-0", "hash": "0" * 16, "departs": []}))[0][1])
        bare = sealed({k: v for k, v in run_line().items() if k != "protocol"})
        self.assertIn("names no protocol", faults(run=bare)[0][1])

    def test_names_of_folders_users_and_machines(self) -> None:
        for argv, part in ((["-o", "/home/ada/x.jsonl"], "/home/ada/x.jsonl"), (["--output=/scratch/a.jsonl"], "/scratch/a.jsonl"),
                           (["-c", "~/s.toml"], "~/s.toml"), (["-v", "python:/srv/ada/mine.py:Cosine"], "/srv/ada/mine.py"),
                           (["-o", "C:\\ada\\x"], "C:\\ada\\x"), (["ada-laptop.jsonl"], "ada")):  # fmt: skip
            found = faults(run=run_line(argv=argv), names=("ada",))
            self.assertEqual([kind for kind, _ in found], ["private"], argv)
            self.assertIn(part, found[0][1])
        failed = cell("fidelity", "linear", status="failed", reason="cannot read '/opt/secret/data'", metrics=None)
        self.assertEqual([kind for kind, _ in faults(failed)], ["private"])
        for text in ("results/quick.jsonl", "0/1", "GB/s", "../rows.jsonl", "a/b", "canada", "https://example.org/a", "tokens/s, 50 %"):
            self.assertEqual(private_part(text, ("ada",)), "", text)

    def test_one_line_for_each_kind(self) -> None:
        bad = [edited(c, "metrics.ended_by", "steps") for c in honest()[1:] if c["measure"] == "accuracy"]
        lines = first_of_each(faults_of_rows("rows.jsonl", [run_line(argv=["-o", "/home/ada/x"]), *bad], PROTOCOL))
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith("rows.jsonl:1: argv[1] names '/home/ada/x'"), lines[0])
        self.assertTrue(lines[1].startswith("rows.jsonl:2: ") and lines[1].endswith("(and 2 more lines like it)"), lines[1])

    def test_a_line_of_another_form_is_a_fault_and_no_exception(self) -> None:
        row = BY_MEASURE["speed"]
        for path, value in (("metrics", {}), ("samples", ["a"]), ("samples", []), ("samples", None), ("axes", {}), ("visits", []),
                            ("variant", {"name": "x", "params": []})):  # fmt: skip
            self.assertTrue(faults(edited(row, path, value)), path)
        for config in ({}, {"protocol": "1"}):
            self.assertTrue(faults(run=run_line(config=config)))
        self.assertTrue(faults(sealed({**row, "run": "another"})))
