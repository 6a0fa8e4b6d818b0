"""Rows as Parquet: what `attnbench export --format csv` prints, with a type for each column."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.parquet

SOURCES = ("variant", "task", "exact", "data")
HASHES = ("run", "cell", "environment.commit", *(f"source.{name}" for name in SOURCES))


def split(words: list[str]) -> tuple[list[str], Path]:
    """Returns the words without the output, and the output."""
    rest, output = [], None
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("-o", "--output") and words:
            output = words.pop(0)
        elif word.startswith("--output="):
            output = word.partition("=")[2]
        else:
            rest.append(word)
    if output is None or not output.endswith(".parquet"):
        raise SystemExit(fail("-o names no FILE.parquet to write", 2))
    if any(word == "--format" or word.startswith("--format=") for word in rest):
        raise SystemExit(fail("--format and a Parquet file are both given; give one", 2))
    return rest, Path(output)


def fail(message: str, code: int) -> int:
    print(f"attnbench: {message}", file=sys.stderr)
    return code


def arrow_memory(text: bytes) -> pyarrow.BufferReader:
    """Returns a copy that holds no Python object.

    A thread of Arrow that still held one when Python ends would wait for Python's lock and abort the
    process (https://github.com/apache/arrow/issues/34314).
    """
    copy = pyarrow.BufferOutputStream()
    copy.write(text)
    return pyarrow.BufferReader(copy.getvalue())


def main(program: str, words: list[str]) -> int:
    rest, output = split(words)
    done = subprocess.run([program, *rest, "--format", "csv"], stdout=subprocess.PIPE)
    if done.returncode:
        return done.returncode
    # An empty field is a value that the row has not; a text is empty nowhere. Hashes are texts, even
    # where all their digits are decimal ones.
    read = pyarrow.csv.ConvertOptions(
        column_types={name: pyarrow.string() for name in HASHES},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    # A column's type is that of all its values, so the whole file is one block.
    whole = pyarrow.csv.ReadOptions(use_threads=False, block_size=max(1, len(done.stdout)))
    quoted = pyarrow.csv.ParseOptions(newlines_in_values=True)
    table = pyarrow.csv.read_csv(
        arrow_memory(done.stdout), read_options=whole, parse_options=quoted, convert_options=read
    )
    half = output.with_name(f"{output.name}.{os.getpid()}.tmp")
    try:
        pyarrow.parquet.write_table(table, half)
        half.replace(output)
    except OSError as error:
        half.unlink(missing_ok=True)
        return fail(f"cannot write '{output}': {error.strerror or error}", 6)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
