"""Names of folders, users and machines in rows and texts, which a bundle must not carry: whoever submits gives it to everybody."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..plots.rows.checksum import checksum_fault
from .archive import sealed

# An absolute path of two parts or of a folder that holds users; "~" and "~name"; a drive of Windows. "0/1", "tokens/s" and
# "results/quick.jsonl" are none.
FOLDER = re.compile(
    r"(?<![\w./*-])(?:~[\w.-]*/|[A-Za-z]:[\\/]|\\\\\w|/(?:home|root|Users|tmp|mnt|media|srv|scratch|work|data|export)(?![\w-])"
    r"|/[\w.@+~-]+/)[\w.@+~/\\-]*"
)
PREFIX = re.compile(r"(?:python:|file:/{2,3}|-[IL])(?=[/~])")  # what may stand before a path without a space
ANYBODY = frozenset(("root", "user", "users", "admin", "nobody", "guest", "test", "home", "build", "runner", "localhost", "linux", "host", "local",
                     "server", "node", "docker", "container", "ubuntu", "debian", "vagrant", "jovyan", "full", "mean", "linear"))  # fmt: skip
FEWEST = 3  # letters of a name that says who


def own_people() -> tuple[str, ...]:
    """The names of this user and this machine that say who and where."""
    names = []
    with suppress(KeyError, OSError):  # a user without a name
        names.append(getpass.getuser())
    host = socket.gethostname()
    names += [host, host.partition(".")[0]]
    return tuple(dict.fromkeys(n for n in names if len(n) >= FEWEST and n.lower() not in ANYBODY and not n.isdigit()))


def private_part(text: str, names: tuple[str, ...] = ()) -> str:
    """Returns the first part of the text that names a folder, a user or a machine, "" where there is none."""
    if found := FOLDER.search(PREFIX.sub(" ", text)):
        return found.group()
    for name in names:
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.IGNORECASE):
            return name
    return ""


def without_folders(run: dict[str, Any]) -> dict[str, Any]:
    """The run line with the last part of each name alone, in its command line and in its list of Python files, and with a checksum of that. No
    figure stands there. A line whose checksum is wrong, or that has no folder, stays as it is."""
    if checksum_fault(run):
        return run
    config = run.get("config")
    files = config.get("python") if isinstance(config, dict) else None
    changed = {**run, "argv": [_last_part(word) for word in run.get("argv", [])]}
    if isinstance(config, dict) and isinstance(files, list):
        changed["config"] = {**config, "python": [{**one, "file": _last_part(one["file"])} if isinstance(one.get("file"), str) else one for one in files]}
    if changed == run:
        return run
    return sealed(changed)


def _last_part(word: Any) -> Any:
    """`--output=/home/ada/x.jsonl` as `--output=x.jsonl`."""
    if not isinstance(word, str):
        return word
    return FOLDER.sub(lambda found: re.split(r"[/\\]", found.group().rstrip("/\\"))[-1], PREFIX.sub(lambda found: found.group() + "\0", word)).replace("\0", "")


def texts_of(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yields every text within a value of JSON, and where it stands: `config.sweeps[0].variants[2]`."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield place, name
            yield from texts_of(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from texts_of(inner, f"{place}[{index}]")
