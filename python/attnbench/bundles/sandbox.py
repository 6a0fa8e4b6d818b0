"""Where a stranger's code is built and run: a temporary folder of its own, an environment without this user's variables, bounds on time, memory
and files, and, where the system allows it, no network and no process that outlives it. This is no virtual machine: the code runs with this
user's rights, and can read what this user can read."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from .. import _place

GIB = 1 << 30
MOST_FILE = GIB  # bytes that a process may write to a file
MOST_DATA = 8 * GIB  # bytes of memory of a process
MOST_FILES = 1024
MOST_SAID = 4 << 20  # bytes of output that are read
NO_NETWORK = ("unshare", "--map-root-user", "--net")
NO_ORPHANS = (*NO_NETWORK, "--pid", "--fork", "--kill-child", "--mount-proc")
FENCES = (
    (NO_ORPHANS, "without network, and its processes end with it"),
    (NO_NETWORK, "without network"),
    ((), "WITH the network: unshare is missing here or not allowed"),
)


@dataclass(frozen=True)
class Done:
    """How a command ended; 128 + signal where a signal ended it, 124 where its time was up."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """What it said last, without the program's name."""
        lines = [line for line in (self.err.strip() or self.out.strip()).splitlines() if line.strip()] or ["it said nothing"]
        return lines[-1].strip().removeprefix("attnbench: ")


@cache
def fence() -> tuple[tuple[str, ...], str]:
    """The strongest of the fences that this system allows, as words before a command, and what it does."""
    for words, does in FENCES:
        if not words:
            return words, does
        try:
            if subprocess.run([*words, "true"], capture_output=True, timeout=20).returncode == 0:
                return words, does
        except (OSError, subprocess.TimeoutExpired):
            continue
    raise AssertionError("the last fence is none")


@dataclass(frozen=True)
class Sandbox:
    """Runs commands in `folder`, which the caller makes and removes. `is_fenced`: as of a stranger; else without unshare and bounds."""

    folder: Path
    is_fenced: bool = True

    def environment(self) -> dict[str, str]:
        """Nothing of this user's but where programs and the package are."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        told = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "TMPDIR": str(home),
            "XDG_CACHE_HOME": str(home),
            "CCACHE_DIR": str(home / "ccache"),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
        }
        if any(_place.PACKAGE.glob("_core*.so")):  # an installed package; in a clone the program knows its own
            told |= {"PYTHONPATH": str(_place.IMPORTED), "ATTNBENCH_PYTHON": sys.executable}
        if python := os.environ.get("ATTNBENCH_PYTHON"):
            told["ATTNBENCH_PYTHON"] = python
        return told

    def run(self, words: list[str | Path], timeout_s: float) -> Done:
        """Runs a command to its end, or kills it and all that it started. `timeout_s` in seconds. Raises OSError where it cannot start."""
        before = list(fence()[0]) if self.is_fenced else []
        environment = self.environment()
        with TemporaryFile() as to_out, TemporaryFile() as to_err:  # files without a name, which the command cannot replace by links
            child = subprocess.Popen(
                [*before, *map(str, words)],
                stdin=subprocess.DEVNULL, stdout=to_out, stderr=to_err, cwd=self.folder, env=environment,
                start_new_session=True, preexec_fn=_bounds(timeout_s) if self.is_fenced else None,
            )  # fmt: skip
            try:
                code = child.wait(timeout_s)
            except subprocess.TimeoutExpired:
                code = 124
            finally:
                _end(child)
            return Done(128 - code if code < 0 else code, _said(to_out), _said(to_err))


def _bounds(timeout_s: float) -> Callable[[], None]:
    seconds = int(timeout_s * (os.cpu_count() or 1)) + 1
    wanted = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, MOST_FILE), (resource.RLIMIT_DATA, MOST_DATA),
              (resource.RLIMIT_NOFILE, MOST_FILES), (resource.RLIMIT_CPU, seconds))  # fmt: skip

    def bound() -> None:
        for of, most in wanted:
            _, hard = resource.getrlimit(of)
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(of, (least, least))

    return bound


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends what is left of the group that the child leads."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _said(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MOST_SAID).decode("utf-8", "replace")
