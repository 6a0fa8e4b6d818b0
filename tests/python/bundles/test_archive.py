"""What `read_bundle` gives, and what it refuses: members and manifest, lines, texts, protocol. It runs nothing."""

from __future__ import annotations

import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

from attnbench.bundles.archive import CONTRACT, MANIFEST, STATEMENT, json_bytes, read_bundle
from attnbench.bundles.container import BundleError, UnreadableBundle

from .archives import members_of, written
from .planted import DEFINITION, ENVIRONMENT, PROTOCOL, cell, honest, run_line, text_of


class Reading(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)

    def refused(self, members: dict[str, bytes], *words: str) -> None:
        with self.assertRaises(BundleError) as caught:
            read_bundle(written(self.folder, members))
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertTrue(str(caught.exception).isprintable(), "a line for a terminal")

    def test_what_it_gives(self) -> None:
        members = members_of(sources__mine_dot_py=b"raise SystemExit('it ran')")
        path = written(self.folder, members)
        with patch.object(subprocess, "Popen", side_effect=AssertionError("it started a process")):
            bundle = read_bundle(path)
        self.assertEqual(bundle.rows, {"rows/rows.jsonl": honest()})
        self.assertEqual((len(bundle.cells), bundle.protocol_hash, bundle.statement), (21, PROTOCOL["hash"], "planted rows"))
        self.assertEqual(bundle.environment, {run: line["environment"] for run, line in bundle.runs.items()})
        self.assertEqual((bundle.signature, bundle.sources), ("", {"sources/mine.py": b"raise SystemExit('it ran')"}))
        again = cell("speed", "linear", noise=9)
        self.assertEqual(read_bundle(written(self.folder, members_of([*honest(), again]))).cells[-1], again, "of a cell measured twice, the last row")
        self.assertEqual(len(read_bundle(path).cells), 21)

    def test_a_file_that_is_none(self) -> None:
        with self.assertRaises(UnreadableBundle):
            read_bundle(self.folder / "none.attnbundle")
        with self.assertRaises(UnreadableBundle):
            read_bundle(self.folder)

    def test_a_row_taken_out_of_what_was_listed(self) -> None:
        members = members_of()
        lines = members["rows/rows.jsonl"].splitlines(keepends=True)
        self.refused(members | {"rows/rows.jsonl": b"".join(lines[:-1])}, "rows/rows.jsonl", "not the one of the manifest")
        self.refused(members | {"rows/rows.jsonl": members["rows/rows.jsonl"].replace(b"0.5", b"0.4", 1)}, "SHA-256 differs")

    def test_members_and_manifest(self) -> None:
        members = members_of()
        self.refused(members | {"rows/more.jsonl": b"{}"}, "'rows/more.jsonl' is not in the manifest")
        self.refused({name: c for name, c in members.items() if name != "rows/rows.jsonl"}, "of the manifest is missing")
        self.refused({name: c for name, c in members.items() if name != STATEMENT}, "no member 'statement.txt'")
        self.refused(members_of(evil_dot_sh=b"rm"), "no kind that a bundle has")
        self.refused(members_of(sources__CMakeLists_dot_txt=b"execute_process()"), "no kind")
        with patch("attnbench.bundles.archive.MOST_SOURCE", 10):
            self.refused(members_of(sources__big_dot_cc=b"int main() { }"), "'sources/big.cc' is no source")
        for manifest in ({"schema": "attnbench-bundle/2"}, {"schema": "attnbench-bundle/1"}, {"schema": "attnbench-bundle/1", "members": {"a": 1}}):
            self.refused(members | {MANIFEST: json_bytes(manifest)}, "manifest.json")
        self.refused(members | {MANIFEST: b"[]"}, "manifest.json")
        self.refused(members_of([run_line()], **{"rows__rows_dot_jsonl": b""}), "it is empty")

    def test_lines_that_are_not_strict_json(self) -> None:
        good = text_of(honest())
        for line, word in (
            ('{"schema": "attnbench/1", "kind": "cell", "x": NaN}', "NaN"),
            ('{"schema": "attnbench/1", "kind": "cell", "x": -Infinity}', "Infinity"),
            ('{"schema": "attnbench/1", "kind": "cell", "x": 1e999}', "1e999"),
            ('{"schema": "attnbench/1", "schema": "attnbench/2"}', "twice"),
            ("[" * 100_000 + "]" * 100_000, "JSON"),
            ('{"a": ' + "9" * 5000 + "}", "JSON"),
            ("", "JSON"),
            ("[1]", "object"),
            ('{"a": "' + "x" * (5 << 20) + '"}', "4 MiB is the most"),
            ('{"a": "\\u001b]0;owned\\u0007"}', "control characters"),
            ('{"\\u202eevil": 1}', "control characters"),
            ('{"schema": "attnbench/2", "kind": "cell"}', "attnbench/2"),
            ('{"schema": "attnbench/1", "kind": ["cell"]}', "kind"),
            ('{"schema": "attnbench/1", "kind": "cell", "run": {}}', "'run'"),
            ('{"schema": "attnbench/1", "kind": "cell", "run": "bb", "cell": "aa"}', "no run line of 'bb'"),
            ('{"schema": "attnbench/1", "kind": "cell", "run": "00000000000000aa", "cell": "aa", "status": "ok", "variant": []}', "right form"),
            ('{"schema": "attnbench/1", "kind": "run", "run": "bb", "environment": {}, "protocol": []}', "protocol"),
            ('{"schema": "attnbench/1", "kind": "run", "run": "bb", "environment": {}, "protocol": {"name": "a", "hash": "b", "departs": [1]}}', "protocol"),
        ):
            text = (good + line + "\n").encode()
            with patch("attnbench.bundles.container.MOST_RATIO", 1 << 30):  # of repeated letters
                self.refused(members_of(honest(), rows__rows_dot_jsonl=text), "rows/rows.jsonl:23", word)
        self.refused(members_of(honest(), rows__rows_dot_jsonl=b"\xff\xfe\n"), "UTF-8")

    def test_a_statement_that_steers_a_terminal(self) -> None:
        for text in ("\x1b[2J\x1b]0;owned\x07", "fine\r\x1b[1A", "\u202etxt.exe", "a\x00b", "\x9b31m", "a\u200bb"):
            self.refused(members_of(statement_dot_txt=text.encode()), "statement.txt", "control characters")
        self.refused(members_of(statement_dot_txt=b"x" * 3000), "2000 is the most")
        self.refused(members_of(statement_dot_txt=b"\xff"), "UTF-8")
        kept = read_bundle(written(self.folder, members_of(statement_dot_txt="Zwei Zeilen,\nmit Umlauten: äöü\n".encode()))).statement
        self.assertEqual(kept, "Zwei Zeilen,\nmit Umlauten: äöü")

    def test_a_protocol_that_is_another(self) -> None:
        easier = {"name": "attnbench-1", "hash": PROTOCOL["hash"], "definition": {**DEFINITION, "timeout_s": 9}}
        self.refused(members_of(protocol_dot_json=json_bytes(easier)), "protocol.json", "the hash is", PROTOCOL["hash"])
        self.refused(members_of(protocol_dot_json=json_bytes({**PROTOCOL, "name": "other-1"})), "name")
        self.refused(members_of(protocol_dot_json=json_bytes({})), "definition")
        other = run_line(protocol={"name": "attnbench-1", "hash": "0" * 16, "departs": []})
        self.refused(members_of([other, *honest()[1:]]), "of another protocol")
        departing = run_line(protocol={"name": "attnbench-1", "hash": PROTOCOL["hash"], "departs": ["timeout"]})
        members = members_of([departing, *honest()[1:]])
        manifest = json.loads(members[MANIFEST])
        self.refused(members | {MANIFEST: json_bytes({**manifest, "departs": []})}, "its 'departs' is not what the rows")
        self.refused(members | {MANIFEST: json_bytes({**manifest, "protocol": {"name": "x", "hash": "y"}})}, "its 'protocol' is not what the rows")

    def test_what_the_manifest_says_of_the_rows(self) -> None:
        members = members_of()
        manifest = json.loads(members[MANIFEST])
        for name, value in (("cells", {"ok": 1000}), ("variants", {}), ("program", ["9.9 abc"]), ("verified", True)):
            self.refused(members | {MANIFEST: json_bytes({**manifest, name: value})}, name)

    def test_one_run_on_two_machines(self) -> None:
        other = run_line(environment={**ENVIRONMENT, "cpu_model": "Faster CPU"})
        self.refused(members_of([*honest(), other]), "different cpu_model")

    def test_bounds_of_lines_and_levels(self) -> None:
        with patch("attnbench.bundles.archive.MOST_LINES", 20):
            self.refused(members_of(), "22 lines; 20 is the most")
        deep = "[" * 40 + "]" * 40
        self.refused(members_of(honest(), rows__rows_dot_jsonl=(text_of(honest()) + f'{{"a": {deep}}}\n').encode()), "deep within each other")

    def test_an_environment_that_is_another(self) -> None:
        self.refused(members_of(environment_dot_json=json_bytes({})), "environment.json")
        self.refused(members_of(environment_dot_json=b'{"a": NaN}'), "environment.json", "NaN")
        self.refused(members_of(**{CONTRACT.replace(".", "_dot_"): b"{"}), "contract.json")


if __name__ == "__main__":
    unittest.main()
