"""scripts/dev/release on clones made for it: a dry run writes nothing, each step leaves what it says, and each fault ends it before the tag."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

from dev import release

from ..faults import ROOT, InFolder

KEPT = ("CITATION.cff", ".zenodo.json", "pyproject.toml", "CHANGELOG.md", "CMakeLists.txt")
UNTESTED = ("--skip", "build", "--skip", "rows", "--skip", "wheels")


class ReleaseCase(InFolder):
    def setUp(self) -> None:
        super().setUp()
        for name in KEPT:
            shutil.copy(ROOT / name, self.folder)
        self.write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- One thing.\n- Another.\n\n## 0.2.0 (2026-11-27)\n\n- Old.\n")
        self.write("tests/data/protocols/a-1.json", "{}\n")
        self.write("tests/data/rows/0.2.0.jsonl", "{}\n")
        self.write(".gitignore", "/build/\n")
        self.ci("exit 0")
        self.git("init", "-q", "-b", "main")
        for name, value in (("user.name", "A"), ("user.email", "a@example.org"), ("commit.gpgsign", "false"), ("tag.gpgsign", "false")):
            self.git("config", name, value)
        self.commit("0.2.0")
        self.git("tag", "v0.2.0")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def ci(self, does: str) -> None:
        self.write(".ci/run", f"#!/bin/sh\n{does}\n")
        (self.folder / ".ci" / "run").chmod(0o755)

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def commit(self, subject: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)

    def run_release(self, *arguments: str) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = release.main([*arguments, "--root", str(self.folder)])
        return code, said.getvalue()

    def refused(self, fault: str, *arguments: str) -> None:
        head, tags = self.git("rev-parse", "HEAD"), self.git("tag")
        code, said = self.run_release(*(arguments or ("1.0.0", *UNTESTED)))
        undo = said.splitlines()[-1].partition("; undo by: ")[2]
        if undo:
            subprocess.run(undo.split(), cwd=self.folder, check=True, capture_output=True)
            self.assertEqual(self.git("status", "--porcelain"), "", undo)
        self.assertEqual((code, said.splitlines()[-1].partition(":")[0]), (1, f"fault    {fault.partition(':')[0]}"), said)
        self.assertIn(fault.partition(": ")[2], said)
        self.assertEqual((self.git("rev-parse", "HEAD"), self.git("tag")), (head, tags), "what a fault says takes back what was written")


class Release(ReleaseCase):
    def test_a_dry_run_tells_every_fault(self) -> None:
        self.write("CITATION.cff", "version: 0.2.7\n")
        self.write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n")
        (self.folder / ".ci" / "run").unlink()
        code, said = self.run_release("1.0.0", "--dry-run")
        self.assertEqual(code, 1)
        self.assertEqual(re.findall(r"^fault +(\w+):", said, re.M), ["clean", "versions", "changelog", "tests"])
        self.assertEqual(said.count("\n"), len(release.STEPS))
        self.assertNotIn("undo", said)

    def test_a_fault_of_files_and_of_json_is_one_line(self) -> None:
        for name, text in ((".zenodo.json", '{"version":\n'), ("CHANGELOG.md", None)):
            (self.folder / name).unlink()
            if text is None:
                (self.folder / name).mkdir()
                self.write(f"{name}/kept", "")
            else:
                self.write(name, text)
            self.commit("a file is broken")
            code, said = self.run_release("1.0.0", *UNTESTED)
            self.assertEqual(code, 1)
            self.assertRegex(said, r"(?:.*\n)*fault    (versions|changelog): .+\n\Z")
            self.assertNotIn("Traceback", said)
            self.git("reset", "-q", "--hard", "HEAD~1")
        (self.folder / ".zenodo.json").write_bytes(b"\xff")
        self.assertRegex(self.run_release("--only", "versions")[1], r"\Afault    versions: .+\n\Z")

    def test_the_version_is_above_that_of_the_files(self) -> None:
        self.git("tag", "-d", "v0.2.0")
        for version in ("0.2.0", "0.1.9"):
            self.refused(f"versions: {version} is not above 0.2.0", version, *UNTESTED)

    def test_tags_that_name_no_version_do_not_count(self) -> None:
        for name in ("vision", "v9", "v2.0.0-rc1", "v0.10"):
            self.git("tag", name)
        self.assertEqual(release.Release("1.0.0", self.folder).last_tag(), "v0.2.0")
        self.git("tag", "v0.10.0")
        self.git("tag", "v0.9.0")
        self.assertEqual(release.Release("1.0.0", self.folder).last_tag(), "v0.10.0")

    def test_a_heading_of_the_version_in_any_form_is_refused(self) -> None:
        whole = (self.folder / "CHANGELOG.md").read_text()
        for heading, is_there in (("## 1.0.0", True), ("## [1.0.0] - 2026", True), ("### v1.0.0 (x)", True), ("## 1.0.01", False), ("## 11.0.0", False)):
            self.write("CHANGELOG.md", f"{whole}\n{heading}\n\n- x\n")
            self.commit("a heading")
            code, said = self.run_release("1.0.0", "--dry-run")
            self.assertEqual((code, f"has the heading '{heading}' already" in said), (int(is_there), is_there), said)

    def test_a_dry_run_writes_nothing(self) -> None:
        self.ci("exit 1")
        self.commit("tests that fail")
        code, said = self.run_release("1.0.0", "--dry-run")
        self.assertEqual(code, 0, said)
        self.assertEqual([line.split()[1].rstrip(":") for line in said.splitlines()], [step.__name__ for step in release.STEPS])
        self.assertIn("2 entries under 1.0.0", said)
        self.assertEqual((self.git("status", "--porcelain", "--ignored"), self.git("tag")), ("", "v0.2.0\n"))

    def test_a_release_leaves_versions_a_cut_changelog_a_commit_a_tag_and_notes(self) -> None:
        code, said = self.run_release("1.0.0", *UNTESTED)
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("skipped"), 3)
        made = release.Release("1.0.0", self.folder)
        self.assertEqual(set(release.versions_in(made).values()), {"1.0.0"})
        changelog = (self.folder / "CHANGELOG.md").read_text()
        self.assertIn(f"## Unreleased\n\n## 1.0.0 ({made.today})\n\n- One thing.\n- Another.\n\n## 0.2.0", changelog)
        self.assertIn(f"date-released: {made.today}\n", (self.folder / "CITATION.cff").read_text())
        self.assertEqual(json.loads((self.folder / ".zenodo.json").read_text())["publication_date"], made.today)
        self.assertEqual(self.git("log", "-1", "--format=%s", "v1.0.0"), "Version 1.0.0\n")
        self.assertLess(said.index(" commit:"), said.index(" tests:"))
        self.assertEqual(self.git("cat-file", "-t", "v1.0.0"), "tag\n")
        self.assertIn("not signed", said)
        self.assertEqual(self.git("status", "--porcelain"), "")
        notes = (self.folder / "build" / "release" / "notes.md").read_text()
        self.assertIn("- One thing.\n- Another.", notes)
        self.assertNotIn("Old.", notes)
        self.refused("tag: v1.0.0 is there already")

    def test_each_fault_ends_it(self) -> None:
        self.write("new.txt", "x")
        self.refused("clean: new.txt")
        (self.folder / "new.txt").unlink()
        self.refused("tag: 0.1.9 does not follow v0.2.0", "0.1.9", *UNTESTED)
        self.ci("echo broken >&2; exit 3")
        self.commit("tests that fail")
        self.refused("tests: ended with 3")
        self.write("CITATION.cff", (self.folder / "CITATION.cff").read_text().replace("date-released", "released"))
        self.commit("no date")
        self.refused("versions: CITATION.cff lacks date-released")

    def test_what_was_released_stays(self) -> None:
        self.write("tests/data/rows/1.0.0.jsonl", "{}\n")
        self.commit("rows are added")
        self.assertEqual(self.run_release("1.0.0", "--only", "held")[0], 0)
        for change in (lambda: self.write("tests/data/protocols/a-1.json", '{"a": 1}\n'), (self.folder / "tests/data/rows/0.2.0.jsonl").unlink):
            change()
            self.commit("a released file changes")
            self.refused("held: was changed after v0.2.0")
            self.git("reset", "-q", "--hard", "HEAD~1")

    def test_versions_must_agree(self) -> None:
        for name, text in (("CITATION.cff", "version: 0.2.0"), (".zenodo.json", '"version": "0.2.0"'), ("CMakeLists.txt", "VERSION 0.2.0 LANG")):
            version = release.versions_in(release.Release("", ROOT))[name]
            text = text.replace("0.2.0", version)
            whole = (self.folder / name).read_text()
            self.assertIn(text, whole)
            self.write(name, whole.replace(text, text.replace(version, "0.2.7")))
            self.commit("one is another")
            self.refused(f"versions: {name} 0.2.7")
            self.git("reset", "-q", "--hard", "HEAD~1")
        self.write("pyproject.toml", '[project]\nversion = "0.2.0"\n')
        self.commit("a version of its own")
        self.refused("versions: pyproject.toml does not read the version")

    def test_a_changelog_without_entries_is_not_cut(self) -> None:
        self.write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-27)\n\n- Old.\n")
        self.commit("nothing new")
        self.refused("changelog: has nothing under '## Unreleased'")

    def at(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def test_the_program_writes_the_rows_of_its_version(self) -> None:
        program = self.folder / "build" / "native" / "attnbench"
        this = {"commit": self.at(), "dirty": False}
        for cells, status, of, fault in (
            (7, "ok", this, "not eight"),
            (8, "failed", this, "not eight"),
            (8, "ok", this | {"dirty": True}, "dirty True"),
            (8, "ok", this | {"commit": "0" * 40}, "measured by commit 000"),
            (8, "ok", this, ""),
        ):
            head, line = json.dumps({"environment": of}), json.dumps({"status": status})
            script = f"(echo '{head}'; for i in $(seq {cells}); do echo '{line}'; done) >\"$f\""
            self.write("build/native/attnbench", f'#!/bin/sh\nfor o; do [ "$p" = -o ] && f=$o; p=$o; done\n{script}\n')
            program.chmod(0o755)
            made = release.Release("1.0.0", self.folder)
            if fault:
                with self.assertRaisesRegex(release.Fault, fault):
                    release.rows(made)
                self.assertEqual(self.git("status", "--porcelain"), "", "faulty rows stay in build/")
            else:
                self.assertIn(f"1.0.0-{made.today}-sample.jsonl", release.rows(made))
        self.assertEqual(self.git("show", "--name-only", "--format=%s").split("\n\n"), ["Rows of version 1.0.0", f"tests/data/rows/1.0.0-{made.today}-sample.jsonl\n"])
        with self.assertRaisesRegex(release.Fault, "is there already"):
            release.rows(made)

    def test_a_wheel_of_another_version_or_commit_is_refused(self) -> None:
        into, run = self.folder / "build" / "release" / "wheels", release.Release.done

        def done(made: release.Release, *words: str | Path, shown: bool = False) -> str:
            if "build" in words:
                into.mkdir(parents=True, exist_ok=True)
                (into / "attnbench.whl").write_text("")
            if words[0] == "git":
                return run(made, *words)
            return f"attnbench 1.0.0\ncommit   {commit}\ndirty    {dirty}\n" if "--version" in words else said if "-c" in words else ""

        for said, commit, dirty, fault in (
            ("1.0.0\n", self.at(), "false", ""),
            ("0.2.0\n", self.at(), "false", "0.2.0, not 1.0.0"),
            ("1.0.0\n", "0" * 40, "false", "the wheel's program says that it is 1.0.0 of commit 000"),
            ("1.0.0\n", self.at(), "true", "dirty true; expected"),
        ):
            with mock.patch.object(release.Release, "done", done):
                if not fault:
                    self.assertEqual(release.wheels(release.Release("1.0.0", self.folder)), "attnbench.whl")
                else:
                    with self.assertRaisesRegex(release.Fault, fault):
                        release.wheels(release.Release("1.0.0", self.folder))

    def test_no_version_is_wrong_usage(self) -> None:
        for words in (["1.0"], [], ["01.0.0"], ["1.0.00"], ["1.0.0\n"], ["1.0.٣"], ["1.0.0", "--only", "mark"]):
            done = subprocess.run([sys.executable, "-m", "dev.release", *words], capture_output=True, text=True, cwd=ROOT)
            self.assertEqual(done.returncode, 2, done.stderr)


class Here(InFolder):
    def test_the_versions_of_this_clone_agree(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(release.main(["--only", "versions"]), 0)
        self.assertRegex(said.getvalue(), r"^ok +versions: [\d.]+ in CMakeLists.txt, CITATION.cff, .zenodo.json\n$")

    def test_the_wrapper_is_a_command(self) -> None:
        self.assertTrue(Path(ROOT / "scripts" / "dev" / "release").stat().st_mode & 0o111)

    def test_a_dry_run_sets_nothing_up(self) -> None:
        (self.folder / "scripts" / "dev").mkdir(parents=True)
        for name in ("release", "release.py"):
            shutil.copy(ROOT / "scripts" / "dev" / name, self.folder / "scripts" / "dev")
        setup = self.folder / "scripts" / "setup"
        setup.write_text('#!/bin/sh\necho set up\nexit 3\n')
        setup.chmod(0o755)
        for words, code in ((["1.0.0", "--dry-run"], 1), (["--dry-run", "1.0.0"], 1), (["--help"], 0), (["1.0.0"], 3)):
            done = subprocess.run([self.folder / "scripts" / "dev" / "release", *words], capture_output=True, text=True)
            self.assertEqual((done.returncode, "set up" in done.stdout), (code, code == 3), done.stderr)
