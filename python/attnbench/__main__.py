"""python -m attnbench VERB …: the verbs that Python does; all others are the program's."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module

from ._place import COMMAND, program

# The verbs that Python does: the module whose main takes the words.
VERBS = {
    "plot": "plots.__main__",
    "report": "reports.__main__",
    "submit": "bundles.submit",
    "verify": "bundles.verify",
    "pool": "pooling.command",
    "board": "boards.command",
    "advise": "advice.command",
    "coverage": "coverage.command",
}

# What each verb needs beside the package: the extras of pyproject.toml.
PLOT = ("pandas", "scipy", "matplotlib", "jsonschema")
NEEDS = {verb: PLOT for verb in VERBS} | {"report": (*PLOT, "plotly"), "export": ("pyarrow",)}
MODULES = {"PIL": "matplotlib", "numpy": "pandas"}  # what another package brings along


def main(words: list[str]) -> int:
    verb = words[0] if words else ""
    try:
        if verb in VERBS:
            return import_module(f".{VERBS[verb]}", __package__).main(words)
        if verb == "export" and is_parquet(words):
            from ._parquet import main as export

            return export(str(program()), words)
    except ModuleNotFoundError as error:
        lacking = (error.name or "").split(".")[0]
        if MODULES.get(lacking, lacking) not in NEEDS[verb]:
            raise
        print(
            f"attnbench: {verb} needs {lacking}, which {sys.executable} does not have; "
            f"{sys.executable} -m pip install {' '.join(NEEDS[verb])}",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:  # also while the modules load
        print(f"{verb}: interrupted", file=sys.stderr)
        return 130
    path = str(program())
    # An ignored signal stays ignored in the program, and Python ignores this one: the program would take a reader of a pipe that left for a fault.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(path, [path, *words])
    except OSError as error:
        print(f"attnbench: cannot start '{path}': {error.strerror}; {COMMAND} --version tells whether it is there",
              file=sys.stderr)  # fmt: skip
        return 6


def is_parquet(words: list[str]) -> bool:
    return any(word.endswith(".parquet") for word in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
