"""Rows files: reading, comparing, drawing, reporting, by the code behind the command line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._place import SCHEMA
from ._program import Error, program, said_last
from .plots.rows.read import parse_object

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas

Source = "Rows | str | os.PathLike[str]"


class Rows(list[dict[str, Any]]):
    """The rows of one or several files, each as `attnbench/1` describes it, and what is known of
    their runs.

    Attributes:
        files: The files.
        runs: The lines that describe the runs: command, environment, calibration.
        interrupted: Whether the run was ended by Ctrl-C.
    """

    def __init__(self, rows: list[dict[str, Any]], files: tuple[Path, ...],
                 runs: list[dict[str, Any]], interrupted: bool = False) -> None:  # fmt: skip
        super().__init__(rows)
        self.files, self.runs, self.interrupted = files, runs, interrupted

    def frame(self) -> pandas.DataFrame:
        """A line a row, nested fields as columns with dots ("axes.length", "metrics.time_s.median");
        the runs are in `attrs["runs"]`. Needs pandas."""
        import pandas

        frame = pandas.json_normalize(list(self))
        frame.attrs["runs"] = self.runs
        return frame

    def __repr__(self) -> str:
        files = ", ".join(str(file) for file in self.files)
        return f"<{len(self)} rows of {files}{', interrupted' if self.interrupted else ''}>"


def load(*files: str | os.PathLike[str], interrupted: bool = False) -> Rows:
    """The rows of rows files. Of a cell that a file holds several times, the last row counts.

    Raises Error with file and line where one is not `attnbench/1`, or cannot be read.
    """
    paths = tuple(Path(file) for file in files)
    if not paths:
        raise Error("load needs a rows file")
    runs, rows = [], []
    for path in paths:
        cells: dict[tuple[str, str], dict[str, Any]] = {}
        for line in _lines(path):
            if line["kind"] == "run":
                runs.append(line)
            else:
                cells.pop((line["run"], line["cell"]), None)
                cells[line["run"], line["cell"]] = line
        rows += cells.values()
    return Rows(rows, paths, runs, interrupted)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Error(f"{path}: cannot be read: {error.strerror}") from None
    for number, words in enumerate(data.splitlines(), 1):
        try:
            line = parse_object(words)
        except ValueError as error:
            raise Error(f"{path}:{number}: {error}") from None
        if line.get("schema") != "attnbench/1" or line.get("kind") not in ("run", "cell"):
            raise Error(f"{path}:{number}: no line of attnbench/1")
        yield line


def unwritable(path: Path, error: OSError) -> Error:
    """Returns the Error that is raised for a file that cannot be written."""
    return Error(f"{path}: cannot be written: {error.strerror}")


def _files(rows: Source | list[Source]) -> list[Path]:
    """The files of rows: of Rows, of a path or of several."""
    if isinstance(rows, Rows):
        return list(rows.files)
    if isinstance(rows, (str, os.PathLike)):
        return [Path(rows)]
    return [file for one in rows for file in _files(one)]


def _words(options: dict[str, Any]) -> list[str]:
    """Options as the command line has them; True is an option without a value."""
    return [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
            for name, value in options.items()]  # fmt: skip


def compare(old: Source, new: Source, **options: Any) -> dict[str, Any]:
    """What `attnbench compare OLD NEW --format json` prints: what changed between two rows files by
    more than chance; and "exit_code", 3 where something got worse.

    Args:
        old, new: Rows of one file each, or paths.
        options: Those of the command, "_" for "-": threshold="5%", measure="speed", …

    Raises:
        Error: a file is no rows file, or the two have no cell in common.
    """
    files = _files([old, new])
    if len(files) != 2:
        raise Error(f"compare needs two rows files, not {len(files)}")
    command = [program(), "compare", *files, "--format", "json", *_words(options)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise Error(said_last(done.stderr))
    return {**json.loads(done.stdout), "exit_code": done.returncode}


def table(rows: Source | list[Source], **options: Any) -> str:
    """What `attnbench table ROWS` prints. Options are those of the command: crossings=True, …"""
    done = subprocess.run([program(), "table", *_files(rows), "--color=never", *_words(options)],
                          capture_output=True, text=True)  # fmt: skip
    if done.returncode not in (0, 1):
        raise Error(said_last(done.stderr))
    return done.stdout


def _drawable(rows: Source | list[Source]) -> Any:
    """Rows as the pictures and the report read them, whole or not at all."""
    try:
        from .plots.rows.learned import published
        from .plots.rows.read import RowsError, read_rows
    except ImportError as error:
        raise _lacks(error) from None
    try:
        return published(read_rows(_files(rows), SCHEMA))
    except RowsError as error:
        raise Error(str(error)) from None
    except ImportError as error:
        raise _lacks(error) from None


def _lacks(error: ImportError) -> Error:
    return Error(f"{error.name} is not installed; pip install 'attnbench[plot]'")


class Pictures(dict[str, Any]):
    """Figures of matplotlib by name, which notebooks show as pictures."""

    def _repr_html_(self) -> str:
        from base64 import b64encode
        from html import escape
        from io import BytesIO

        shown = []
        for name, figure in self.items():
            png = BytesIO()
            figure.savefig(png, format="png", dpi=100)
            data = b64encode(png.getvalue()).decode("ascii")
            shown.append(f'<img alt="{escape(name)}" src="data:image/png;base64,{data}">')
        return "".join(shown)


def plot(
    rows: Source | list[Source],
    kind: str | None = None,
    output: str | os.PathLike[str] | None = None,
) -> dict[str, matplotlib.figure.Figure]:
    """The pictures of `attnbench plot` as figures of matplotlib, by name; a notebook shows them.

    Args:
        rows: Rows, a rows file or several.
        kind: The beginning of a name, such as "speed", "memory", "accuracy", "crossing",
            "fidelity", "overview"; None: all that there are data for.
        output: A folder to write PNG, SVG and CSV to; None: nothing is written.

    Raises:
        Error: a rows file is not valid, no picture is of this kind, `output` cannot be written, or
            matplotlib is missing.
    """
    read = _drawable(rows)
    try:
        from .plots.gallery import draw_all, draw_named
        from .plots.layout.page import save
    except ImportError as error:
        raise _lacks(error) from None
    pictures = draw_all(read) if kind is None else draw_named(read, kind)
    if not pictures:
        names = ", ".join(p.name for p in draw_all(read))
        why = "".join(f"; scores left out: {words}" for words in read.left_out)
        asked = f"no picture is named {kind}…; " if kind is not None else ""
        raise Error(f"{asked}these rows give {names or 'no picture'}{why}")
    if output is not None:
        try:
            save(pictures, Path(output))
        except OSError as error:
            raise unwritable(Path(error.filename or output), error) from None
    return Pictures({p.name: p.figure for p in pictures if p.figure})


class Report(str):
    """A report as HTML, which notebooks show in a frame."""

    def _repr_html_(self) -> str:
        from html import escape

        return f'<iframe srcdoc="{escape(self)}" width="100%" height="800"></iframe>'


def report(
    rows: Source | list[Source], output: str | os.PathLike[str] | None = None
) -> Report:
    """The page of `attnbench report` as HTML, which needs no network; written to `output` if given.

    Raises Error where a rows file is not valid, `output` cannot be written, or plotly or matplotlib
    is missing.
    """
    read = _drawable(rows)
    try:
        from .plots.command import write_whole
        from .reports.document import document

        text = document(read)
    except ImportError as error:
        raise Error(f"{error.name} is not installed; pip install 'attnbench[report]'") from None
    if output is not None:
        try:
            write_whole(Path(output), text)
        except OSError as error:
            raise unwritable(Path(output), error) from None
    return Report(text)
