"""Reads rows (JSON Lines, schema attnbench/1) strictly: a file is drawn whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cell import PYTHON, Cell, Params, inside
from .runs import merge
from .strict_json import parse_object

SCHEMA = "attnbench/1"
STATUSES = ("ok", "skipped", "failed", "diverged", "timeout", "oom")
MEASURES = ("speed", "memory", "accuracy", "fidelity", "reach")
# Drawn as failures; a skipped cell could not have run and is named in the caption.
FAILURES = ("failed", "diverged", "timeout", "oom")

class RowsError(Exception):
    """What is wrong with a rows file, as one line that starts with file and line number."""


class UnreadableError(RowsError):
    """A file that the system does not let us read."""


@dataclass(frozen=True)
class Rows:
    """Everything read: the run headers and the cells that count, see runs.py."""

    files: tuple[Path, ...]
    runs: list[dict[str, Any]]
    cells: list[Cell]
    sources: tuple[Path, ...] = ()  # the file of each of the runs

    def of(self, measure: str) -> list[Cell]:
        return [c for c in self.cells if c.measure == measure]


def ids(cells: Iterable[Cell | None]) -> str:
    """Returns the ids of the cells behind a value, which `attnbench repro` takes."""
    return " ".join(dict.fromkeys(c.id for c in cells if c))


def canonical(params: dict[str, Any]) -> Params:
    return tuple(sorted((k, v if isinstance(v, str) else json.dumps(v)) for k, v in params.items()))


def read_rows(files: list[Path], schema_file: Path | None = None) -> Rows:
    """Reads and validates every file; the first fault raises RowsError and nothing is returned."""
    validator = _validator(schema_file)
    loaded: list[tuple[Path, dict[str, Any], list[Cell]]] = []
    for file in files:
        heads: dict[str, dict[str, Any]] = {}  # by run; several in a merged file
        cells: dict[tuple[str, str], Cell] = {}
        try:
            data = file.read_bytes()
        except OSError as error:
            raise UnreadableError(f"{file}: cannot be read: {error.strerror}") from None
        if not data:
            raise RowsError(f"{file}:1: empty; a rows file begins with a run header")
        for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
            where = f"{file}:{number}"
            row = _parse(line, where)
            kind = _check(row, where, heads)
            if validator is not None:
                _validate(validator, row, where)
            if kind == "run":
                heads.setdefault(row["run"], row)  # a later one says what the file was widened by
            else:
                cell = _cell(row)
                cells.pop((cell.run, cell.id), None)  # a cell run again: its last row stands
                cells[cell.run, cell.id] = cell
        for run, head in heads.items():
            loaded.append((file, head, [c for c in cells.values() if c.run == run]))
    heads_of, sources = [head for _, head, _ in loaded], tuple(file for file, _, _ in loaded)
    return Rows(tuple(files), heads_of, merge(loaded), sources)


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        return parse_object(line)
    except ValueError as error:
        raise RowsError(f"{where}: {error}") from None


def _check(row: dict[str, Any], where: str, heads: dict[str, dict[str, Any]]) -> str:
    """Checks what the plots rely on; results/schema.json, where present, checks the rest.

    `heads` are the run lines so far, by id: all lines are of the first, unless they were merged.
    """

    def need(condition: bool, what: str) -> None:
        if not condition:
            raise RowsError(f"{where}: {what}")

    need(row.get("schema") == SCHEMA, f"schema is {row.get('schema')!r}, not {SCHEMA!r}")
    kind = row.get("kind")
    need(kind in ("run", "cell"), f"kind is {kind!r}, not 'run' or 'cell'")
    need(bool(heads) or kind == "run", "the first line is no run header")
    need(isinstance(row.get("run"), str), "'run' is missing or no string")
    first = next(iter(heads), row["run"])
    begins = kind == "run" and row.get("merged") is True and heads.get(first, {}).get("merged")
    known = row["run"] in (first, *heads) or begins
    need(known, f"run is {row['run']!r}, not that of the first line, {first!r}")
    if kind == "run":
        return kind
    need(isinstance(row.get("cell"), str), "'cell' is missing or no string")
    need(row.get("status") in STATUSES, f"status {row.get('status')!r} is unknown")
    need(row.get("measure") in MEASURES, f"measure {row.get('measure')!r} is unknown")
    for name in ("variant", "task"):
        value = row.get(name)
        need(
            value is None
            and name == "task"
            or isinstance(value, dict)
            and isinstance(value.get("name"), str)
            and isinstance(value.get("params"), dict),
            f"'{name}' has no name and params",
        )
    need(isinstance(row.get("axes"), dict), "'axes' is missing or no object")
    length = row["axes"].get("length")
    need(length is None or isinstance(length, int) and length > 0, f"axes.length is {length!r}")
    if row["status"] == "ok":
        needed = {
            "speed": "time_s.median",
            "memory": "peak_bytes",
            "accuracy": "test",
            "fidelity": "relative_error",
            "reach": "perturbation.past",
        }[row["measure"]]
        value = inside(row.get("metrics"), needed)
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        need(good, f"an ok {row['measure']} cell needs the number metrics.{needed}")
        visits = row.get("visits")
        if row["measure"] == "speed" and visits is not None:
            counts = isinstance(visits, list) and all(type(v) is int and v > 0 for v in visits)
            given = len(row.get("samples") or ())
            fits = counts and sum(visits) == given
            need(fits, f"visits is {visits!r}, which does not add up to the {given} samples")
    return kind


def marked(variant: str) -> str:
    """The name of a variant with its sign: names of those in Python, and no others, begin alike."""
    return variant + PYTHON if variant.startswith("python_") else variant


def is_python(cell: Cell) -> bool:
    return cell.variant.endswith(PYTHON)


def _cell(row: dict[str, Any]) -> Cell:
    task = row.get("task")
    return Cell(
        id=row["cell"],
        status=row["status"],
        reason=row.get("reason"),
        measure=row["measure"],
        variant=marked(row["variant"]["name"]),
        params=canonical(row["variant"]["params"]),
        task=task["name"] if task else None,
        task_params=canonical(task["params"]) if task else (),
        axes=row["axes"],
        metrics=row.get("metrics") or {},
        samples=row.get("samples"),
        run=row["run"],
        training=row.get("training") or {},
        visits=tuple(row.get("visits") or ()),
        tuned=tuple(row.get("tuned") or ()),
        noisy=tuple(row.get("noisy") or ()),
        ledger=row.get("ledger") or {},
        is_gated=row.get("gate") == "red",
        is_referenced=row.get("referenced"),
        verified=row.get("verified") or {},
    )


def _validator(schema_file: Path | None) -> Any:
    if schema_file is None or not schema_file.is_file():
        return None
    import jsonschema  # slow to import, and needed only here

    schema = json.loads(schema_file.read_text(encoding="utf-8"))
    return jsonschema.validators.validator_for(schema)(schema)


def _validate(validator: Any, row: dict[str, Any], where: str) -> None:
    import jsonschema

    error = jsonschema.exceptions.best_match(validator.iter_errors(row))
    if error is not None:
        message = error.message if len(error.message) < 160 else error.message[:157] + "..."
        raise RowsError(f"{where}: {error.json_path}: {message}")
