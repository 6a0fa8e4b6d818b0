"""Which rows were measured on one machine, and which rows say the same thing of it: the same code under the same protocol.

Rows hold no name of a machine. Two machines of one processor model, with the same caches, cores, threads and instruction set, count as one: what they
say together is then said with less confidence than it could be, never with more. One processor that ran two builds, of two instruction sets, counts
as two, which a note tells."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..plots.layout.caption import machine_words
from ..plots.rows.read import OF_RUN, RUN, Cell, Params, Rows

IDENTITY = ("cpu_model", "caches", "cores", "threads", "instruction_set")
PROCESSOR = ("cpu_model", "caches")
PER_FILE = ("repetitions",)  # an axis that changes how sure a figure is, not what it is of


class Place(NamedTuple):
    """What a figure is of: the same on every machine. `task` has parameters and settings of training; the axes are those of the row, without
    repetitions and, for scores, the seed."""

    measure: str
    variant: str
    params: Params
    task: str
    axes: tuple[tuple[str, Any], ...]

    @property
    def around(self) -> tuple[Any, ...]:
        """The same for a variant and for exact attention beside it."""
        return self.measure, self.task, self.axes

    @property
    def spec(self) -> str:
        words = ",".join(f"{name}={value}" for name, value in self.params)
        return f"{self.variant}[{words}]" if words else self.variant

    @property
    def task_spec(self) -> str:
        """`mqar[length=64,pairs=4]`, or nothing."""
        if not self.task:
            return ""
        name, params, _ = json.loads(self.task)
        words = ",".join(f"{key}={value}" for key, value in params)
        return f"{name}[{words}]" if words else str(name)

    @property
    def length(self) -> int:
        return int(dict(self.axes).get("length") or 0)

    @property
    def without_length(self) -> Place:
        return self._replace(axes=tuple((k, v) for k, v in self.axes if k != "length"))


class Version(NamedTuple):
    """What must be equal for figures to be pooled."""

    protocol: str
    sources: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Machine:
    number: int  # from 1, in the order of the files
    words: str  # processor, cores, threads, instruction set
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Measured:
    """A cell, and where it was measured."""

    cell: Cell
    machine: int  # its number
    run: str
    protocol: str

    @property
    def place(self) -> Place:
        return place_of(self.cell)


@dataclass(frozen=True)
class Fleet:
    machines: tuple[Machine, ...]
    cells: tuple[Measured, ...]
    heads: dict[str, dict[str, Any]]  # run lines by run
    unlearned: tuple[str, ...] = ()  # settings whose scores are left out
    gated: tuple[Measured, ...] = ()  # cells of a red contract check, which are left out

    def of(self, measure: str) -> list[Measured]:
        return [m for m in self.cells if m.cell.measure == measure]

    @property
    def notes(self) -> list[str]:
        """What the reader should know of machines that are hardly two."""
        by_processor: dict[str, list[Machine]] = {}
        for machine in self.machines:
            by_processor.setdefault(identity(self._environment(machine), PROCESSOR), []).append(machine)
        return [
            f"machines {' and '.join(str(m.number) for m in alike)} are one processor model with several settings; "
            "they may be one computer, and are then no two witnesses"
            for alike in by_processor.values()
            if len(alike) > 1
        ]

    def _environment(self, machine: Machine) -> dict[str, Any]:
        run = next(m.run for m in (*self.cells, *self.gated) if m.machine == machine.number)
        return self.heads[run].get("environment") or {}


def fleet_of(files: Sequence[Rows]) -> Fleet:
    """The machines of rows files, each read by itself, in the order of the files. A row that two files hold is one row. A cell whose variant or task
    breaks its contract says nothing, and stands apart."""
    numbers: dict[str, int] = {}
    words: dict[int, str] = {}
    sources: dict[int, dict[Path, None]] = {}
    heads: dict[str, dict[str, Any]] = {}
    cells: dict[tuple[int, str, str], Measured] = {}
    for rows in files:
        own = dict(zip([head["run"] for head in rows.runs], zip(rows.runs, rows.sources, strict=True), strict=True))
        for raw in rows.cells:
            head, source = own[raw.run]
            environment = head.get("environment") or {}
            number = numbers.setdefault(identity(environment), len(numbers) + 1)
            words.setdefault(number, machine_words(environment))
            sources.setdefault(number, {})[source] = None
            heads[raw.run] = head
            cell = _plain(raw)
            cells[number, cell.run, cell.id] = Measured(cell, number, cell.run, protocol_of(head))
    machines = tuple(Machine(n, words[n], tuple(sources[n])) for n in sorted(words))
    sound, gated = (tuple(m for m in cells.values() if m.cell.is_gated == is_gated) for is_gated in (False, True))
    return Fleet(machines, sound, heads, tuple(dict.fromkeys(w for r in files for w in r.left_out)), gated)


def place_of(cell: Cell) -> Place:
    without = (*PER_FILE, "seed") if cell.measure == "accuracy" else PER_FILE
    axes = tuple(sorted((k, v if isinstance(v, Hashable) else json.dumps(v)) for k, v in cell.axes.items() if k not in without))
    training = {k: v for k, v in cell.training.items() if k not in cell.tuned}
    task = json.dumps([cell.task, cell.task_params, training], sort_keys=True) if cell.task else ""
    return Place(cell.measure, cell.variant, cell.params, task, axes)


def protocol_of(head: dict[str, Any]) -> str:
    """Name and hash of the protocol; of rows from before protocols had hashes, its number."""
    told = [f"{p['name']} ({p['hash']})" for p in head.get("protocols") or []]
    return "; ".join(sorted(told)) or f"{(head.get('config') or {}).get('protocol', 'unknown')} (without a hash)"


def version_of(*measured: Measured) -> Version:
    """Of the cells behind one figure, which come from one run."""
    sources = sorted({(f"{m.cell.variant} {name}", value) for m in measured for name, value in m.cell.sources.items()})
    return Version(measured[0].protocol, tuple(sources))


def started(heads: dict[str, dict[str, Any]], runs: Iterable[str]) -> str:
    return max(str(heads[run].get("started_at", "")) for run in runs)


def _plain(cell: Cell) -> Cell:
    """Without the name of its run, by which a reader of one file tells its runs apart."""
    params = tuple(p for p in cell.params if p[0] != RUN)
    return replace(cell, id=cell.id.partition(OF_RUN)[0], params=params)


def identity(environment: dict[str, Any], facts: Sequence[str] = IDENTITY) -> str:
    """What tells a machine, or by fewer facts a processor, from others, in one string that compares."""
    return json.dumps([environment.get(name) for name in facts])
