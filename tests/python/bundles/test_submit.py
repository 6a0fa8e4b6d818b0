"""attnbench submit: what goes into the archive, and every refusal in one line."""

from __future__ import annotations

import unittest
from pathlib import Path
from unittest.mock import patch

from attnbench.bundles.archive import read_bundle
from attnbench.bundles.submit import main
from attnbench.plots.rows.checksum import checksum_fault

from .base import HONEST, Verbs, key
from .planted import cell, edited, honest, run_line, sealed, text_of


class Submit(Verbs):
    def test_the_archive_holds_rows_and_what_stands_behind_them(self) -> None:
        said = self.submitted(honest(), "--statement", "three variants")
        self.assertEqual((said.code, said.err), (0, ""))
        bundle = read_bundle(self.folder / "made.attnbundle")
        self.assertIn(f"sha256 {bundle.digest}", said.out)
        self.assertEqual(bundle.rows["rows/rows.jsonl"], honest())
        self.assertEqual((bundle.statement, bundle.manifest["cells"], bundle.manifest["departs"]), ("three variants", {"ok": 21}, []))
        self.assertEqual({name: of["red"] for name, of in bundle.contract.items()}, {"full": 0, "linear": 0, "truncated": 0})
        self.assertEqual(bundle.manifest["variants"]["linear"], {"provided_by": "attnbench", "sources": [honest()[-1]["source"]["variant"]]})
        self.assertEqual({words[0] for words in said.asked}, {"protocol", "list", "check"}, "it measures nothing")
        self.assertEqual([p.name for p in self.folder.iterdir() if "part" in p.name], [])

    def test_the_same_rows_give_the_same_bytes(self) -> None:
        digests = {(self.submitted(honest(), "--statement", "x").code, read_bundle(self.folder / "made.attnbundle").digest) for _ in range(2)}
        self.assertEqual(len(digests), 1)

    def test_departures_are_said(self) -> None:
        run = run_line(protocol={**run_line()["protocol"], "departs": ["length", "timeout"]})
        said = self.submitted([run, *honest()[1:]])
        self.assertIn("departs from attnbench-1 in length, timeout", said.out)
        self.assertEqual(read_bundle(self.folder / "made.attnbundle").manifest["departs"], ["length", "timeout"])

    def test_rows_that_are_not_taken(self) -> None:
        rows = honest()
        accuracy = next(i for i, c in enumerate(rows) if c.get("measure") == "accuracy")
        for changed, words in (
            (edited(rows[1], "metrics.time_s.median", 1e-9, seal=False), ("rows.jsonl:2", "changed after it was written")),
            (edited(rows[1], "metrics.time_s.median", 1e-9), ("rows.jsonl:2", "was edited", "median")),
            (edited(rows[1], "axes.length", 512), ("was edited", "id")),
            (sealed({k: v for k, v in rows[1].items() if k != "verified"}), ("unverified",)),
            (edited(rows[accuracy], "metrics.ended_by", "steps"), ("unfinished", "--train steps=N")),
            (edited(rows[1], "status", "great"), ("status 'great'",)),
        ):
            index = accuracy if "unfinished" in words else 1
            self.refused(self.submitted([*rows[:index], changed, *rows[index + 1 :]]), *words)
            self.assertFalse((self.folder / "made.attnbundle").exists())
        self.refused(self.submitted([run_line(argv=["-o", "/home/ada/x"]), *rows[1:]]), "/home/ada/x", "a folder, a user or a machine")
        failed = cell("fidelity", "linear", status="failed", reason="it threw", metrics=None)
        self.refused(self.submitted([run_line(), failed]), "no cell is ok", code=4)

    def test_folders_are_left_out_where_that_is_asked(self) -> None:
        argv = ["-v", "full", "-o", "/home/ada/x.jsonl", "--output=/tmp/y.jsonl", "-v", "python:/srv/ada/mine.py:Mine", "-c", "~/deep/s.toml", "0/1", "a/b"]
        config = {**run_line()["config"], "python": [{"variant": "python_mine", "file": "/srv/ada/mine.py", "name": "Mine"}]}
        rows = [run_line(argv=argv, config=config), *honest()[1:]]
        self.refused(self.submitted(rows), "--strip")
        self.assertEqual(self.submitted(rows, "--strip").code, 0)
        lines = read_bundle(self.folder / "made.attnbundle").rows["rows/rows.jsonl"]
        self.assertEqual(lines[0]["argv"], ["-v", "full", "-o", "x.jsonl", "--output=y.jsonl", "-v", "python:mine.py:Mine", "-c", "s.toml", "0/1", "a/b"])
        self.assertEqual(lines[0]["config"]["python"], [{"variant": "python_mine", "file": "mine.py", "name": "Mine"}])
        self.assertEqual((checksum_fault(lines[0]), lines[1:]), ("", honest()[1:]), "cells are as they were measured")
        broken = edited(rows[0], "argv", ["-o", "/home/ada/z"], seal=False)
        self.refused(self.submitted([broken, *rows[1:]], "--strip"), "changed after it was written")

    def test_one_line_for_each_kind_of_refusal(self) -> None:
        rows = honest()
        bad = [run_line(argv=["-o", "/home/ada/x"]), *(sealed({k: v for k, v in c.items() if k != "verified"}) for c in rows[1:4]), *rows[4:]]
        said = self.submitted(bad)
        self.assertEqual((said.code, said.err.count("\n")), (2, 2), said.err)
        self.assertIn("(and 2 more lines like it)", said.err)

    def test_files_that_are_none(self) -> None:
        made = self.folder / "made.attnbundle"
        self.refused(self.said(main, self.folder / "none.jsonl", "-o", made), "none.jsonl", "No such file", code=6)
        for name, content, word in (("empty.jsonl", "", "it is empty"), ("bad.jsonl", "{", "bad.jsonl:1"), ("rows.json", "{}", ".jsonl")):
            (self.folder / name).write_text(content)
            self.refused(self.said(main, self.folder / name, "-o", made), name, word)
        (self.folder / "other").mkdir()
        for folder in (self.folder, self.folder / "other"):
            (folder / "rows.jsonl").write_text("{}")
        self.refused(self.said(main, self.folder / "rows.jsonl", self.folder / "other" / "rows.jsonl", "-o", made), "two files are named rows.jsonl")
        self.refused(self.said(main, self.folder / "rows.jsonl", "-o", self.folder / "made.zip"), "made.zip", ".attnbundle")
        self.refused(self.submitted(honest(), "-o", self.folder / "none" / "made.attnbundle"), "is no folder", code=6)

    def test_statements(self) -> None:
        self.refused(self.submitted(honest(), "--statement", "\x1b[2J"), "--statement", "control characters")
        self.refused(self.submitted(honest(), "--statement", "see /home/ada/results"), "/home/ada/results")
        with patch("attnbench.bundles.submit.own_people", return_value=("ada",)):
            self.refused(self.submitted(honest(), "--statement", "by Ada"), "names 'ada'")

    def test_a_red_contract(self) -> None:
        self.refused(self.submitted(honest(), red=["linear"]), "linear: a contract check is red", code=5)

    def test_variants_in_python_bring_the_source_that_was_measured(self) -> None:
        rows = self.python_rows(HONEST)
        self.refused(self.submitted(rows), "python_mine", "--plugin FILE.py")
        file = self.folder / "mine.py"
        file.write_text(HONEST + "# another\n")
        self.refused(self.submitted(rows, "--plugin", file), "other bytes")
        file.write_text(HONEST)
        for word in (file, f"python:{file}:Mine"):
            said = self.submitted(rows, "--plugin", word)
            self.assertEqual((said.code, said.err), (0, ""))
        bundle = read_bundle(self.folder / "made.attnbundle")
        self.assertEqual(bundle.sources, {"sources/mine.py": HONEST.encode()})
        self.assertEqual(bundle.contract["python_mine"]["level"], "full")
        file.write_text(HONEST + "PATH = '/home/ada/data'\n")
        self.refused(self.submitted(self.python_rows(file.read_text()), "--plugin", file), "mine.py:5", "/home/ada/data")
        file.write_bytes(b"\x7fELF\xff")
        self.refused(self.submitted(rows, "--plugin", file), "no text in UTF-8")
        self.refused(self.submitted(rows, "--plugin", self.folder / "mine.so"), "mine.so", ".cc, .h, .py")

    def test_rows_of_variants_that_nobody_has(self) -> None:
        self.refused(self.submitted([run_line(), cell("fidelity", "secret")]), "'secret'", "--plugin secret.cc")
        plugin = cell("fidelity", "linear", provided_by="plugin", plugin="0" * 16)
        self.refused(self.submitted([run_line(), plugin]), "plug-in of 'linear'", "source is not there")
        (self.folder / "idle.cc").write_text("int x;")
        self.refused(self.submitted(honest(), "--plugin", self.folder / "idle.cc"), "'idle.cc' is of no variant")

    def test_signing(self) -> None:
        mine = key(self.folder, "mine")
        said = self.submitted(honest(), "--key", mine)
        self.assertIn(", signed", said.out)
        self.assertTrue(read_bundle(self.folder / "made.attnbundle").signature)
        self.refused(self.submitted(honest(), "--key", self.folder / "none"), "none", code=6)
        (self.folder / "text").write_text("no key")
        self.refused(self.submitted(honest(), "--key", self.folder / "text"), "ssh-keygen does not sign with it")

    def test_an_output_without_a_folder_is_found_before_the_checks(self) -> None:
        (self.folder / "file").touch()
        (self.folder / "made.attnbundle").mkdir()
        rows = self.folder / "rows.jsonl"
        rows.write_text(text_of(honest()))
        for name, words in (("none/x", "'{}/none' is no folder"), ("file/x", "'{}/file' is no folder"), ("made", "it is a folder")):
            said = self.said(main, rows, "-o", self.folder / f"{name}.attnbundle")
            self.refused(said, "cannot be written", words.format(self.folder), code=6)
            self.assertEqual(said.asked, [])

    def test_a_kill_leaves_the_old_archive(self) -> None:
        self.submitted(honest())
        made = self.folder / "made.attnbundle"
        before = made.read_bytes()
        with patch.object(Path, "replace", side_effect=OSError(28, "No space left on device")):
            self.refused(self.submitted(honest(), "--statement", "again"), "made.attnbundle: cannot be written: No space left", code=6)
        self.assertEqual(made.read_bytes(), before)
        self.assertEqual([p.name for p in self.folder.iterdir() if "part" in p.name], [])


if __name__ == "__main__":
    unittest.main()
