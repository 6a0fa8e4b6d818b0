"""python -m attnbench VERB …: draws, reports and exports to Parquet; other verbs are the program's."""

from __future__ import annotations

import os
import sys

from ._place import COMMAND, program

# What each verb needs beside the package: the extras of pyproject.toml.
PLOT = ("pandas", "scipy", "matplotlib", "jsonschema")
NEEDS = {"plot": PLOT, "report": (*PLOT, "plotly"), "export": ("pyarrow",)}
MODULES = {"PIL": "matplotlib", "numpy": "pandas"}  # what another package brings along


def main(words: list[str]) -> int:
    verb = words[0] if words else ""
    try:
        if verb == "plot":
            from .plots.__main__ import main as draw

            return draw(words)
        if verb == "report":
            from .reports.__main__ import main as report

            return report(words)
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
    path = str(program())
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
