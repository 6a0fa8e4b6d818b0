"""The process of the program attnbench that runs variants written in Python; not for people.

    python -m attnbench._cell describe FILE SOURCES         what the file holds, as JSON
    python -m attnbench._cell cell FILE NAME VARIANT        answers a request, as `attnbench cell`
    python -m attnbench._cell check FILE NAME VARIANT       contract checks, {"params", "full"}
    python -m attnbench._cell weights FILE NAME VARIANT     {"params", "heads", "head_dim", "max_len"}

Input is JSON on stdin. What the user's code prints goes to stderr, so that stdout holds the answer
alone. What is wrong with the file is one line on stderr and exit code 2.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import Any

from . import _core
from ._core import Error


def _private_stdout() -> Any:
    """Where the answer goes; everything else that is written to stdout goes to stderr."""
    kept = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return kept


def _described(file: str, sources: str) -> dict[str, Any]:
    if sources != _core.sources():
        raise Error(f"the package attnbench of {sys.executable} was built from other sources than "
                    "this program; build it again (ninja -C build/native _core, or pip install .)")  # fmt: skip
    import torch

    from ._variant_file import candidates, load

    found = [one.as_json() for one in candidates(load(file))]
    return {"python": platform.python_version(), "torch": torch.__version__, "variants": found}


def _cell(file: str, attribute: str, name: str) -> str:
    request = json.load(sys.stdin)
    try:
        from ._torch_cell import answer

        return answer(request, file, attribute, name)
    except Error as error:  # the file changed after the sweep began
        return _core.failed_reply(str(error))


def _answer(what: str, words: list[str]) -> str:
    if what == "cell":
        return _cell(*words)
    if what == "describe":
        return json.dumps(_described(*words))
    from . import _torch_cell

    do = {"check": _torch_cell.checked, "weights": _torch_cell.weights}[what]
    return json.dumps(do(json.load(sys.stdin), *words))


def main() -> int:
    _core.count_stops()
    out = _private_stdout()
    try:
        import torch  # noqa: F401: a file that needs it would fail in its own words
    except ImportError:
        print(f"{sys.executable} has no torch, in which variants in Python run; pip install torch "
              "there, or name another interpreter in ATTNBENCH_PYTHON", file=sys.stderr)  # fmt: skip
        return 2
    try:
        text = _answer(sys.argv[1], sys.argv[2:])
    except Error as error:
        print(error, file=sys.stderr)
        return 2
    out.write(text + "\n")
    out.flush()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # the catalogue holds objects of Python, which must not outlive the interpreter
