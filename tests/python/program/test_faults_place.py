"""Where and when a sweep runs: clocks that jump, locales with commas, no HOME, odd paths."""

from __future__ import annotations

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from ..faults import BUILT, CELLS, PROGRAM, SWEEP, FaultCase, read_rows, tool

ODD = [
    "two words",
    "it's",
    'say "so"',
    "Übung — 注意力 🙂",
    "-dash",
    "a\nline",
    "$(false) `false` *",
    "x" * 200,
]


@BUILT
class Clock(FaultCase):
    def jumping(self, first: str, then: str) -> dict:
        """libfaketime gives another date to the second half of a sweep; the monotonic clock goes on, as it does in fact."""
        tool(self, "faketime", "faketime")
        found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
        if not found:
            self.skipTest("libfaketime is missing (Debian package faketime)")
        stamp = self.folder / "stamp"
        stamp.write_text(first)
        fake = {
            "FAKETIME_TIMESTAMP_FILE": str(stamp),
            "FAKETIME_NO_CACHE": "1",
            "LD_PRELOAD": str(found[0]),
        }
        os.environ["LD_PRELOAD"] = str(found[0])  # faults.py adds to it
        self.addCleanup(os.environ.pop, "LD_PRELOAD", None)
        del fake["LD_PRELOAD"]
        slow = [('"length":24', "sleep:1500")]
        running = self.start("--timeout", "30s", faults=slow, DONT_FAKE_MONOTONIC="1", **fake)
        self.wait_until(self.has_lines(2), running=running)
        stamp.write_text(then)
        self.assertEqual(running.wait(timeout=60), 0)
        rows = read_rows(self.rows_file)
        self.assertEqual([row["status"] for row in rows[1:]], ["ok"] * CELLS)
        self.assertTrue(all(row["duration_s"] < 25 for row in rows[1:]))
        del os.environ["LD_PRELOAD"]
        self.assert_resumes(rows)
        return {row["started_at"][:4] for row in rows}

    def test_set_back(self) -> None:
        self.assertEqual(
            self.jumping("@2030-01-01 00:00:00", "@1999-12-31 23:59:50"), {"2030", "1999"}
        )

    def test_set_forward(self) -> None:
        self.assertEqual(
            self.jumping("@2026-01-01 00:00:00", "@2090-06-01 00:00:00"), {"2026", "2090"}
        )


@BUILT
class Locale(FaultCase):
    def test_with_commas(self) -> None:
        """Numbers are read and written with points."""
        localedef = tool(self, "localedef", "libc-bin")
        folder = self.folder / "locales"
        folder.mkdir()
        made = [localedef, "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
        done = subprocess.run(made, capture_output=True, text=True)
        if done.returncode > 1:  # 1: made, with warnings
            self.skipTest(
                f"no locale could be made (Debian package locales): {done.stderr.strip()}"
            )
        german = {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LOCPATH": str(folder)}
        spoken = subprocess.run(
            ["bash", "-c", "printf '%.1f' 1,5"],
            capture_output=True,
            text=True,
            env={**os.environ, **german},
        )
        self.assertEqual(spoken.stdout, "1,5", "the locale works")
        asked = ["--timeout", "1.5m", "--max-memory", "1.5G", "--format", "csv"]
        done = self.sweep(*asked, more=german)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = read_rows(self.rows_file)
        config = rows[0]["config"]
        self.assertEqual((config["timeout_s"], config["max_memory_bytes"]), (90, 3 * 2**29))
        header, *lines = done.stdout.splitlines()
        for line in lines:
            self.assertEqual(line.count(","), header.count(","), line)
        self.assert_resumes(rows)


@BUILT
class Places(FaultCase):
    def test_without_home_and_tmpdir(self) -> None:
        """With no variable at all, and with those that name what nobody can make."""
        nowhere = "/dev/null/home"
        for given in ({}, {"HOME": nowhere, "TMPDIR": nowhere, "XDG_CACHE_HOME": ""}):
            for more in ([], ["-n", "--pilots"]):
                file = self.folder / f"{len(given)}{len(more)}.jsonl"
                command = [PROGRAM, *SWEEP, "-q", *more, "-o", file]
                done = subprocess.run(
                    command, capture_output=True, text=True, env=given, cwd=self.folder
                )
                self.assertEqual(done.returncode, 0, (given, more, done.stderr))
                self.assertNotIn("attnbench:", done.stderr)
        self.assertEqual(len(list(self.folder.iterdir())), 2, "rows alone were written")

    def test_odd_paths(self) -> None:
        """As a folder, as a file, and in the line that says how to go on."""
        for name in ODD:
            with self.subTest(name=name):
                self.rows_file = self.folder / name / f"{name}.jsonl"
                self.assert_resumes()
                self.assert_resumes(read_rows(self.rows_file))

    def test_the_program_in_an_odd_path(self) -> None:
        for name in ODD[:5]:
            with self.subTest(name=name):
                place = self.folder / f"at {name}"
                place.mkdir()
                program = shutil.copy(PROGRAM, place / "attnbench")
                file = place / "rows.jsonl"
                done = self.run_program(*SWEEP, "-q", "-o", file, program=program)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_line_that_says_how_to_go_on(self) -> None:
        """Its words reach a shell as they were, whatever the path holds."""
        self.rows_file = self.folder / 'it\'s $(a) "place" 注' / "rows of mine.jsonl"
        self.rows_file.parent.mkdir()
        command = [PROGRAM, *SWEEP, "-o", self.rows_file]
        hanging = self.environment([('"length":24', "hang")])
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=hanging
        )
        self.addCleanup(running.kill)
        self.wait_until(self.has_lines(3), running=running)
        running.terminate()
        _, said = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 143)
        hint = said[said.index("To go on: ") + len("To go on: ") :].strip()
        done = subprocess.run(
            hint, shell=True, env=self.environment(), capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = read_rows(self.rows_file)
        self.assertEqual(len({row["cell"] for row in rows[1:]}), CELLS)
        self.assertEqual(len(rows), 1 + CELLS)

    def test_a_name_that_is_not_utf8(self) -> None:
        """A row is UTF-8 and holds the arguments: what is none is replaced there, and the file has its name."""
        name = os.fsencode(self.folder) + b"/caf\xe9.jsonl"
        command = [os.fsencode(PROGRAM), *(word.encode() for word in SWEEP), b"-q", b"-o", name]
        for _ in range(2):
            done = subprocess.run(command, capture_output=True, env=self.environment())
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        rows = read_rows(Path(os.fsdecode(name)))
        self.assertEqual(len(rows), 1 + CELLS)
        self.assertTrue(rows[0]["argv"][-1].endswith("caf\ufffd.jsonl"), rows[0]["argv"])


if __name__ == "__main__":
    unittest.main()
