"""Faults of the disk under a sweep: full at every write, calls that fail (libfiu), a folder that may not be written."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ..faults import BUILT, CELLS, PROGRAM, FaultCase, mount_tmpfs, read_rows, tool

PAGE = os.sysconf("SC_PAGE_SIZE")
MOST_TRIES = 60  # of a sweep in which calls fail at random
NOBODY = 65534


@BUILT
class FullDisk(FaultCase):
    def setUp(self) -> None:
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        self.rows_file = self.disk / "rows.jsonl"

    def test_at_every_write_of_a_sweep(self) -> None:
        """A page of the disk ends in the middle of each line in turn."""
        self.assertEqual(self.sweep().returncode, 0)
        run, *cells = self.rows_file.read_text().splitlines()
        self.assertEqual(len(cells), CELLS)
        mount_tmpfs(self, self.disk, f"size={PAGE}")
        for write in range(CELLS + 1):
            with self.subTest(write=write):
                self.fill_up_in(write, run, cells)
                full = self.sweep(cwd=self.folder)
                self.assert_one_line(full, 6, "rows.jsonl: cannot write: No space left on device")
                held = read_rows(self.rows_file)
                self.assertEqual(len(held), write, "whole lines, up to the one that did not fit")
                (self.disk / "filler").unlink(missing_ok=True)
                mount_tmpfs(self, self.disk, "remount,size=1m")
                self.assert_resumes(held)

    def fill_up_in(self, write: int, run: str, cells: list[str]) -> None:
        """Room for `write` lines and a half: the run line is made longer by spaces, which mean nothing."""
        self.rows_file.unlink(missing_ok=True)
        if write == 0:
            mount_tmpfs(self, self.disk, f"remount,size={PAGE}")
            (self.disk / "filler").write_bytes(b"x" * PAGE)
            return
        room = len(run) + 1 + sum(len(cell) + 1 for cell in cells[: write - 1]) + 300
        pages = -(-room // PAGE)
        mount_tmpfs(self, self.disk, f"remount,size={PAGE * pages}")
        self.rows_file.write_text(run[:-1] + " " * (PAGE * pages - room) + "}\n")


@BUILT
class FailingCalls(FaultCase):
    """libfiu makes calls of the C library fail at random, in the program and in its children."""

    def failing(self, what: str, *arguments: object) -> subprocess.CompletedProcess:
        fiu = tool(self, "fiu-run", "fiu-utils")
        keep = 'LD_PRELOAD="$LD_PRELOAD $KEEP" exec "$@"'  # fiu-run sets the variable anew
        commands = [word for one in what.split() for word in ("-c", "enable_random " + one)]
        before = [fiu, "-x", "-f", "", *commands, "bash", "-c", keep, "bash"]
        kept = self.environment()["LD_PRELOAD"]
        return self.run_program(*arguments, before=before, more={"KEEP": kept})

    def failing_sweep(self, what: str) -> subprocess.CompletedProcess:
        arguments = ["run", "-v", "mean", "--measure", "memory", "--length", "8:48:+8"]
        shape = ["--heads", "1", "--head-dim", "8"]
        return self.failing(what, *arguments, *shape, "-q", "-o", self.rows_file)

    def held(self) -> list[dict]:
        return read_rows(self.rows_file) if self.rows_file.exists() else []

    def whole_lines(self) -> list[bytes]:
        data = self.rows_file.read_bytes() if self.rows_file.exists() else b""
        return data.split(b"\n")[:-1]

    def failed_sweeps(self, what: str) -> Iterator[subprocess.CompletedProcess]:
        """Sweeps that ended with exit 6, one after the other on one file; a whole file is removed. The lines that were there stay."""
        for _ in range(MOST_TRIES):
            before = self.whole_lines()
            done = self.failing_sweep(what)
            self.assertIn(done.returncode, (0, 1, 6), done.stderr)
            self.assertEqual(self.whole_lines()[: len(before)], before)
            if done.returncode == 6:
                self.assertRegex(done.stderr, r"\Aattnbench: [^\n]+\n\Z")
                yield done
            else:
                self.rows_file.unlink()
        self.fail(f"not in {MOST_TRIES} tries")

    def test_write_fails(self) -> None:
        failures = 0
        for done in self.failed_sweeps("name=posix/io/rw/write,probability=0.2"):
            self.assert_one_line(done, 6, "cannot write")
            failures += 1
            if failures == 3:
                break
        self.assert_resumes(self.held())

    def test_every_write_fails(self) -> None:
        done = self.failing_sweep("name=posix/io/rw/write,probability=1,failinfo=28")
        self.assert_one_line(done, 6, "No space left on device")
        self.assert_resumes([])

    def test_half_of_a_line_is_written(self) -> None:
        """Short writes are no fault: the rest follows."""
        done = self.failing_sweep("name=posix/io/rw/write/reduce,probability=1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_resumes(self.held())

    def test_fsync_fails(self) -> None:
        done = self.failing_sweep("name=posix/io/sync/fsync,probability=1,failinfo=5")
        self.assert_one_line(done, 6, "rows.jsonl: cannot sync: Input/output error")
        self.assert_resumes(self.held())

    def test_fsync_of_a_cell_fails(self) -> None:
        """The line is whole: the cell counts and is not measured again."""
        for done in self.failed_sweeps("name=posix/io/sync/fsync,probability=0.3,failinfo=5"):
            self.assert_one_line(done, 6, "rows.jsonl: cannot sync: Input/output error")
            held = self.held()
            if held[-1]["kind"] == "cell" and len(held) <= CELLS:
                break
        log = self.folder / "log"
        self.assert_resumes(held, more={"ATTN_TEST_LOG": str(log)})
        asked = [json.loads(line) for line in log.read_text().splitlines()]
        measured = [one["key"]["axes"]["length"] for one in asked if one["do"] == "measure"]
        there = [row["axes"]["length"] for row in held[1:]]
        self.assertEqual(len(measured), CELLS - len(there))
        self.assertFalse(set(measured) & set(there))

    def test_the_torn_line_cannot_be_cut(self) -> None:
        """A part is written, then write and ftruncate fail: the next run cuts the line."""
        three = "name=posix/io/rw/write/reduce,probability=1 name=posix/io/rw/write,probability=0.1"
        for done in self.failed_sweeps(three + " name=posix/io/rw/ftruncate,probability=1"):
            *whole, torn = self.rows_file.read_bytes().split(b"\n")
            if torn:
                self.assertIn("cannot cut the torn line", done.stderr)
                break
        self.assert_resumes([json.loads(line) for line in whole])

    def test_rename_fails(self) -> None:
        """`apply` writes its output beside its place and renames it."""
        import numpy as np

        for name in "qkv":
            np.save(self.folder / f"{name}.npy", np.ones((1, 1, 4, 4), np.float32))
        arrays = [word for name in "qkv" for word in (f"--{name}", f"{name}.npy")]
        asked = ["apply", "--variant", "full", *arrays, "--out", "o.npy"]
        done = self.failing("name=posix/io/dir/rename,probability=1,failinfo=28", *asked)
        self.assert_one_line(done, 6, r"'o.npy'.*No space left on device")
        left = sorted(path.name for path in self.folder.iterdir() if path.suffix == ".npy")
        self.assertEqual(left, ["k.npy", "q.npy", "v.npy"], "no output, and no draft of it")
        self.assertEqual(self.run_program(*asked).returncode, 0)


@BUILT
class OutputsOfApply(FaultCase):
    """A fault before all outputs of `apply` are whole leaves none: those of decoding steps and gradients stand beside --out."""

    def setUp(self) -> None:
        super().setUp()
        import numpy as np

        self.array = np.ones((1, 1, 64, 4), np.float32)
        for name in "qkv":
            np.save(self.folder / f"{name}.npy", self.array)
        arrays = [word for name in "qkv" for word in (f"--{name}", f"{name}.npy")]
        self.decoding = ["apply", "--variant", "full[evict=recent,budget=40]", "--prompt", "8", *arrays]
        self.training = ["apply", "--variant", "full", *arrays, "--grad-out", "q.npy"]
        self.other = self.folder / "other"
        self.other.mkdir()

    def assert_none_is_written(self, words: list[str], pattern: str) -> None:
        for old in (None, b"of before"):
            out = self.folder / "o.npy"
            out.unlink(missing_ok=True)
            if old:
                out.write_bytes(old)
            self.assert_one_line(self.run_program(*words, "--out", "o.npy"), 6, pattern)
            self.assertEqual(out.read_bytes() if out.exists() else None, old)
            for folder in (self.folder, self.other):
                self.assertEqual([path.name for path in folder.glob("*.partial")], [])

    def test_a_device_that_is_full(self) -> None:
        for words in ([*self.decoding, "--seen"], [*self.training, "--grad-q"]):
            self.assert_none_is_written([*words, "/dev/full"], "cannot write '/dev/full': No space left on device")

    def test_a_disk_that_is_full(self) -> None:
        mount_tmpfs(self, self.other, f"size={PAGE}")
        self.assert_none_is_written([*self.decoding, "--seen", "other/s.npy"], "cannot write 'other/s.npy': No space left on device")
        self.assertEqual(list(self.other.iterdir()), [])

    def test_a_place_that_cannot_be_written(self) -> None:
        for place in ("q.npy/s.npy", "other"):
            self.assert_none_is_written([*self.decoding, "--seen", place], place)

    def test_all_are_written(self) -> None:
        done = self.run_program(*self.decoding, "--out", "o.npy", "--seen", "other/s.npy")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(path.name for path in self.other.iterdir()), ["s.npy"])


@BUILT
class ReadOnly(FaultCase):
    def as_nobody(self, *arguments: str, **how: object) -> subprocess.CompletedProcess:
        """By another user, who can run a copy of the program but may not write."""
        public = self.folder / "bin"
        public.mkdir(exist_ok=True)
        program = shutil.copy(PROGRAM, public / "attnbench")
        for path in (self.folder, public, Path(program)):
            path.chmod(0o755)
        if os.geteuid() == 0:
            how |= {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        return self.run_program(*arguments, program=program, at_once=False, **how)

    def test_a_folder_of_another_user(self) -> None:
        theirs = self.folder / "theirs"
        theirs.mkdir()
        theirs.chmod(0o555)
        self.addCleanup(theirs.chmod, 0o755)
        asked = ["run", "-v", "mean", "--measure", "memory", "--length", "8", "-q", "-o"]
        done = self.as_nobody(*asked, str(theirs / "rows.jsonl"))
        self.assert_one_line(done, 6, "cannot write into the folder .*Permission denied")
        self.assertEqual(list(theirs.iterdir()), [])

    def test_a_rows_file_of_another_user(self) -> None:
        self.assertEqual(self.sweep().returncode, 0)
        before = self.rows_file.read_bytes()
        self.rows_file.chmod(0o444)
        asked = ["run", "-v", "mean", "--measure", "memory", "--length", "8:64:+8", "-q", "-o"]
        self.assertFalse(self.rows_file.stat().st_mode & stat.S_IWOTH)
        done = self.as_nobody(*asked, str(self.rows_file))
        self.assert_one_line(done, 6, "cannot write .*Permission denied")
        self.assertEqual(self.rows_file.read_bytes(), before)
        self.rows_file.chmod(0o644)
        self.assert_resumes(read_rows(self.rows_file))

    def test_a_disk_mounted_read_only(self) -> None:
        disk = self.folder / "disk"
        disk.mkdir()
        mount_tmpfs(self, disk, "ro,size=1m")
        self.rows_file = disk / "rows.jsonl"
        done = self.sweep(cwd=self.folder)
        self.assert_one_line(done, 6, "Read-only file system")
        mount_tmpfs(self, disk, "remount,rw,size=1m")
        self.assert_resumes()
