"""The board as files: what is on a page and what is left out, texts that mean harm, verdicts, parts, the command."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import unittest
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from attnbench.boards import command
from attnbench.boards.data import Labels, Names, data_of, lines_of, parts_of
from attnbench.boards.numbers import numbers_of
from attnbench.boards.pages import pages_of
from attnbench.boards.safe import plain
from attnbench.boards.submissions import read_folder
from attnbench.bundles.signature import NAMESPACE
from attnbench.plots.rows.checksum import hash_of

from . import planted
from .test_board_numbers import InFolder

SCRIPT = re.compile(r"<script[^>]*>.*?</script>", re.S)


def rows(seed: int = 1) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [*planted.timed(rng, 1.0, 512, "forward"), *planted.held(512), *planted.scored(rng, ("copy",))]


class Page(HTMLParser):
    """The elements of a page, the links, and the text that a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data: Any = None
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = "data" if ("id", "data") in attrs else tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data = json.loads(data)
        elif self._inside not in ("script", "style"):
            self.text += data

    @property
    def links(self) -> list[str]:
        return [a["href"] or "" for tag, a in self.tags if tag == "a"]


class Texts(unittest.TestCase):
    def test_what_hides_or_turns_text_is_shown_as_its_code(self) -> None:
        self.assertEqual(plain("a\u202eb\u2066c\u200dd\u0007e\u2028f"), "a<U+202E>b<U+2066>c<U+200D>d<U+0007>e<U+2028>f")
        self.assertEqual(plain("a\u3164b\u2800c\ufe0fd"), "a<U+3164>b<U+2800>c<U+FE0F>d")
        self.assertEqual(plain("\ud800"), "<U+D800>")
        self.assertEqual(plain("  two\n\nlines\t"), "two lines")
        self.assertEqual(plain("\u00e9 \u4e2d \u05d0"), "\u00e9 \u4e2d \u05d0")

    def test_a_pile_of_accents_ends_after_three(self) -> None:
        self.assertEqual(plain("e" + "\u0301" * 5), "e" + "\u0301" * 3 + "<U+0301>" * 2)

    def test_a_long_text_is_cut(self) -> None:
        self.assertEqual((len(plain("x" * 5000)), plain("x" * 5000)[-1]), (2000, "\u2026"))
        self.assertEqual(len(plain("x" * 2000)), 2000)

    def test_a_cut_ends_no_code_in_the_middle_of_nothing(self) -> None:
        self.assertEqual(plain("\u202e" * 30, 20), "<U+202E><U+202E><U+\u2026")


class Verdicts(InFolder):
    def state(self, path: Path) -> tuple[str, str]:
        found, _ = read_folder(self.folder)
        (s,) = [s for s in found if s.file == path.name]
        return s.verdict.state, s.verdict.words

    def test_states_and_their_words(self) -> None:
        path = self.folder / "a.attnbundle"
        digest = planted.archive(path, rows())
        self.assertEqual(self.state(path), ("unverified", "nobody but its submitter has measured it: there is no a.verified.json"))
        for said, state in (("agree", "verified"), ("disagree", "disagrees"), ("not comparable", "not comparable")):
            planted.verdict(path, digest, said, rows()[:2])
            found = self.state(path)
            self.assertEqual(found[0], state)
            self.assertIn(f"a.verified.json says {said}: 2 {said} of 2 measured anew; this verdict is not signed", found[1])

    def test_a_verdict_of_other_bytes_or_broken_verifies_nothing(self) -> None:
        path = self.folder / "a.attnbundle"
        digest = planted.archive(path, rows())
        beside = planted.verdict(path, "0" * 64, "agree")
        self.assertRegex(": ".join(self.state(path)), "^unverified: a.verified.json counts for nothing: it is of other bytes")
        for text, words in (
            ("{", "not JSON"),
            ("[]", "a row is a JSON object"),
            (json.dumps({"sha256": digest, "verdict": "fine"}), "its verdict is 'fine', not one of agree"),
            (json.dumps({"verdict": "refused", "reason": "edited"}), "verify refused the archive: edited"),
            (" " * (1 << 20) + "{}", "more than 1 MiB"),
        ):
            beside.write_text(text)
            found = self.state(path)
            self.assertEqual(found[0], "unverified")
            self.assertIn(words, found[1])
        for cells in (5, {"cell": "x"}, [7, {"cell": []}, {"cell": "0" * 16, "state": "agree"}]):
            beside.write_text(json.dumps({"sha256": digest, "verdict": "agree", "cells": cells, "fault": [1]}))
            self.assertIn("it says agree, and names no cell of this archive that does", self.state(path)[1])
            beside.write_text(beside.read_text().replace('"agree"', '"disagree"'))
            self.assertEqual(self.state(path), ("disagrees", "a.verified.json says disagree: no cell of 0 measured anew; this verdict is not signed: nobody vouches for it"))
        beside.unlink()
        good = planted.verdict(self.folder / "b.attnbundle", digest, "agree").rename(self.folder / "elsewhere.json")
        beside.symlink_to(good)
        self.assertIn("it is a link", self.state(path)[1])

    @unittest.skipUnless(shutil.which("ssh-keygen"), "no ssh-keygen here")
    def test_a_signed_verdict_names_who_signed(self) -> None:
        path, key = self.folder / "a.attnbundle", self.folder / "key"
        beside = planted.verdict(path, planted.archive(path, rows()), "agree", rows()[:1])
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
        subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", key, beside], check=True, capture_output=True)
        self.assertRegex(self.state(path)[1], "signed by a key that nobody here vouches for: SHA256:")
        signers = self.folder / "signers"
        signers.write_text(f"verifier@example.org {key.with_suffix('.pub').read_text()}")
        (found,), _ = read_folder(self.folder, signers)
        self.assertRegex(found.verdict.words, r"this verdict is signed by verifier@example.org \(SHA256:")
        beside.write_text(beside.read_text() + " ")
        self.assertRegex(": ".join(self.state(path)), "^unverified: .*counts for nothing: its signature is not of its manifest")


class LeftOut(InFolder):
    def reasons(self) -> dict[str, str]:
        submissions, left_out = read_folder(self.folder)
        _, left_out = pages_of(submissions, left_out)
        return {one.file: one.reason for one in left_out}

    def test_each_file_that_cannot_be_read_is_named_with_its_reason(self) -> None:
        good = self.folder / "good.attnbundle"
        planted.archive(good, rows())
        (self.folder / "copy.attnbundle").write_bytes(good.read_bytes())
        planted.archive(self.folder / "Good.attnbundle", rows(2))
        (self.folder / "text.attnbundle").write_text("no archive")
        (self.folder / "link.attnbundle").symlink_to(good)
        (self.folder / "folder.attnbundle").mkdir()
        shutil.copy(good, self.folder / "<img src=x>.attnbundle")
        shutil.copy(good, self.folder / "a\u202eb.attnbundle")
        shutil.copy(good, self.folder / "-rf.attnbundle")
        planted.archive(self.folder / "turned.attnbundle", rows(3), statement=f"{planted.SYNTHETIC} \u202e")
        planted.archive(self.folder / "spoof.attnbundle", [{**c, "variant": {"name": "l\u0456near", "params": {}}} for c in rows(4)])
        planted.archive(self.folder / "shell.attnbundle", [{**c, "cell": f"{c['cell'][:8]}; reboot"} for c in rows(5)])
        (self.folder / "notes.txt").write_text("of no interest")
        found = self.reasons()
        wanted = {
            "<img src=x>.attnbundle": "its name has other signs",
            "a<U+202E>b.attnbundle": "its name has other signs",
            "-rf.attnbundle": "its name has other signs",
            "good.attnbundle": "it is the archive of 'copy.attnbundle' again",
            "text.attnbundle": "it is no archive of submit",
            "link.attnbundle": "it is a link",
            "folder.attnbundle": "it is a link or no file",
            "turned.attnbundle": "holds control characters",
            "shell.attnbundle": "reboot', which is no hexadecimal number",
            "spoof.attnbundle": "a variant has the name 'l\u0456near'",
        }
        self.assertEqual(set(found), set(wanted))
        for name, words in wanted.items():
            self.assertIn(words, found[name], name)
        os.remove(self.folder / "copy.attnbundle")
        self.assertIn("its name differs from 'Good.attnbundle' in case alone", self.reasons()["good.attnbundle"])

    def test_an_edited_line_and_values_of_another_form(self) -> None:
        edited = rows()
        edited[2] = {**edited[2], "checksum": "0" * 16}
        with mock.patch.object(planted, "summed", lambda line: line if "checksum" in line else {**line, "checksum": hash_of(line)}):
            planted.archive(self.folder / "edited.attnbundle", edited)
        for name, change in (("axes", {"axes": []}), ("shortcuts", {"metrics": {"metric": "accuracy", "test": 0.5, "shortcuts": {"a": "b"}}}),
                             ("samples", {"samples": [1e-3] * 8 + ["x"]}), ("huge", {"samples": [10**400] * 9}), ("tuned", {"tuned": 5})):  # fmt: skip
            which = next(i for i, c in enumerate(rows()) if c["measure"] == ("accuracy" if name == "shortcuts" else "speed"))
            cells = [{**c, **change} if i == which else c for i, c in enumerate(rows())]
            planted.archive(self.folder / f"{name}.attnbundle", cells)
        found = self.reasons()
        self.assertIn("changed after it was written", found["edited.attnbundle"])
        self.assertLessEqual({f"{n}.attnbundle" for n in ("axes", "shortcuts", "huge", "tuned")}, set(found), found)
        for reason in found.values():
            self.assertNotIn(str(Path(self.folder).parent), reason)


class Pages(InFolder):
    def pages(self, folder: Path) -> dict[str, str]:
        return pages_of(*read_folder(folder))[0]

    def test_harm_is_text_everywhere(self) -> None:
        pages = self.pages(planted.hostile(self.folder / "in"))
        self.assertEqual(set(pages), {"index.html", *(f"bundles/bad-{i}.html" for i in range(3))})
        for name, text in pages.items():
            page = Page(text)
            tags = {tag for tag, _ in page.tags}
            self.assertFalse(tags & {"img", "iframe", "svg", "object", "embed", "form"} - ({"form"} if name == "index.html" else set()), name)
            self.assertEqual([a for _, own in page.tags for a in own if a.startswith("on") or a == "style"], [], name)
            self.assertEqual([h for h in page.links if not re.fullmatch(r"(\.\./index\.html|bundles/bad-\d\.html)?(#[\w-]+)?", h)], [], name)
            self.assertEqual(sum(tag == "script" for tag, _ in page.tags), 2 if name == "index.html" else 0, name)
            self.assertIn(planted.HOSTILE, page.text, name)
            self.assertEqual(len(re.findall("<title>", text)), 1)
        told = Page(pages["index.html"]).data
        self.assertTrue(any(planted.HOSTILE[:100] in text for text in told["texts"]))
        self.assertNotRegex(SCRIPT.findall(pages["index.html"])[0][60:-9], "[<>&]")

    def test_a_policy_lets_nothing_but_its_own_script_run(self) -> None:
        pages = self.pages(planted.hostile(self.folder / "in"))
        policy = re.compile(r'Content-Security-Policy" content="default-src \'none\'; .*script-src (\'[^"]*\'); base-uri \'none\'; form-action \'none\'"')
        index, archive = (policy.search(pages[name]) for name in ("index.html", "bundles/bad-0.html"))
        assert index and archive
        self.assertRegex(index[1], "^'sha256-[^']+'$")
        self.assertEqual(archive[1], "'none'")
        for text in pages.values():
            self.assertNotRegex(text, r'(src|href)="(https?:)?//')

    def test_the_same_archives_give_the_same_bytes(self) -> None:
        planted.crowd(self.folder / "a", 4)
        shutil.copytree(self.folder / "a", self.folder / "b" / "c")
        first = self.pages(self.folder / "a")
        self.assertEqual(first, self.pages(self.folder / "b" / "c"))
        self.assertEqual(first, self.pages(self.folder / "a"))

    def test_every_number_has_its_cells_archive_and_checksum(self) -> None:
        planted.crowd(self.folder, 4)
        pages = self.pages(self.folder)
        data = Page(pages["index.html"]).data
        fields = 19  # of board.js
        self.assertEqual(len(data["numbers"]), 4 * (16 + 5 + 15))
        for line in data["numbers"]:
            file, cells = data["texts"][line[3]], [data["texts"][i] for i in line[fields:]]
            page = pages[data["bundles"][file]["page"]]
            self.assertEqual(data["texts"][line[18]], "rows/rows.jsonl")
            for cell in cells:
                self.assertIn(f'id="c-{cell}"', page)
                self.assertIn(f"attnbench repro rows.jsonl {cell}", page)
            self.assertIn(data["bundles"][file]["digest"], page)

    def test_an_unverified_number_carries_its_mark_on_both_pages(self) -> None:
        pages = self.pages(planted.crowd(self.folder, 6))
        data = Page(pages["index.html"]).data
        marks = {name: bundle["mark"] for name, bundle in data["bundles"].items()}
        self.assertEqual([marks[f"example-00{i}.attnbundle"] for i in range(4)], ["", "\u2260", "", "\u00b0"])
        for name, mark in marks.items():
            cells = re.findall(r'<td class="number">([^<]*)</td><td class="number">', pages[data["bundles"][name]["page"]])
            self.assertEqual(len(cells), 55)
            self.assertEqual([c for c in cells if not c.endswith(mark) or (not mark and c[-1] in "\u00b0\u2260")], [], name)

    def test_no_time_stands_on_the_board(self) -> None:
        data = Page(self.pages(planted.crowd(self.folder, 3))["index.html"]).data
        for line in data["numbers"]:
            if line[0] == "speed":
                self.assertTrue(0.2 < line[12] < 3, line)  # ratios; the times are milliseconds

    def test_large_boards_are_parts_that_hold_every_number_once(self) -> None:
        found, _ = read_folder(planted.crowd(self.folder, 4))
        numbers = [n for s in found for n in numbers_of(s)]
        self.assertEqual(len(parts_of(numbers)), 1)
        parts = parts_of(numbers, 2500)
        self.assertGreater(len(parts), 6)
        self.assertEqual(sorted(id(n) for p in parts for n in p.numbers), sorted(map(id, numbers)))
        self.assertEqual(len({p.title for p in parts}), len(parts))
        small = [p for p in parts if len(json.dumps(lines_of(p.numbers, Names()))) <= 2500]
        self.assertEqual(len(small), len(parts))
        with mock.patch("attnbench.boards.pages.parts_of", lambda numbers: parts):
            pages, _ = pages_of(found, [])
        index = Page(pages["index.html"])
        names = [h for h in index.links if not h.startswith(("bundles/", "#"))]
        self.assertEqual(set(pages) - set(names) - {"index.html"}, {f"bundles/example-00{i}.html" for i in range(4)})
        self.assertEqual(sum(len(Page(pages[name]).data["numbers"]) for name in names), len(numbers))
        self.assertTrue(all("index.html" in Page(pages[name]).links for name in names))

    def test_labels_tell_the_parameters_that_differ(self) -> None:
        label = Labels([("a", (("x", "1"), ("y", "2"))), ("a", (("x", "3"), ("y", "2"))), ("b", (("x", "1"),))])
        self.assertEqual((label(("a", (("x", "3"), ("y", "2")))), label(("b", (("x", "1"),)))), ("a[x=3]", "b"))

    def test_a_block_stands_on_the_page_of_its_numbers(self) -> None:
        from attnbench.boards.groups import blocks_of

        found, _ = read_folder(planted.crowd(self.folder, 9))
        numbers = [n for s in found for n in numbers_of(s)]
        blocks, labels = blocks_of(numbers), Labels(n.key for n in numbers)
        whole = data_of(numbers, blocks, labels)["blocks"]
        self.assertEqual(len(whole), len(blocks))
        some = [n for n in numbers if n.place.instruction_set == "neon" and n.length == 512]
        self.assertEqual({(b["set"], b["length"]) for b in data_of(some, blocks, labels)["blocks"]}, {("neon", 512)})


class Command(InFolder):
    def run_board(self, *words: str | Path) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = command.main(["board", *map(str, words)])
            except SystemExit as stopped:
                code = int(stopped.code or 0)
        return code, out.getvalue(), err.getvalue()

    def test_a_site_is_written_and_replaced_whole(self) -> None:
        folder, site = planted.crowd(self.folder / "in", 3), self.folder / "new" / "site"
        (folder / "bad.attnbundle").write_text("x")
        code, out, err = self.run_board(folder, "-o", site)
        self.assertEqual((code, out), (0, f"{site}/index.html\n"))
        self.assertRegex(err, "^board: bad.attnbundle: left out: it is no archive of submit.*\n$")
        self.assertIn("it is no archive of submit", Page((site / "index.html").read_text()).text)
        os.remove(folder / "example-002.attnbundle")
        self.assertEqual(self.run_board(folder, "-o", site)[0], 0)
        self.assertEqual(sorted(p.name for p in (site / "bundles").iterdir()), ["example-000.html", "example-001.html"])
        self.assertEqual([p.name for p in site.parent.iterdir()], ["site"])

    def test_wrong_use_is_one_line(self) -> None:
        folder = planted.crowd(self.folder / "in", 1)
        other = self.folder / "mine"
        other.mkdir()
        for words, code, line in (
            ((self.folder / "absent", "-o", "x"), 2, "is no folder; name one that holds archives"),
            ((folder,), 2, "the following arguments are required: -o/--output"),
            ((folder, "-o", other), 2, "exists and is no board; name another folder"),
            ((folder, "-o", self.folder / "site", "--signers", "nobody"), 2, "--signers nobody: is no file"),
            ((other, "-o", self.folder / "site"), 4, "holds no archive that can be read; 'attnbench submit ROWS -o NAME.attnbundle' makes one"),
        ):
            found = self.run_board(*words)
            self.assertEqual((found[0], found[2].count("\n")), (code, 1), found)
            self.assertIn(line, found[2])
        self.assertFalse((self.folder / "site").exists())

    def test_a_full_disk_leaves_the_old_site(self) -> None:
        folder, site = planted.crowd(self.folder / "in", 1), self.folder / "site"
        self.run_board(folder, "-o", site)
        before = (site / "index.html").read_bytes()
        found, _ = read_folder(folder)
        with mock.patch("attnbench.boards.submissions.read_folder", lambda *_: (found, [])):
            with mock.patch.object(Path, "write_text", side_effect=OSError(28, "No space left on device")):
                code, _, err = self.run_board(folder, "-o", site)
        self.assertEqual((code, err), (6, f"board: {site}: cannot be written: No space left on device\n"))
        self.assertEqual((site / "index.html").read_bytes(), before)
        real = Path.replace

        def refuse(self: Path, target: Path) -> Path:
            if self.name.startswith(".site.new"):
                raise OSError(13, "Permission denied")
            return real(self, target)

        with mock.patch.object(Path, "replace", refuse):
            self.assertEqual(self.run_board(folder, "-o", site)[0], 6)
        self.assertEqual((site / "index.html").read_bytes(), before)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["in", "site"])
