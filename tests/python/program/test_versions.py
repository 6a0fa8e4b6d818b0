"""Rows of every version so far (tests/data/rows) keep the schema, and the readers take them: tables, comparisons, exports, citations,
pictures. The file of a version that is out is never changed; a new version adds one."""

from __future__ import annotations

import json
import re
import unittest

from attnbench.plots.gallery import draw_all
from attnbench.plots.rows.read import read_rows

from ..faults import BUILT, ROOT, validator
from .test_cli import attnbench

HELD = sorted((ROOT / "tests" / "data" / "rows").glob("*.jsonl"))
SCHEMA = ROOT / "results" / "schema.json"


class Versions(unittest.TestCase):
    def test_there_are_rows_of_every_version(self) -> None:
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        told = {line.split()[1] for line in changelog.splitlines() if line.startswith("## ") and "Unreleased" not in line}
        held = {json.loads(path.read_text().splitlines()[0])["environment"]["version"] for path in HELD}
        self.assertEqual(told - held, set(), "add a file of that version to tests/data/rows")

    def test_they_hold_every_measure_and_status_that_they_can(self) -> None:
        cells = [line for path in HELD for line in map(json.loads, path.read_text().splitlines()) if line["kind"] == "cell"]
        self.assertEqual({c["measure"] for c in cells}, {"speed", "memory", "accuracy", "fidelity"})
        self.assertLessEqual({"ok", "skipped"}, {c["status"] for c in cells})
        self.assertTrue(any("checksum" not in c for c in cells) and any("trial" in c for c in cells) and any("verified" in c for c in cells))

    def test_each_line_keeps_the_schema(self) -> None:
        self.assertGreater(len(HELD), 9)
        for path in HELD:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                faults = [error.message for error in validator().iter_errors(json.loads(line))]
                self.assertEqual(faults, [], f"{path.name}:{number}")

    def test_the_schema_tells_its_version(self) -> None:
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        self.assertRegex(schema["$id"], r"^urn:attnbench:rows:1\.\d+$")
        self.assertEqual(schema["properties"]["schema"]["const"], "attnbench/1")

    def test_pictures_read_them(self) -> None:
        for path in HELD:
            rows = read_rows([path], SCHEMA)
            self.assertGreater(len(rows.cells) + len(rows.trials), 0, path.name)
        drawn = draw_all(read_rows([HELD[0]], SCHEMA), "memory")  # of the first version
        self.assertIn("attnbench 0.1.0", drawn[0].caption)


@BUILT
class Program(unittest.TestCase):
    def done(self, *arguments: object) -> str:
        done = attnbench(*map(str, arguments))
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stderr}")
        return done.stdout

    def test_tables_show_them(self) -> None:
        for path in HELD:
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            names = {line["variant"]["name"] for line in lines if line["kind"] == "cell" and "trial" not in line}
            shown = self.done("table", path)
            self.assertEqual({name for name in names if name not in shown}, set(), path.name)

    def test_a_file_compared_with_itself_has_not_changed(self) -> None:
        for path in HELD:
            counts = re.findall(r"^  (\w+) +(\d+) +(\d+) +\d+ +\d+ +\d+$", self.done("compare", path, path), re.M)
            self.assertTrue(counts, path.name)
            self.assertEqual({worse + better for _, worse, better in counts}, {"00"}, path.name)

    def test_other_verbs_take_them(self) -> None:
        for path in HELD:
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            cells = [line for line in lines if line["kind"] == "cell"]
            exported = self.done("export", path).splitlines()
            self.assertEqual(len(exported), len(cells) + 1, path.name)
            self.assertIn(f"{len(cells)} cells", self.done("cite", path))
            self.assertEqual(len(self.done("merge", path, "-o", "-").splitlines()), len(lines), path.name)
