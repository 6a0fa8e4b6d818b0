"""Random sweeps of tiny cells, each a file that is worked on several times, what must hold of the file after
each time, and processes under watch: resident memory and open files, from /proc."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema

from attnbench import _place
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


SCHEMA = json.loads(_place.SCHEMA.read_text())
VALID = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
VARIANTS = ("mean", "truncated", "full", "conv", "full[kernel=materialized]")
MEASURES = ("memory", "memory", "fidelity", "speed", "memory,speed,fidelity")


class Broken(Exception):
    """A promise that did not hold."""


@dataclass
class Sweep:
    """A file and what is asked of it; `held` are the rows of the last look."""

    file: Path
    words: list[str]
    held: list[bytes] = field(default_factory=list)

    @classmethod
    def drawn(cls, file: Path, chosen: random.Random) -> Sweep:
        words = ["run", "--measure", chosen.choice(MEASURES), "--heads", "1", "--head-dim", "8"]
        for variant in chosen.sample(VARIANTS, chosen.randint(1, 2)):
            words += ["-v", variant]
        words += ["--length", f"8:{8 * chosen.randint(2, 12)}:+8", "-j", str(chosen.randint(1, 3))]
        if "speed" in words[2]:
            words += ["--repetitions", "2"]
        return cls(file, words)

    def widened(self, chosen: random.Random) -> None:
        at = self.words.index("--length") + 1
        self.words[at] = f"8:{8 * chosen.randint(2, 16)}:+8"

    def has_failed_row(self) -> bool:
        text = self.file.read_bytes() if self.file.exists() else b""
        rows = [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]
        return any(row.get("status", "ok") not in ("ok", "skipped") for row in rows)

    def look(self) -> int:
        """The number of rows; Broken where one was lost, changed, double or invalid."""
        text = self.file.read_bytes() if self.file.exists() else b""
        lines = text[: text.rfind(b"\n") + 1].splitlines()
        if lines[: len(self.held)] != self.held:
            raise Broken(f"{self.file}: a row that was there is gone or changed")
        cells = Counter()
        try:
            rows = [json.loads(line) for line in lines]
            for row in rows[len(self.held) :]:
                VALID.validate(row)
        except (ValueError, jsonschema.ValidationError) as error:
            raise Broken(f"{self.file}: an invalid row: {str(error).splitlines()[0]}") from error
        for row in rows:
            cells[row.get("cell")] += row["kind"] == "cell"
        double = [cell for cell, count in cells.items() if count > 1]
        if double:
            raise Broken(f"{self.file}: cells that are there twice: {double}")
        self.held = lines
        return len(lines)


@dataclass
class Soak:
    folder: Path
    chosen: random.Random
    counts: Counter = field(default_factory=Counter)
    sweeps: list[Sweep] = field(default_factory=list)
    most_files: int = 0
    running: list[subprocess.Popen] = field(default_factory=list)

    def step(self) -> None:
        if len(self.sweeps) < 4 or self.chosen.random() < 0.15:
            self.forget_oldest()
            file = self.folder / f"sweep {self.counts['sweeps']}.jsonl"
            self.sweeps.append(Sweep.drawn(file, self.chosen))
            self.counts["sweeps"] += 1
        sweep = self.chosen.choice(self.sweeps)
        acts = (self.interrupt, self.interrupt, self.interrupt, self.pause, self.whole, self.shards)
        rare = (self.plot, self.pipe, self.torn)
        act = self.chosen.choice(rare) if self.chosen.random() < 0.12 else self.chosen.choice(acts)
        act(sweep)
        before = len(sweep.held)
        self.counts["rows"] += sweep.look() - before

    def forget_oldest(self) -> None:
        if len(self.sweeps) >= 8:
            old = self.sweeps.pop(0)
            old.file.unlink(missing_ok=True)

    def start(self, sweep: Sweep, *more: str) -> subprocess.Popen:
        command = [str(PROGRAM), *sweep.words, *more, "-q", "-o", str(sweep.file)]
        self.counts["runs"] += 1
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, text=True
        )
        self.running = [each for each in self.running if each.poll() is None] + [running]
        return running

    def end(self) -> None:
        """Kills what a step that broke left running."""
        for each in self.running:
            each.kill()
            each.wait()

    def wait(self, running: subprocess.Popen, seconds: float) -> bool:
        """Whether it ended within so many seconds; its open files are counted meanwhile."""
        end = time.monotonic() + seconds
        while running.poll() is None:
            if time.monotonic() > end:
                return False
            try:
                self.most_files = max(self.most_files, open_files(running.pid))
            except OSError:
                pass
            time.sleep(0.02)
        return True

    def finish(
        self,
        sweep: Sweep,
        running: subprocess.Popen,
        allowed: tuple[int, ...],
        below: list[int] | None = None,
    ) -> None:
        """`below` are its children, where it may have ended already."""
        below = children(running.pid) if below is None else below
        try:
            said = running.communicate(timeout=600)[1]
        except subprocess.TimeoutExpired as error:
            raise Broken("a sweep of tiny cells did not end in 600 s") from error
        if running.returncode not in (*allowed, 1):
            raise Broken(f"exit {running.returncode}, not one of {allowed}: {said.strip()}")
        if running.returncode == 1:
            self.counts["failed"] += 1
            if "unexpected" in said or not sweep.has_failed_row():
                raise Broken(f"exit 1, and no row says why: {said.strip()}")
        for _ in range(100):
            if not any(self.is_cell(child) for child in below):
                return
            time.sleep(0.05)
        raise Broken("a child outlived its sweep")

    @staticmethod
    def is_cell(pid: int) -> bool:
        try:
            return b"\0cell\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    def interrupt(self, sweep: Sweep) -> None:
        """kill -9, Ctrl-C or SIGTERM at a random moment."""
        number = self.chosen.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
        running = self.start(sweep)
        below = []
        if not self.wait(running, self.chosen.uniform(0, 4)):
            below = children(running.pid)
            running.send_signal(number)
            self.counts[number.name] += 1
        self.finish(sweep, running, (0, -9, 130, 143, -number), below)

    def pause(self, sweep: Sweep) -> None:
        """SIGSTOP and SIGCONT, of the program or of a child."""
        running = self.start(sweep)
        for _ in range(3):
            if self.wait(running, self.chosen.uniform(0, 1.5)):
                break
            target = self.chosen.choice([running.pid, *children(running.pid)])
            for number in (signal.SIGSTOP, signal.SIGCONT):
                try:
                    os.kill(target, number)
                except ProcessLookupError:  # a child that ended meanwhile
                    pass
                time.sleep(self.chosen.uniform(0, 0.5))
            self.counts["stops"] += 1
        self.finish(sweep, running, (0,))

    def whole(self, sweep: Sweep) -> None:
        self.finish(sweep, self.start(sweep), (0,))
        self.counts["whole"] += 1
        if self.chosen.random() < 0.3:
            sweep.widened(self.chosen)

    def shards(self, sweep: Sweep) -> None:
        """Shards one after the other on one file, in any order, the second at the same time as the first."""
        count = self.chosen.randint(2, 4)
        order = self.chosen.sample(range(count), count)
        running = self.start(sweep, "--shard", f"{order[0]}/{count}")
        beside = self.start(sweep, "--shard", f"{order[1]}/{count}")
        # 2: another run is writing to the file; 4: no cell is in the shard.
        self.finish(sweep, beside, (0, 2, 4))
        self.finish(sweep, running, (0, 2, 4))
        for shard in order:
            self.finish(sweep, self.start(sweep, "--shard", f"{shard}/{count}"), (0, 4))
        self.counts["shards"] += count + 2

    def torn(self, sweep: Sweep) -> None:
        """Half a line or NULs at the end, as after a power cut."""
        if sweep.held:
            with sweep.file.open("ab") as file:
                file.write(self.chosen.choice((sweep.held[-1][:200], b"\0" * 500)))
            self.counts["torn"] += 1
        self.finish(sweep, self.start(sweep), (0,))

    def pipe(self, sweep: Sweep) -> None:
        """A reader that leaves."""
        running = self.start(sweep, "--verbose")
        running.stdout.close()
        running.stdout = None
        self.finish(sweep, running, (0, -signal.SIGPIPE))
        self.counts["pipes"] += 1

    def plot(self, sweep: Sweep) -> None:
        """Pictures of several files, which are merged in reading."""
        for each in self.sweeps[:3]:
            self.finish(each, self.start(each), (0,))
            each.look()
        files = [str(each.file) for each in self.sweeps[:3]]
        done = subprocess.run(
            [sys.executable, "-m", "attnbench.plots", "plot", *files, "-o", str(self.folder / "plots")],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(_place.IMPORTED)},
        )
        if done.returncode != 0:
            raise Broken(f"plot: exit {done.returncode}: {done.stderr.strip()[-300:]}")
        self.counts["plots"] += 1
