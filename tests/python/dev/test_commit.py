"""harness/measure/commit.cmake: which commit a program says that it is of, and whether its sources differ from the commit."""

import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "harness" / "measure" / "commit.cmake"


class Commit(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.top = Path(held.name, "top")
        (self.top / "results").mkdir(parents=True)
        for file in ("source.cc", "results/rows.jsonl"):
            (self.top / file).write_text("before\n", encoding="utf-8")
        Path(held.name, "template").write_text("@commit@ @dirty@", encoding="utf-8")

    def git(self, *words: str) -> str:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        return subprocess.run(["git", *settings, *words], cwd=self.top, check=True, capture_output=True, text=True).stdout.strip()

    def told(self) -> str:
        made = self.top.parent / "made"
        subprocess.run(["cmake", "-D", f"SOURCE={self.top}", "-D", f"TEMPLATE={self.top.parent / 'template'}", "-D", f"OUTPUT={made}",
                        "-P", SCRIPT], check=True)  # fmt: skip
        return made.read_text(encoding="utf-8").rstrip("\n")

    def test_changed_sources_make_a_tree_dirty_and_changed_rows_do_not(self) -> None:
        self.assertEqual(self.told(), " ")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "first")
        commit = self.git("rev-parse", "HEAD")
        self.assertEqual(self.told(), f"{commit} false")
        (self.top / "results" / "rows.jsonl").write_text("after\n", encoding="utf-8")
        (self.top / "untracked.cc").write_text("new\n", encoding="utf-8")
        self.assertEqual(self.told(), f"{commit} false")
        (self.top / "source.cc").write_text("after\n", encoding="utf-8")
        self.assertEqual(self.told(), f"{commit} true")


if __name__ == "__main__":
    unittest.main()
