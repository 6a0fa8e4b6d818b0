"""The Containerfile as a chroot reads it; with ATTN_CHROOT=1 its steps are run in a fresh Debian, which takes minutes and root."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path

from dev.chroots import containerfile
from dev.chroots.containerfile import NotUnderstood
from dev.chroots.root import Root, missing

from ..faults import ROOT

WANTED = bool(os.environ.get("ATTN_CHROOT"))


def read(text: str) -> containerfile.Recipe:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Containerfile"
        path.write_text(text)
        return containerfile.read(path)


class Containerfile(unittest.TestCase):
    def test_ours_is_read_whole(self) -> None:
        recipe = containerfile.read(ROOT / "Containerfile")
        self.assertEqual(recipe.suite, "trixie")
        self.assertEqual([word for word, _, _ in recipe.steps], ["COPY", "RUN"])
        self.assertEqual(recipe.entry, ("scripts/bench",))
        self.assertEqual({folder for _, _, folder in recipe.steps} | {recipe.folder}, {"/attnbench"})

    def test_its_commands_are_files_of_the_repository(self) -> None:
        recipe = containerfile.read(ROOT / "Containerfile")
        for command in (*(what for word, what, _ in recipe.steps if word == "RUN"), recipe.entry[0]):
            self.assertTrue(os.access(ROOT / command.split()[0], os.X_OK), command)

    def test_steps_keep_their_order_and_folder(self) -> None:
        recipe = read('FROM debian:12\nRUN a\n# why\nWORKDIR /b\nCOPY . .\nRUN c d\nENTRYPOINT ["e", "f"]\n')
        self.assertEqual(recipe.suite, "bookworm")
        self.assertEqual(recipe.steps, (("RUN", "a", "/"), ("COPY", ". .", "/b"), ("RUN", "c d", "/b")))
        self.assertEqual((recipe.entry, recipe.folder), (("e", "f"), "/b"))

    def test_what_a_chroot_cannot_do_is_an_error_with_its_line(self) -> None:
        for line in ("FROM alpine", "USER me", "COPY a b", "RUN a \\"):
            with self.subTest(line), self.assertRaisesRegex(NotUnderstood, "Containerfile:2: "):
                read(f'FROM debian:13\n{line}\nENTRYPOINT ["a"]\n')
        for text in ('ENTRYPOINT ["a"]\n', "FROM debian:13\n"):
            with self.subTest(text), self.assertRaisesRegex(NotUnderstood, "no FROM or no ENTRYPOINT"):
                read(text)

    @unittest.skipUnless(WANTED, "ATTN_CHROOT=1 runs the steps in a fresh Debian, for minutes")
    def test_its_steps_run_in_a_fresh_debian(self) -> None:
        self.assertEqual(missing(), "")
        recipe = containerfile.read(ROOT / "Containerfile")
        with Root(recipe.suite) as root:
            for step in containerfile.build(recipe, ROOT, root):
                self.assertEqual(step.code, 0, step.output[-3000:])
            checked = containerfile.enter(recipe, root, "check", "linformer")
            self.assertEqual(checked.code, 0, checked.output[-3000:])
            self.assertIn("0 red", checked.output)


if __name__ == "__main__":
    unittest.main()
