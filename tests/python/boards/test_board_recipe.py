"""The recipe for a board of pull requests: its workflow keeps strangers' code from secrets, and its script verifies what it should."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from ..faults import ROOT

FOLDER = ROOT / "templates" / "board"
STUB = """#!/usr/bin/env bash
echo "::error::a stranger's line" >&2
echo "$@" >>"$CALLS"
echo "{\\"of\\": \\"$2\\"}"
case $2 in *agree1*) exit 0 ;; *other*) exit 4 ;; *wrong*) exit 3 ;; *) exit 2 ;; esac
"""


class Workflow(unittest.TestCase):
    def setUp(self) -> None:
        self.text = (FOLDER / "submissions.yml").read_text(encoding="utf-8")
        self.verify = re.sub(r"#.*", "", self.text).partition("\n  verify:")[2].partition("\n  board:")[0]

    def test_strangers_code_meets_no_secret(self) -> None:
        plain = re.sub(r"#.*", "", self.text)
        self.assertNotIn("pull_request_target", plain)
        self.assertNotIn("secrets", plain)
        self.assertRegex(self.text, r"\npermissions:\n  contents: read\n")
        self.assertNotRegex(self.verify, r"write|permissions:")
        self.assertEqual(plain.count("persist-credentials: false"), plain.count("actions/checkout"))
        self.assertNotRegex(self.text, r"run: .*\$\{\{", "a text of an event in a command is code")
        self.assertIn("if: github.event_name == 'pull_request'\n", self.verify)
        self.assertIn("if: github.event_name != 'pull_request'\n", self.text.partition("\n  board:")[2])

    def test_it_is_as_the_other_workflows(self) -> None:
        """The same actions in the same versions, the same system, the same order of keys."""
        others = "".join(p.read_text(encoding="utf-8") for p in (ROOT / ".github" / "workflows").glob("*.yml"))
        for line in ("actions/checkout", "actions/upload-pages-artifact", "actions/deploy-pages"):
            (version,) = set(re.findall(rf"{line}@(v\d+)", self.text))
            self.assertIn(f"{line}@{version}", others)
        self.assertEqual(set(re.findall(r"runs-on: (.*)", self.text)), {"ubuntu-24.04"})

    def test_steps_call_what_is_there(self) -> None:
        called = re.findall(r"run: (?:attnbench/|\./)(\S+)", self.text)
        self.assertEqual(called, ["scripts/setup", "verify_changed", "scripts/setup", "scripts/bench"])
        for name in called:
            path = FOLDER / name if name == "verify_changed" else ROOT / name
            self.assertTrue(path.stat().st_mode & 0o111, name)

    def test_the_readme_names_what_is_there(self) -> None:
        page = (FOLDER / "README.md").read_text(encoding="utf-8")
        for name in ("submissions.yml", "verify_changed", "pull_request_target", ".verified.json", "bundles/"):
            self.assertIn(name, page)


class Script(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.repository, self.verdicts = self.folder / "board", self.folder / "verdicts"
        (self.repository / "bundles").mkdir(parents=True)
        self.stub = self.folder / "bench"
        self.stub.write_text(STUB)
        self.stub.chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.add("bundles/old.attnbundle", "README.md")
        self.base = self.git("rev-parse", "HEAD")

    def git(self, *words: str) -> str:
        own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", "-C", self.repository, *own, *words], check=True, capture_output=True, text=True).stdout.strip()

    def add(self, *names: str) -> None:
        for name in names:
            (self.repository / name).write_text(name)
        self.git("add", "-A")
        self.git("commit", "-qm", "more")

    def verify(self) -> tuple[int, str]:
        environment = {**os.environ, "CALLS": str(self.folder / "calls")}
        command = [FOLDER / "verify_changed", self.base, self.stub, self.verdicts]
        done = subprocess.run(command, cwd=self.repository, capture_output=True, text=True, env=environment)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def calls(self) -> list[str]:
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def kept(self) -> list[str]:
        return sorted(p.name for p in self.verdicts.iterdir())

    def test_what_agrees_or_cannot_be_compared_passes(self) -> None:
        self.add("bundles/agree1.attnbundle", "bundles/other.attnbundle")
        code, said = self.verify()
        self.assertEqual(code, 0, said)
        self.assertEqual(self.calls(), [f"verify bundles/{n}.attnbundle --yes --json" for n in ("agree1", "other")])
        self.assertEqual(self.kept(), ["agree1.verified.json", "other.verified.json"])
        self.assertEqual((self.verdicts / "other.verified.json").read_text(), '{"of": "bundles/other.attnbundle"}\n')
        self.assertIn("bundles/other.attnbundle: not comparable on this machine", said)
        self.assertNotRegex(said, "(?m)^::")

    def test_what_disagrees_or_is_refused_fails(self) -> None:
        self.add("bundles/wrong.attnbundle", "bundles/agree1.attnbundle")
        self.assertEqual(self.verify()[0], 3)
        self.assertEqual(self.kept(), ["agree1.verified.json", "wrong.verified.json"])
        self.add("bundles/bad.attnbundle")
        self.assertEqual(self.verify()[0], 2)
        self.assertNotIn("bad.verified.json", self.kept())

    def test_a_submission_changes_nothing_but_archives(self) -> None:
        hostile = "bundles/a;touch owned.attnbundle"
        for name in ("README.md", "bundles/agree1.verified.json", "bundles/a\n::error::b.attnbundle", hostile, "bundles/x$(touch owned).attnbundle"):
            before = self.git("rev-parse", "HEAD")
            (self.repository / name).write_text("changed")
            self.git("add", "-A")
            self.git("commit", "-qm", "change")
            code, said = self.verify()
            self.assertEqual(code, 2, name)
            self.assertIn("a submission changes nothing but bundles/NAME.attnbundle", said)
            self.assertNotRegex(said, "(?m)^::")
            self.git("reset", "-q", "--hard", before)
        self.assertEqual(self.calls(), [])
        self.assertFalse((self.repository / "owned").exists())

    def test_a_link_and_an_archive_taken_away(self) -> None:
        (self.repository / "bundles" / "agree1.attnbundle").symlink_to("/etc/passwd")
        (self.repository / "bundles" / "old.attnbundle").unlink()
        self.git("add", "-A")
        self.git("commit", "-qm", "change")
        code, said = self.verify()
        self.assertEqual((code, said.count("refused: it is a link, or it was taken away")), (2, 2))
        self.assertEqual(self.calls(), [])

    def test_nothing_to_verify_and_wrong_use(self) -> None:
        self.assertEqual(self.verify()[0], 4)
        self.base = "0" * 40
        done = subprocess.run([FOLDER / "verify_changed", self.base, self.stub, self.verdicts], cwd=self.repository, capture_output=True)
        self.assertEqual(done.returncode, 6)
        done = subprocess.run([FOLDER / "verify_changed"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
