"""Reads rows (JSON Lines, schema attnbench/1) strictly: a file is drawn whole or not at all. A line
is an object without NaN, infinities or a key that appears twice; a cell that several runs measured
is one point, or two series told apart by run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from .checksum import checksum_fault

Params = tuple[tuple[str, str], ...]
# Stands behind the name of a variant in Python, and what it says.
PYTHON = "\u2021"
PYTHON_SHORT = f"{PYTHON} written in Python, run by torch"
PYTHON_NOTE = f"{PYTHON}: written in Python and run by torch in an interpreter; its time and memory are those of that program, not of a native kernel."


@dataclass(frozen=True)
class Cell:
    """One measured cell; `params` and `task_params` are canonical: they compare and hash."""

    id: str
    status: str
    reason: str | None
    measure: str
    variant: str  # its name, which ends with PYTHON where it is written in Python
    params: Params
    task: str | None
    task_params: Params
    axes: dict[str, Any]
    metrics: dict[str, Any]
    samples: Any
    run: str = ""
    training: dict[str, Any] = field(default_factory=dict)
    visits: tuple[int, ...] = ()  # how many samples each process gave; empty in older rows
    tuned: tuple[str, ...] = ()  # training settings to be chosen on validation
    noisy: tuple[str, ...] = ()  # why its times are unreliable
    ledger: dict[str, Any] = field(default_factory=dict)  # what the variant was given
    is_gated: bool = False  # a contract check of its variant or task is red
    is_referenced: bool | None = None  # compared with declared mathematics; None: older rows
    verified: dict[str, Any] = field(default_factory=dict)  # how its own answer was compared
    sources: dict[str, str] = field(default_factory=dict)  # hashes of the code and the data behind it
    witness: dict[str, list[float]] = field(default_factory=dict)  # rates of work that never changes, beside each visit

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def length(self) -> int | None:
        return self.axes.get("length")

    def metric(self, name: str) -> float | None:
        """A metric by name, `time_s.median` for a nested one; None where it is missing or null."""
        value = inside(self.metrics, name)
        return None if value is None or isinstance(value, (bool, str, dict, list)) else float(value)

    @property
    def scored_by(self) -> str:
        """The metric of an accuracy cell, by name."""
        return str(self.metrics.get("metric") or "accuracy")

    def times(self) -> list[float]:
        """The raw repetitions of a speed cell, in seconds."""
        raw = self.samples.get("time_s", []) if isinstance(self.samples, dict) else self.samples
        return [float(s) for s in raw or [] if isinstance(s, (int, float))]

    def visited(self) -> list[list[float]]:
        """The repetitions of each visit; where the row does not say, as if of one."""
        times, out = self.times(), []
        for size in self.visits or (len(times),):
            out.append(times[:size])
            times = times[size:]
        return out


def inside(metrics: Any, name: str) -> Any:
    """Returns a nested metric by its dotted name, None where the metric is missing."""
    for part in name.split("."):
        metrics = metrics.get(part) if isinstance(metrics, dict) else None
    return metrics


def parse_object(line: bytes) -> dict[str, Any]:
    """Returns the object, or raises a ValueError that says what is wrong."""
    try:
        row = json.loads(line.decode("utf-8-sig"), parse_constant=_constant, parse_float=_number, object_pairs_hook=_pairs)
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except json.JSONDecodeError as error:
        cut = "a truncated line?" if error.pos >= len(line) - 1 else f"column {error.colno}"
        raise ValueError(f"not JSON: {error.msg} ({cut})") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not strict JSON: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"a row is a JSON object, not {type(row).__name__}")
    return row


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _constant(text)


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in items}) < len(items):
        raise ValueError("a key appears twice")
    return dict(items)


MOMENT = ("load_before", "calibration")  # differ whenever the same machine runs the same program
RUN = "run"  # the parameter that tells runs apart
OF_RUN = "@"  # between a cell's own id and the place of its run, where runs are told apart
Loaded = list[tuple[Path, dict[str, Any], list[Cell]]]


def merge(loaded: Loaded) -> list[Cell]:
    """The cells of all files in order. Of a cell measured again by the same program on the same
    machine the later file's stands; any other second measurement of a point is kept, and then all
    cells carry the name of their run as a parameter, see _names."""
    kept: dict[tuple[Any, ...], tuple[int, Cell]] = {}
    for index, (_, head, cells) in enumerate(loaded):
        setup = _setup(head)
        for cell in cells:
            key = (_point(cell), cell.id, setup)
            kept.pop(key, None)
            kept[key] = index, cell
    runs: dict[Any, set[int]] = {}
    for (point, _, _), (index, _) in kept.items():
        runs.setdefault(point, set()).add(index)
    repeated = [of for of in runs.values() if len(of) > 1]
    if not repeated:
        return [cell for _, cell in kept.values()]
    names = _names(loaded, repeated)
    return [
        replace(cell, id=f"{cell.id}{OF_RUN}{index}", params=(*cell.params, (RUN, names[index])))
        for index, cell in kept.values()
    ]


def run_of(params: tuple[tuple[str, str], ...]) -> str | None:
    return dict(params).get(RUN)


def _setup(head: dict[str, Any]) -> str:
    """Program and machine, in one string that compares."""
    environment = head.get("environment") or {}
    return json.dumps({k: v for k, v in environment.items() if k not in MOMENT}, sort_keys=True)


def _point(cell: Cell) -> tuple[Any, ...]:
    axes = {k: v for k, v in cell.axes.items() if k != "repetitions"}
    where = json.dumps([axes, cell.training], sort_keys=True)
    return cell.measure, cell.variant, cell.params, cell.task, cell.task_params, where


def _names(loaded: Loaded, repeated: list[set[int]]) -> list[str]:
    """The name of each run: its file's without the ending. Runs of one file share it where the same
    program and machine measured them and no point has cells of two; else they are numbered."""
    of_file: dict[tuple[Path, str], list[int]] = {}
    for index, (file, head, _) in enumerate(loaded):
        of_file.setdefault((file, _setup(head)), []).append(index)
    groups: list[list[int]] = []
    for own in of_file.values():
        mixed = any(len(of.intersection(own)) > 1 for of in repeated)
        groups += [[index] for index in own] if mixed else [own]
    stems = [loaded[group[0]][0].stem for group in groups]
    names = [""] * len(loaded)
    for number, (group, stem) in enumerate(zip(groups, stems, strict=True), 1):
        for index in group:
            names[index] = stem if stems.count(stem) == 1 else f"{stem} {number}"
    return names


SCHEMA = "attnbench/1"
STATUSES = ("ok", "skipped", "failed", "diverged", "timeout", "oom")
MEASURES = ("speed", "memory", "accuracy", "fidelity", "reach")
# Drawn as failures; a skipped cell could not have run and is named in the caption.
FAILURES = ("failed", "diverged", "timeout", "oom")

class RowsError(Exception):
    """What is wrong with a rows file, as one line that starts with file and line number."""


class UnreadableError(RowsError):
    """A file that the system does not let us read."""


class NothingDrawn(RowsError):
    """The rows hold nothing that was asked for."""


@dataclass(frozen=True)
class Rows:
    """Everything read: the run headers and the cells that count, see runs.py."""

    files: tuple[Path, ...]
    runs: list[dict[str, Any]]
    cells: list[Cell]
    sources: tuple[Path, ...] = ()  # the file of each of the runs
    left_out: tuple[str, ...] = ()  # settings that were not learned, see learned.py
    unlearned: tuple[Cell, ...] = ()  # their cells
    trials: tuple[Cell, ...] = ()  # short trainings of searches, which are no results

    def of(self, measure: str) -> list[Cell]:
        return [c for c in self.cells if c.measure == measure]

    def trainings(self) -> list[Cell]:
        """Returns every accuracy cell, for what shows how trainings went rather than what they reached."""
        return [*self.of("accuracy"), *self.unlearned]


def ids(cells: Iterable[Cell | None]) -> str:
    """Returns the ids of the cells behind a value, which `attnbench repro` takes."""
    return " ".join(dict.fromkeys(c.id for c in cells if c))


def canonical(params: dict[str, Any]) -> Params:
    return tuple(sorted((k, v if isinstance(v, str) else json.dumps(v)) for k, v in params.items()))


def read_rows(files: list[Path], schema_file: Path | None = None) -> Rows:
    """Reads and validates every file; the first fault raises RowsError and nothing is returned."""
    return rows_of([(file, _lines(file)) for file in files], schema_file)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{file}: cannot be read: {error.strerror}") from None
    if not data:
        raise RowsError(f"{file}:1: empty; a rows file begins with a run header")
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        try:
            row = parse_object(line)
        except ValueError as error:
            raise RowsError(f"{file}:{number}: {error}") from None
        yield row


def rows_of(parts: Iterable[tuple[Path, Iterable[dict[str, Any]]]], schema_file: Path | None = None) -> Rows:
    """The same of lines that are parsed already, by file. A path names the lines of a fault; no file is opened."""
    validator = validator_of(schema_file)
    loaded: list[tuple[Path, dict[str, Any], list[Cell]]] = []
    trials: list[Cell] = []
    files = []
    for file, lines in parts:
        files.append(file)
        heads: dict[str, dict[str, Any]] = {}  # by run; several in a merged file
        cells: dict[tuple[str, str], Cell] = {}
        own_trials: dict[tuple[str, str], Cell] = {}
        for number, row in enumerate(lines, 1):
            where = f"{file}:{number}"
            kind = check_line(row, where, heads)
            if validator is not None:
                validate_line(validator, row, where)
            if fault := checksum_fault(row):
                raise RowsError(f"{where}: {fault}")
            if kind == "run":
                head = heads.setdefault(row["run"], dict(row))  # a later one says what the file was widened by
                told = head.setdefault("protocols", [])  # of all of them
                if row.get("protocol") and row["protocol"] not in told:
                    told.append(row["protocol"])
            else:
                cell = _cell(row)
                held = own_trials if row.get("trial") else cells
                held.pop((cell.run, cell.id), None)  # a cell run again: its last row stands
                held[cell.run, cell.id] = cell
        for run, head in heads.items():
            loaded.append((file, head, [c for c in cells.values() if c.run == run]))
        trials += own_trials.values()
    heads_of, sources = [head for _, head, _ in loaded], tuple(file for file, _, _ in loaded)
    return Rows(tuple(files), heads_of, merge(loaded), sources, trials=tuple(trials))


def _is_protocol(found: Any) -> bool:
    """Whether a run line's `protocol` is one, or is absent as in rows of earlier versions."""
    if found is None:
        return True
    texts = [found.get("name"), found.get("hash")] if isinstance(found, dict) else [None]
    departs = found.get("departs") if isinstance(found, dict) else None
    return isinstance(departs, list) and all(isinstance(t, str) for t in [*texts, *departs])


def check_line(row: dict[str, Any], where: str, heads: dict[str, dict[str, Any]]) -> str:
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
        need(_is_protocol(row.get("protocol")), "'protocol' has no name, hash and departs")
        return kind
    need(isinstance(row.get("cell"), str), "'cell' is missing or no string")
    need(row.get("status") in STATUSES, f"status {row.get('status')!r} is unknown")
    need(row.get("measure") in MEASURES, f"measure {row.get('measure')!r} is unknown")
    for name in ("variant", "task"):
        value = row.get(name)
        is_named = isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("params"), dict)
        need(is_named or value is None and name == "task", f"'{name}' has no name and params")
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
        sources=row.get("source") or {},
        witness=row.get("witness") or {},
    )


def validator_of(schema_file: Path | None) -> Any:
    if schema_file is None or not schema_file.is_file():
        return None
    import jsonschema  # slow to import, and needed only here
    schema = json.loads(schema_file.read_text(encoding="utf-8"))
    return jsonschema.validators.validator_for(schema)(schema)


def validate_line(validator: Any, row: dict[str, Any], where: str) -> None:
    import jsonschema

    error = jsonschema.exceptions.best_match(validator.iter_errors(row))
    if error is not None:
        message = error.message if len(error.message) < 160 else error.message[:157] + "..."
        raise RowsError(f"{where}: {error.json_path}: {message}")
