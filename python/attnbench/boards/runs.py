"""The runs of an archive: the instruction set, the protocol and the machine of each, and its cells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attnbench.plots.layout.caption import machine_words
from attnbench.plots.rows.read import RUN, Cell, Params, canonical
from attnbench.plots.rows.style import BASELINE, TILED
from attnbench.pooling.machines import IDENTITY

from .safe import plain, text_of
from .submissions import Submission

SHORT, LONG = 40, 200  # characters of a word and of a line


@dataclass(frozen=True, order=True)
class Place:
    """What numbers must share to stand in one table."""

    instruction_set: str
    protocol: str


@dataclass(frozen=True)
class Machine:
    """Rows hold no name of a machine: two that are alike count as one, as in `attnbench pool`."""

    text: str
    key: str


@dataclass(frozen=True)
class Run:
    """The cells of one run of a submission, with what its line says."""

    submission: Submission
    place: Place
    machine: Machine
    member: str
    families: dict[str, str]
    exact: Params  # the default parameters of exact attention
    cells: list[Cell]

    def is_exact(self, cell: Cell) -> bool:
        """Whether the cell is of exact attention with its default parameters: what times are divided by."""
        return cell.variant == BASELINE and tuple((k, v) for k, v in cell.params if k != RUN) == self.exact

    def of(self, measure: str) -> list[Cell]:
        return [c for c in self.cells if c.measure == measure and c.status != "skipped"]


def runs_of(submission: Submission) -> Iterator[Run]:
    cells: dict[str, list[Cell]] = {}
    for cell in submission.rows.cells:
        cells.setdefault(cell.run, []).append(cell)
    for head in submission.rows.runs:
        if own := cells.pop(head["run"], []):
            member = submission.members[head["run"]]
            yield Run(submission, place_of(head), machine_of(head), member, families_of(head), exact_of(head), own)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def place_of(head: dict[str, Any]) -> Place:
    """The instruction set of the kernels, and the protocol with what the run departs in: a departure is another protocol."""
    environment, protocol = _dict(head.get("environment")), _dict(head.get("protocol"))
    isa = plain(text_of(environment.get("kernel_instruction_set")) or text_of(environment.get("instruction_set")) or "unknown", SHORT)
    if not protocol:
        return Place(isa, "rows from before protocols")
    departs = sorted(text_of(d) for d in protocol.get("departs") or [])
    named = f"{text_of(protocol.get('name'))} {text_of(protocol.get('hash'))[:8]}"
    return Place(isa, plain(named + (f", departs in {', '.join(departs)}" if departs else ""), LONG))


def machine_of(head: dict[str, Any]) -> Machine:
    told = _dict(head.get("environment"))
    return Machine(plain(machine_words(told), LONG), json.dumps([told.get(name) for name in IDENTITY], sort_keys=True))


def families_of(head: dict[str, Any]) -> dict[str, str]:
    listed = [v for v in head.get("variants") or [] if isinstance(v, dict)]
    return {text_of(v.get("name")): plain(text_of(v.get("family")), SHORT) for v in listed}


def exact_of(head: dict[str, Any]) -> Params:
    """As the run line lists them; older rows list none."""
    listed = [v for v in head.get("variants") or [] if isinstance(v, dict) and v.get("name") == BASELINE]
    return next((canonical(v["params"]) for v in listed if isinstance(v.get("params"), dict)), (("kernel", TILED),))
