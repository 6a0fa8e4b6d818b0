"""The tables of docs/ that commands make from rows."""

import json
import shlex
import tempfile
import unittest
from pathlib import Path

from attndocs import documents, shares
from attnpeers.install import ROOT


class Documents(unittest.TestCase):
    def test_a_table_is_put_between_its_marks(self):
        text = "a\n\n<!-- scripts/peers --table x -->\n\nold\n\n<!-- end of table -->\n\nb\n"
        self.assertEqual(documents.commands(text), ["scripts/peers --table x"])
        made = documents.renewed(text, lambda command: f"of {command}")
        self.assertEqual(made, text.replace("old", "of scripts/peers --table x"))

    def test_every_table_in_docs_is_what_its_command_prints(self):
        found = documents.documents()
        self.assertEqual([path.name for path in found], ["peers.md", "performance.md"])
        for path in found:
            text = path.read_text(encoding="utf-8")
            for command in documents.commands(text):
                for word in shlex.split(command):
                    if word.endswith(".jsonl"):
                        self.assertTrue((ROOT / word).exists(), command)
            self.assertEqual(documents.renewed(text), text, path.name)


class Shares(unittest.TestCase):
    def test_a_line_a_variant_and_mode_and_a_column_a_length(self):
        rows = ROOT / "results" / "reference" / "quick.jsonl"
        head = next(
            line
            for line in rows.read_text(encoding="utf-8").splitlines()
            if json.loads(line)["kind"] == "run"
        )
        cell = next(
            row
            for row in map(json.loads, rows.read_text(encoding="utf-8").splitlines())
            if row["kind"] == "cell" and row["measure"] == "speed" and row["status"] == "ok"
        )
        del cell["checksum"]
        cell["metrics"]["time_s"].update(median=0.002, min=0.001)
        cell["metrics"]["peak_fraction"] = 0.4
        length, name = cell["axes"]["length"], cell["variant"]["name"]
        cell["axes"]["mode"] = "forward"
        head = json.loads(head)
        head.pop("checksum", None)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            path.write_text(json.dumps(head) + "\n" + json.dumps(cell) + "\n", encoding="utf-8")
            self.assertEqual(
                shares.table(path).splitlines(),
                [
                    f"| variant | | {length} |",
                    "|---|---|---|",
                    f"| `{name}` | forward | 2, 0.40 (0.80) |",
                ],
            )


if __name__ == "__main__":
    unittest.main()
