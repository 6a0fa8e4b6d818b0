"""The processes that are compared: one library each, on the same cores, answering JSON lines. They
need our program, built, and a Python that holds the other libraries."""

from __future__ import annotations

import json
import math
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._place import BUILT, IMPORTED, ROOT

PROGRAM = BUILT
VENV = ROOT / ".venv-peers"
OLDEST = (3, 11)
ROOM = 10 << 30  # bytes free on the disk: the wheels while they are unpacked


class InstallError(Exception):
    """Why it could not be made, in one line."""


def built_program() -> Path:
    done = subprocess.run([ROOT / "scripts" / "bench", "--version"], stdout=subprocess.DEVNULL)
    if done.returncode:
        raise InstallError("attnbench could not be built (see above)")
    return PROGRAM


def peers_python(say: Callable[[str], None]) -> Path:
    """That of .venv-peers, which scripts/setup makes when it is missing or its requirements changed."""
    if not (VENV / "stamp").is_file():
        if sys.version_info < OLDEST:
            raise InstallError(
                "the libraries need Python 3.11 or later; --python PATH names another"
            )
        if shutil.disk_usage(ROOT).free < ROOM:
            raise InstallError(
                f"{VENV} needs 10 GB of free disk; --python PATH names an existing one"
            )
        say(f"making {VENV}: gigabytes, once")
    setup = [ROOT / "scripts" / "setup", "--venv", "peers"]
    if subprocess.run(setup, stdout=sys.stderr).returncode:
        raise InstallError(f"{VENV} could not be made (see above); --python PATH names another")
    return VENV / "bin" / "python"


OURS = "attnbench"
# Variables that would give one side other threads than asked for, or another waiting policy.
THREADING = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "XLA_FLAGS", "VECLIB_")
# attnbench's pool keeps freed blocks and asks for huge pages. The same for the others: the C
# library's heap serves every size and is never handed back, PyTorch asks for huge pages.
MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "THP_MEM_ALLOC_ENABLE": "1",
}
REPLIES = {"hello": ("version",), "forward": ("seconds",), "train": ("seconds",)}
REPLIES["decode"] = ("seconds",)
REPLIES["peak"] = ("fma_flops_per_s",)
REPLIES["step"] = ("seconds", "losses")  # what a reply to each request holds
HELLO_S, REPLY_S = 180, 3600  # patience: importing a library; the longest call and its compiling


class SideError(Exception):
    """What a side answered instead of a result, or how it ended."""


def cores(count: int) -> list[int]:
    """Cores for `count` threads, one of each physical core before its siblings."""
    seen: dict[str, int] = {}
    order = []
    for core in sorted(os.sched_getaffinity(0)):
        topology = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        siblings = topology.read_text() if topology.is_file() else str(core)
        order.append((seen.get(siblings, 0), core))
        seen[siblings] = seen.get(siblings, 0) + 1
    return sorted(core for _, core in sorted(order)[:count])


class Side:
    """A child process; requests are answered one at a time. Its errors are SideError."""

    def __init__(self, name: str, command: list[str], threads: int) -> None:
        self.name, self.threads = name, threads
        environment = {k: v for k, v in os.environ.items() if not k.startswith(THREADING)}
        environment |= {**MEMORY, "PYTHONPATH": str(IMPORTED)}
        self._unread = b""
        self._messages = tempfile.TemporaryFile("w+", errors="replace")
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores(threads))  # inherited; libraries look at it when they start
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                env=environment,
                start_new_session=True,  # Ctrl-C ends the parent, which ends its children
            )
        except OSError as error:
            self._messages.close()
            raise SideError(f"{name}: {command[0]} cannot be run: {error.strerror}") from error
        finally:
            os.sched_setaffinity(0, mine)

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        process = self._process
        assert process.stdin
        patience = HELLO_S if do == "hello" else REPLY_S
        try:
            process.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
            process.stdin.flush()
            line = self._line(patience)
        except BrokenPipeError:
            line = b""
        except TimeoutError:
            self._process.kill()  # what it answers later must not pass for the next reply
            raise SideError(f"{self.name} did not answer '{do}' within {patience} s") from None
        if not line:
            raise SideError(f"{self.name} ended ({process.wait()}): {self._last_words()}")
        return self._checked(do, fields, line)

    def _line(self, patience: float) -> bytes:
        """The next line of its output; nothing when that has ended."""
        assert self._process.stdout
        output, end = self._process.stdout.fileno(), time.monotonic() + patience
        while b"\n" not in self._unread:
            if not select.select([output], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError
            more = os.read(output, 1 << 16)
            if not more:
                return b""
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _checked(self, do: str, fields: dict[str, Any], line: bytes) -> dict[str, Any]:
        text = " ".join(line.decode(errors="replace").split())[:100]
        try:
            reply = json.loads(line)
        except ValueError:
            reply = None
        if isinstance(reply, dict) and "error" in reply:
            raise SideError(f"{self.name}: {reply['error']}")
        if not isinstance(reply, dict) or any(key not in reply for key in REPLIES.get(do, ())):
            raise SideError(f"{self.name} answered '{do}' by '{text}', which is no reply to it")
        repeat = fields.get("repeat", 1)
        for key, count in (("seconds", repeat), ("losses", repeat + fields.get("warm", 0))):
            if key in REPLIES.get(do, ()) and not numbers(reply[key], count):
                raise SideError(f"{self.name} answered '{do}' by {key} of {reply[key]}")
        return reply

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._messages):
            try:
                stream.close()
            except BrokenPipeError:
                pass

    def _last_words(self) -> str:
        self._messages.seek(0)
        lines = self._messages.read().strip().splitlines()
        return lines[-1][:300] if lines else "no message"


def numbers(values: Any, count: int) -> bool:
    """Whether these are `count` finite numbers."""
    return (
        isinstance(values, list)
        and len(values) == count
        and all(isinstance(value, (int, float)) and math.isfinite(value) for value in values)
    )


def start_ours(program: Path, threads: int) -> Side:
    return Side(OURS, [str(program), "peer"], threads)


def start_peer(name: str, python: Path, threads: int) -> Side:
    return Side(name, [str(python), "-m", "attnbench.peers.worker", name], threads)
