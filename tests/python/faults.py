"""What the tests of faults share: sweeps of tiny cells by the real program, children that misbehave, files that resume takes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import jsonschema
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "native" / "attnbench"
BUILT = unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
LENGTHS = range(8, 56, 8)
CELLS = len(LENGTHS)
SHAPE = ["--heads", "1", "--head-dim", "8"]
SWEEP = ["run", "-v", "mean", "--measure", "memory", "--length", "8:48:+8", *SHAPE]

# Checks and the calibration take a second or two and are none of these tests' business: such a child answers at once.
PASSED = json.dumps({"status": "ok", "reason": None, "red": None, "detail": ""})
SPEEDS = ("fma_flops_per_s_one", "fma_flops_per_s_all", "copy_bytes_per_s_one", "copy_bytes_per_s")
PACE = {"calibration": {**dict.fromkeys(SPEEDS, 1e12), "threads": 2}}
CALIBRATED = json.dumps({"status": "ok", "reason": None, **PACE})
AT_ONCE = [('"do":"check"', "say:" + PASSED), ('"do":"calibrate"', "say:" + CALIBRATED)]

EASY = [  # for tests that look at no figure: a cell answers at once
    ('"measure":"speed"', 'say:{"status":"ok","reason":null,"samples":[0.5],"flops":1000}'),
    (
        '"measure":"memory"',
        'say:{"status":"ok","reason":null,"samples":null,"metrics":{"peak_bytes":1,"weights_bytes":1,'
        '"activations_bytes":1,"workspace_bytes":1,"state_bytes":1,"rss_peak_bytes":1}}',
    ),
]


@cache
def _library() -> str:
    """The library of child_faults.cc beside the program, built where it is older than its source."""
    built = PROGRAM.with_name("child_faults.so")
    source = Path(__file__).with_name("child_faults.cc")
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        draft = built.with_name(f"child_faults.{os.getpid()}.so")  # tests run side by side
        command = ["g++", "-std=c++20", "-O1", "-Wall", "-shared", "-fPIC", "-o", draft, source]
        subprocess.run(command, check=True)
        draft.replace(built)
    return str(built)


def calibrated(environment: dict[str, str]) -> dict[str, str]:
    """The environment with a calibration that is answered at once: it takes most of a second, and few tests are about it."""
    preloaded = [*environment.get("LD_PRELOAD", "").split(), _library()]
    return environment | {"LD_PRELOAD": " ".join(preloaded), "ATTN_TEST_FAULTS": "\t".join(AT_ONCE[1])}


@cache
def validator() -> jsonschema.protocols.Validator:
    schema = json.loads((ROOT / "results" / "schema.json").read_text())
    return jsonschema.validators.validator_for(schema)(schema)


def read_rows(path: Path) -> list[dict]:
    """Every line, whole and by the schema."""
    text = path.read_text()
    if text and not text.endswith("\n"):
        raise AssertionError(f"{path}: a torn last line: {text[-80:]!r}")
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        validator().validate(row)
    return rows


def read_terminal(master: int) -> bytes:
    """What is written to a terminal until its other end is closed; closes this one."""
    said = b""
    while True:
        try:
            said += os.read(master, 4096)
        except OSError:  # the other end is closed
            break
    os.close(master)
    return said


class InFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)


class FaultCase(unittest.TestCase):
    """A folder of its own, and the program in it with children as told."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="attn-fault-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.rows_file = self.folder / "rows.jsonl"
        self.arrays = 0

    def save(self, array: np.ndarray) -> str:
        """Writes the array to a file of its own and returns the path."""
        self.arrays += 1
        path = self.folder / f"{self.arrays}.npy"
        np.save(path, array)
        return str(path)

    def environment(self, faults=(), at_once=True, **more) -> dict[str, str]:
        """`faults` are pairs: a part of a child's request, what the child does; see child_faults.cc."""
        lines = "\n".join("\t".join(pair) for pair in [*faults, *(AT_ONCE if at_once else ())])
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), **more}
        if lines:
            preloaded = [*environment.get("LD_PRELOAD", "").split(), _library()]
            environment |= {"LD_PRELOAD": " ".join(preloaded), "ATTN_TEST_FAULTS": lines}
        return environment

    def run_program(self, *arguments, faults=(), at_once=True, before=(), timeout=300, **how):
        """A whole run; `before` is a command that starts it, such as taskset."""
        more = how.pop("more", {})
        how.setdefault("cwd", self.folder)
        return subprocess.run(
            [*map(str, before), how.pop("program", PROGRAM), *map(str, arguments)],
            capture_output=True,
            text=True,
            env=self.environment(faults, at_once, **more),
            timeout=timeout,
            **how,
        )

    def sweep(self, *more, sweep=SWEEP, **how):
        return self.run_program(*sweep, "-q", "-o", self.rows_file, *more, **how)

    def start(self, *more, sweep=SWEEP, faults=(), before=(), **how) -> subprocess.Popen:
        """A run that goes on; what still lives when the test ends is killed."""
        running = subprocess.Popen(
            [*before, PROGRAM, *sweep, "-q", "-o", self.rows_file, *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment(faults, **how),
        )
        self.addCleanup(self._end, running)
        return running

    @staticmethod
    def _end(running: subprocess.Popen) -> None:
        if running.poll() is None:
            running.kill()
        running.communicate()

    def wait_until(
        self,
        condition: Callable[[], bool],
        seconds: float = 60,
        running: subprocess.Popen | None = None,
    ) -> None:
        """Fails after so many seconds, and where `running` ends before."""
        end = time.monotonic() + seconds
        while not condition():
            if running is not None:
                self.assertIsNone(running.poll(), "it ended too soon")
            self.assertLess(time.monotonic(), end, f"not within {seconds} s")
            time.sleep(0.01)

    def has_lines(self, count: int) -> Callable[[], bool]:
        """Whether the rows file holds so many."""
        file = self.rows_file
        return lambda: file.exists() and file.read_bytes().count(b"\n") >= count

    @staticmethod
    def measures(log: Path) -> Callable[[], bool]:
        """Whether a child that measures has started, by the log of requests."""
        return lambda: log.exists() and '"do":"measure"' in log.read_text()

    def assert_one_line(self, done: subprocess.CompletedProcess, code: int, pattern: str) -> None:
        """The exit code, and one line on stderr that `pattern` fits."""
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Aattnbench: [^\n]+\n\Z")
        self.assertRegex(done.stderr, pattern)

    def assert_resumes(self, held: list[dict] | None = None, cells: int = CELLS, **how) -> None:
        """The file goes on: what it held stays as it is, every cell is there once."""
        done = self.sweep(**how)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = read_rows(self.rows_file)
        if held is not None:
            self.assertEqual(rows[: len(held)], held)
        ids = [row["cell"] for row in rows if row["kind"] == "cell"]
        self.assertEqual((len(ids), len(set(ids))), (cells, cells))


def mount_tmpfs(test: unittest.TestCase, folder: Path, options: str) -> None:
    """A small disk at `folder`; skips the test where mounting is not permitted. A disk that is there is mounted anew."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        test.skipTest(f"no mount here: {error}")
    if done.returncode and "remount" in options:
        test.fail(f"it was mounted, and is not again: {done.stderr.strip()}")
    if done.returncode:
        test.skipTest(f"mounting is not permitted: {done.stderr.strip()}")
    if "remount" not in options:
        test.addCleanup(subprocess.run, ["umount", str(folder)])


def tool(test: unittest.TestCase, name: str, package: str) -> str:
    """Where a program is; skips the test where it is missing."""
    found = shutil.which(name)
    if not found:
        test.skipTest(f"{name} is missing (Debian package {package})")
    return found


@contextmanager
def control_group(test: unittest.TestCase, controller: str) -> Iterator[tuple[Path, bool]]:
    """A control group of one controller, and whether it is of version 2; skips the test where none can be made."""
    root = Path("/sys/fs/cgroup")
    enabled = root / "cgroup.subtree_control"
    # In version 2 each group can be frozen, and no list names that.
    version_two = enabled.exists() and controller in (*enabled.read_text().split(), "freezer")
    group = (root if version_two else root / controller) / f"attn-test-{os.getpid()}"
    try:
        group.mkdir()
        if not (group / "cgroup.procs").exists():
            raise OSError(f"no control group of {controller}")
    except OSError as error:
        if group.is_dir():
            group.rmdir()
        test.skipTest(f"no control group can be made: {error}")
    try:
        yield group, version_two
    finally:
        for _ in range(100):  # it stays busy until the last process is gone
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)
