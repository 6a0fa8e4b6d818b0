"""Every command that README and the other documents show is run, scaled down.

A sweep is planned (--dry-run) and an example of each of its tasks is made; the other verbs run on small inputs.
"""

from __future__ import annotations

import re
import shlex
import shutil

import numpy as np

from ..faults import ROOT, InFolder
from .test_cli import attnbench

DOCUMENTS = ("README.md", "CONTRIBUTING.md", *(f"{f}/{p.name}" for f in ("docs", "results") for p in (ROOT / f).glob("*.md")))
PLACEHOLDERS = ("NAME", "VERB", "softplus", "python:mine.py", "…")  # of a variant or task that the reader adds


def commands(document: str) -> list[list[str]]:
    """The arguments of each `scripts/bench VERB …` line in the document's code blocks."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text, re.S | re.M):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("scripts/bench "):
                found.append(shlex.split(line, comments=True)[1:])
    return found


class DocumentedCommands(InFolder):
    def setUp(self) -> None:
        super().setUp()
        array = np.random.default_rng(0).normal(size=(1, 2, 8, 16)).astype(np.float32)
        for name in "qkv":
            np.save(self.folder / f"{name}.npy", array)
        np.save(self.folder / "x.npy", array[0])
        for name in ("old", "new", "mine", "yours"):
            shutil.copy(ROOT / "results" / "reference" / "quick.jsonl", self.folder / f"{name}.jsonl")
        sweeps = self.folder / "results" / "reference"
        sweeps.mkdir(parents=True)
        for file in (ROOT / "results" / "reference").glob("*.toml"):
            shutil.copy(file, sweeps)

    def scaled_down(self, words: list[str]) -> list[list[str]]:
        """What is run for a command: itself, or commands that do a small part of its work."""
        if words[0] == "run":
            tasks = [value for flag, value in zip(words, words[1:]) if flag in ("-t", "--task")]
            grids = [t for t in tasks if "=[" in t]  # several values: planned, not sampled
            samples = [["sample", t, "--count", "2"] for t in tasks if t not in grids]
            kept = [word for word in words if word != "--pilots"]
            return [[*kept, *([] if "--dry-run" in kept else ["--dry-run"])], *samples]
        if words[0] == "noise":
            return [[*words, "--dry-run"]]
        if words[0] == "check":
            return [words if "--derive" in words else [*words, "--quick"]]
        return [words]

    def without_redirection(self, words: list[str]) -> tuple[list[str], str]:
        """The words before ">", and the file after it; those before a pipe alone."""
        words = words[: words.index("|")] if "|" in words else words
        if ">" not in words:
            return words, ""
        return words[: words.index(">")], words[words.index(">") + 1]

    def test_every_command_runs(self) -> None:
        seen: dict[str, int] = {}
        for document in DOCUMENTS:
            for words in commands(document):
                if not words or words[0] in ("plot", "report") or any(p in w for w in words for p in PLACEHOLDERS):
                    continue
                seen[words[0]] = seen.get(words[0], 0) + 1
                for arguments in self.scaled_down(words):
                    arguments, file = self.without_redirection(arguments)
                    done = attnbench(*arguments, cwd=self.folder)
                    if file:
                        (self.folder / file).write_text(done.stdout, encoding="utf-8")
                    shown = f"{document}: {shlex.join(arguments)}\n{done.stderr}"
                    self.assertEqual(done.returncode, 0, shown)
                    self.assertTrue(done.stdout or self.wrote(words), shown)
        # That the search finds them: README shows each of these.
        self.assertGreaterEqual(seen["run"], 10)
        self.assertLessEqual({"run", "info", "check", "sample", "apply", "compare", "table"}, set(seen))

    def wrote(self, words: list[str]) -> bool:
        return any((self.folder / w).exists() for w in words if "." in w)
