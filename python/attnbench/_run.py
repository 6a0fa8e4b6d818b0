"""Sweeps: starts the program, shows its progress, and reads the rows that it wrote."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from ._program import Error, environment, output_of, program, said_last
from ._rows import Rows, load, unwritable

REPEATED = ("variant", "task", "train")  # options that are given once for each value
NO_ROWS = (2, 4, 6)  # exit codes of wrong usage, nothing that matched, input or output that failed


def run(
    sweep: str | os.PathLike[str] | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **options: Any,
) -> Rows:
    """Runs a sweep by the program attnbench and returns its rows.

        run(variant=["full", "linformer[rank=[64,128]]"], measure="speed", length=[256, 512])
        run("mine.toml", output="mine.jsonl")
        run(profile="smoke")

    Args:
        sweep: A sweep file, as `attnbench run FILE` takes one.
        output: The rows file; an existing one is continued. None: results/<UTC time>.jsonl.
        progress: Whether the program says on stderr what it does.
        options: The options of `attnbench run` by name, "_" for "-": variant, task, measure,
            length, batch, heads, head_dim, mode, causal, threads, seed, timeout, precision, … A
            list is several values, True is an option without a value, None is left out.

    Returns:
        The rows of the file, those of an earlier run of it too. A cell that failed is a row with
        its status and reason. After Ctrl-C, the rows that are finished, with `interrupted` set: the
        current cells end first, and the same call with the same output goes on.

    Raises:
        Error: an unknown option or value, in the program's words, nothing matched, or `output`
            cannot be written.
    """
    words = [] if sweep is None else [os.fspath(sweep)]
    words += [word for name, value in options.items() for word in _option(name, value)]
    output_of("run", *words, "--dry-run", "--quiet", "--format", "json")  # raises what is wrong
    now = datetime.datetime.now(datetime.timezone.utc)
    path = Path(output or f"results/{now:%Y%m%dT%H%M%SZ}.jsonl")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None
    shown = [] if progress else ["--quiet", "--progress", "none"]
    command = [str(program()), "run", *words, *shown, "--yes", f"--output={path}"]
    code = _code_of(command)
    if code in NO_ROWS or not path.exists():
        raise Error(f"attnbench run ended with exit code {code}; see above")
    return load(path, interrupted=code >= 128)


def _option(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False and name != "causal":
        return []
    if value is True and name != "causal":
        return [flag]
    values = value if isinstance(value, (list, tuple, range)) else [value]
    texts = [str(v).lower() if isinstance(v, bool) else str(v) for v in values]
    if name in REPEATED:
        return [f"{flag}={text}" for text in texts]
    return [f"{flag}={','.join(texts)}"]


def _code_of(command: list[str]) -> int:
    """The exit code. The program has a process group of its own, so that Ctrl-C reaches it once,
    from here: the first ends its current cells, the second stops it."""
    quiet = None if _has_stderr() else subprocess.PIPE
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=quiet, text=True,
                             start_new_session=True, env=environment())  # fmt: skip
    while True:
        try:
            _, told = child.communicate()
            if told:
                print(told if child.returncode else said_last(told), file=sys.stderr)
            return child.returncode
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)


def _has_stderr() -> bool:
    """Whether this process's stderr is a file of the system; that of a notebook is not."""
    try:
        return sys.stderr.fileno() == 2
    except (AttributeError, OSError, ValueError):
        return False
