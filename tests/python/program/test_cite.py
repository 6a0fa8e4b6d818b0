"""`attnbench protocol` and `attnbench cite`: what stands behind a number, as data and as BibTeX; what run, table and LaTeX say of it."""

from __future__ import annotations

import json
import re
import unittest

from attnbench.plots.rows.checksum import hash_of

from ..faults import BUILT, ROOT, InFolder
from .test_cli import TINY, attnbench, rows_of

VERSION = re.search(r"VERSION ([\d.]+) LANGUAGES", (ROOT / "CMakeLists.txt").read_text())[1]
NAME = "attnbench-2"
OLD = ROOT / "tests" / "data" / "rows" / "0.1.0-2026-11-20-quick.jsonl"


def shown(*arguments):
    return attnbench(*map(str, arguments)).stdout


def protocol():
    return json.loads(shown("protocol", "--json"))


@BUILT
class Protocol(InFolder):
    def test_its_hash_is_that_of_its_definition(self):
        told = protocol()
        self.assertEqual((told["name"], told["definition"]["name"]), (NAME, NAME))
        self.assertEqual(told["hash"], hash_of(told["definition"]))
        self.assertTrue(shown("protocol").startswith(f"{NAME}, hash {told['hash']}\n"))
        profiles = {p["name"]: p["version"] for p in json.loads(shown("list", "profiles", "--json"))["profiles"]}
        self.assertEqual({n: p["version"] for n, p in told["definition"]["profiles"].items()}, profiles)

    def test_a_run_names_it_and_what_departs(self):
        file = self.folder / "rows.jsonl"
        done = attnbench("run", *TINY, "--timeout", "5m", "--max-memory", "1G", "-o", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        words = f"{NAME} ({protocol()['hash']}), departs in timeout, max_memory"
        self.assertIn(f"protocol: {words}\n", done.stderr)
        head = rows_of(file)[0]
        self.assertEqual(head["protocol"], {"name": NAME, "hash": protocol()["hash"], "departs": ["timeout", "max_memory"]})
        text, markdown, latex = (shown("table", file, "--format", f) for f in ("table", "md", "latex"))
        self.assertEqual(text, done.stdout)
        self.assertEqual([text.count(f"  protocol {words}\n"), markdown.count(f"\nprotocol {words}\n")], [1, markdown.count("**\n")])
        self.assertIn(f"\\par\\footnotesize protocol {words}\n".replace("max_memory", r"max\_memory"), latex)
        self.assertNotIn("protocol", shown("table", ROOT / "results" / "reference" / "quick.jsonl", "--format", "md"))

    def test_a_comparison_cautions_of_two_protocols(self):
        file, other = self.folder / "rows.jsonl", self.folder / "other.jsonl"
        attnbench("run", *TINY, "-o", file)
        lines = rows_of(file)
        for change, cautioned in (({"departs": ["length"]}, False), ({"hash": "0" * 16}, True), (None, False)):
            head = {**lines[0], "protocol": {**lines[0]["protocol"], **(change or {})}}
            if change is None:
                del head["protocol"]  # of an earlier version
            other.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines[1:])))
            done = attnbench("compare", file, other)
            self.assertEqual((done.returncode, f"caution: OLD is by protocol {NAME}" in done.stderr), (0, cautioned), done.stderr)

    def test_every_table_of_markdown_and_latex_may_stand_alone(self):
        file = self.folder / "rows.jsonl"
        attnbench("run", *TINY, "-v", "full", "--causal", "false,true", "-o", file)
        for form, begins in (("md", "**\n"), ("latex", r"\begin{table}")):
            text = shown("table", file, "--format", form)
            self.assertGreater(text.count(begins), 1)
            self.assertEqual(text.count(f"protocol {NAME} ("), text.count(begins))
        self.assertEqual(shown("table", file).count("protocol"), 1)


def entries(text):
    """The BibTeX entries of a text: {key: {field: value}}."""
    found = {}
    for kind, key, body in re.findall(r"^@(\w+)\{([\w]+),\n(.*?)^\}", text, re.M | re.S):
        fields = dict(re.findall(r"^  (\w+) += \{(.*)\},$", body, re.M))
        found[key] = {"kind": kind, **fields}
        for value in fields.values():
            assert value.count("{") == value.count("}"), value
    return found


@BUILT
class Cite(InFolder):
    def test_the_program_is_cited_with_version_commit_and_protocol(self):
        (entry,) = entries(shown("cite")).values()
        self.assertEqual((entry["kind"], entry["version"]), ("misc", VERSION), "plain styles of BibTeX know no @software")
        self.assertIn(f"{NAME} ({protocol()['hash']})", entry["note"])
        self.assertIn(re.search(r"commit +(\w+)", shown("--version"))[1][:12], entry["note"])
        cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
        self.assertEqual(entry["title"], re.search(r'^title: "(.*)"$', cff, re.M)[1])
        self.assertEqual(entry["author"], "{" + re.search(r'^  - name: "(.*)"$', cff, re.M)[1] + "}")
        self.assertEqual(entry["year"], re.search(r"^date-released: (\d{4})", cff, re.M)[1])

    def test_rows_are_cited_with_what_measured_them(self):
        path = sorted((ROOT / "tests" / "data" / "rows").glob("0.1.0-*"))[0]
        head, *cells = map(json.loads, path.read_text().splitlines())
        tool, rows = entries(shown("cite", path)).values()
        self.assertEqual((tool["version"], tool["note"]), ("0.1.0", f"commit {head['environment']['commit'][:12]}"))
        self.assertNotIn("year", tool)  # not this program's version
        self.assertIn(f"{len(cells)} cells, checksum ", rows["note"])
        self.assertIn("before protocols had names", rows["note"])
        self.assertEqual(rows["year"], head["started_at"][:4])

    def written(self, name, *runs):
        """A rows file of runs, each an environment and a protocol, or None; every run has a cell."""
        head, cell = map(json.loads, OLD.read_text().splitlines()[:2])
        lines = []
        for number, (environment, named) in enumerate(runs):
            own = {"run": f"{name}-{number}"}
            lines += [{**head, **own, "merged": True, "environment": head["environment"] | environment, **({"protocol": named} if named else {})}]
            lines += [{**cell, **own, "cell": f"{number:x}{cell['cell'][1:]}"}]
        (self.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return self.folder / name

    def test_a_fact_that_begins_another_is_told_too(self):
        plain, longer = {"name": NAME, "hash": "0" * 16, "departs": []}, {"name": NAME, "hash": "0" * 16, "departs": ["length"]}
        file = self.written("rows.jsonl", ({"cpu_model": "Xeon 2", "commit": "b" * 40}, longer), ({"cpu_model": "Xeon", "commit": "a" * 40}, plain),
                            ({"cpu_model": "Xeon 2", "commit": "a" * 40, "dirty": True}, None), ({"cpu_model": "Xeon 2", "commit": "a" * 40, "dirty": True}, longer))  # fmt: skip
        *tools, rows = entries(shown("cite", file)).items()
        version = "attnbench_0_1_0_"
        self.assertEqual([key for key, _ in tools], [version + "b" * 7, version + "a" * 7, version + "a" * 7 + "_dirty"])
        by = f"attnbench 0.1.0, commit {'b' * 12}; attnbench 0.1.0, commit {'a' * 12}; attnbench 0.1.0, commit {'a' * 12} with local changes"
        self.assertEqual(rows[1]["howpublished"], f"{by} on Xeon 2; Xeon")
        self.assertIn(f", protocol {NAME} ({'0' * 16}), departs in length; {NAME} ({'0' * 16})", rows[1]["note"])
        self.assertTrue(tools[1][1]["note"].endswith(f", protocol {NAME} ({'0' * 16})"), tools)

    def test_no_key_comes_twice_over_several_files(self):
        a, b = {"cpu_model": "A", "commit": "a" * 40, "dirty": False}, {"cpu_model": "B", "commit": "a" * 40, "dirty": False}
        files = [self.written("a.jsonl", (a, None)), self.written("b.jsonl", (b, None), ({**b, "dirty": True}, None)), self.folder / "copy.jsonl"]
        files[2].write_bytes(files[0].read_bytes())
        text = shown("cite", *files)
        keys = re.findall(r"^@misc\{(\w+),$", text, re.M)
        self.assertEqual(len(keys), 4, text)
        self.assertEqual(len(set(keys)), 4, text)
        self.assertEqual([key.startswith("attnbench_rows_") for key in keys], [False, False, True, True])
        self.assertEqual(text.count("@"), 4)

    def test_rows_without_a_cell_match_nothing(self):
        whole, bare = self.written("whole.jsonl", ({}, None)), self.folder / "bare.jsonl"
        bare.write_text(whole.read_text().splitlines()[0] + "\n")
        for files in ([bare], [whole, bare]):
            done = attnbench("cite", *files)
            self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)
            self.assertIn("nothing matched", done.stderr)
            self.assertIn("bare.jsonl", done.stderr)

    def test_the_checksum_is_of_what_the_lines_say(self):
        file = self.folder / "rows.jsonl"
        attnbench("run", *TINY, "-o", file)
        lines = rows_of(file)
        (_, rows) = entries(shown("cite", file)).items()
        said = re.search("checksum ([0-9a-f]{16})", rows[1]["note"])[1]
        self.assertEqual(said, hash_of(sorted(map(hash_of, lines))))
        self.assertEqual(rows[0], f"attnbench_rows_{said}")
        file.write_text("".join(json.dumps(line) + "\n" for line in (lines[0], *lines[:0:-1])))  # other order, other spaces
        self.assertIn(said, shown("cite", file))
        lines[1]["metrics"]["peak_bytes"] += 1
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.assertNotIn(said, shown("cite", file))

    def test_texts_of_hostile_rows_stay_within_their_fields(self):
        head, *cells = map(json.loads, OLD.read_text().splitlines())
        head["environment"] |= {"cpu_model": "A},\n@misc{evil, \\input{x} % \x1b[31m", "version": "1}{,\n"}
        file = self.folder / "a}b_c%.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in (head, *cells)))
        text = shown("cite", file)
        self.assertEqual(len(entries(text)), 2)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\\input", text)
        self.assertIn(r"ab\_c\%.jsonl", text)

    def test_what_is_no_rows_file_is_refused(self):
        file = self.folder / "rows.jsonl"
        file.write_text("{}\n")
        for path, code in ((file, 2), (self.folder / "none.jsonl", 6)):
            done = attnbench("cite", path)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
            self.assertIn(path.name, done.stderr)
