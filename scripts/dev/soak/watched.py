"""Processes under watch: resident memory and open files, from /proc."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from attnbench._place import BUILT

PROGRAM = BUILT
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@dataclass
class Sample:
    at: float
    written: int  # bytes of its file
    resident: int
    files: int


@dataclass
class Watched:
    """A sweep in the background, of which a sample is taken now and then."""

    running: subprocess.Popen
    rows_file: Path
    of_child: bool = False  # the samples are of its only child, not of itself
    samples: list[Sample] = field(default_factory=list)

    @classmethod
    def start(cls, arguments: list[str], rows_file: Path, of_child: bool = False) -> Watched:
        command = [str(PROGRAM), *arguments, "-q", "-o", str(rows_file)]
        log = (rows_file.with_suffix(".log")).open("w")
        return cls(subprocess.Popen(command, stdout=log, stderr=log), rows_file, of_child)

    def sample_every(self, seconds: float) -> None:
        while self.running.poll() is None:
            self.sample()
            time.sleep(seconds)

    def sample(self) -> None:
        """A process that ends meanwhile gives none."""
        if self.running.poll() is not None:
            return
        below = children(self.running.pid)
        pid = self.running.pid if not self.of_child else below[0] if below else None
        if pid is None:
            return
        try:
            written = self.rows_file.stat().st_size
            if self.of_child and written == 0:  # the child that calibrates
                return
            now = time.monotonic()
            self.samples.append(Sample(now, written, resident_bytes(pid), open_files(pid)))
        except OSError:
            return

    def halves(self) -> tuple[list[Sample], list[Sample]]:
        """Without the first tenth, in which buffers are made."""
        steady = self.samples[len(self.samples) // 10 :]
        return steady[: len(steady) // 2], steady[len(steady) // 2 :]

    def faults(self, bytes_a_byte: int, slack: int) -> list[str]:
        """What grew from the first half to the second, beyond so many bytes for each byte of the rows that it holds."""
        first, second = self.halves()
        found = []
        if max(s.files for s in second) > max(s.files for s in first):
            found.append(f"open files grew: {self.files_text()}")
        grown = max(s.resident for s in second) - max(s.resident for s in first)
        written = second[-1].written - first[-1].written
        if grown > bytes_a_byte * written + slack:
            found.append(f"resident memory grew by {grown} bytes over {written} bytes of rows")
        return found

    def files_text(self) -> str:
        first, second = self.halves()
        return f"at most {max(s.files for s in first)}, then {max(s.files for s in second)}"

    def memory_text(self) -> str:
        first, second = self.halves()
        sizes = [max(s.resident for s in half) / 2**20 for half in (first, second)]
        return f"at most {sizes[0]:.1f} MiB, then {sizes[1]:.1f} MiB"
