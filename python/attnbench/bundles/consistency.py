"""Whether rows may go into a bundle, and whether those of a bundle may be believed so far: nothing is measured here. `submit` and `verify`
ask the same questions: schema, checksum, ids, figures that fit each other, verified answers, finished trainings, stated departures, no names
of folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .._place import SCHEMA
from ..plots.rows.checksum import FIELD, checksum_fault
from ..plots.rows.read import RowsError, check_line, validate_line, validator_of
from .archive import Line
from .container import plain
from .figures import UNFINISHED, faults_of, id_of
from .private import private_part, texts_of

VERIFIED = ("speed", "memory")  # measures whose answers are compared at their own shape
USUAL_PIN = "auto"
REMEDY = "submit --strip leaves folders out of run lines; else measure again in the folder of the rows, with names relative to it"
MOST_ID = 64  # characters of the id of a run


@dataclass(frozen=True)
class Fault:
    """What is wrong: of which kind, where (file:line), and the words."""

    kind: str
    where: str
    words: str


def faults_of_rows(name: str, lines: Iterable[Line], protocol: dict[str, Any], names: tuple[str, ...] = ()) -> Iterator[Fault]:
    """Yields the faults of the lines of one rows file, which are strict JSON. `protocol` is what `attnbench protocol --json` prints, and
    `names` are users and machines that no text may name. The figures of a line are judged only where its form is right."""
    heads: dict[str, Line] = {}
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if words := _form_fault(line, heads):
            yield Fault("form", where, words)
            continue
        for place, text in texts_of(line):
            if part := private_part(text, names):
                yield Fault("private", where, f"{plain(place)} names '{plain(part)}', a folder, a user or a machine; {REMEDY}")
                break
        if line["kind"] == "run":
            heads[line["run"]] = line
            yield from (Fault("departs", where, words) for words in _run_faults(line, protocol))
        else:
            yield from (Fault(kind, where, words) for kind, words in _cell_faults(line, heads[line["run"]]))


def first_of_each(faults: Iterable[Fault]) -> list[str]:
    """A line for each kind of fault: the first, and how many more there are."""
    found: dict[str, list[Fault]] = {}
    for fault in faults:
        found.setdefault(fault.kind, []).append(fault)
    return [f"{some[0].where}: {some[0].words}{f' (and {len(some) - 1} more lines like it)' if len(some) > 1 else ''}" for some in found.values()]


@cache
def _validator(schema: Path) -> Any:
    return validator_of(schema)


def _form_fault(line: Line, heads: dict[str, Line]) -> str:
    try:
        check_line(line, "line", heads)
        validate_line(_validator(SCHEMA), line, "line")
    except RowsError as error:
        return plain(str(error).removeprefix("line: "))
    if len(line["run"]) > MOST_ID:
        return f"'run' has {len(line['run'])} characters; {MOST_ID} is the most"
    if FIELD not in line:
        return "it has no checksum, as rows of early versions: measure again"
    if line["kind"] == "run" and not isinstance(line.get("protocol"), dict):
        return "its run names no protocol, as those of earlier versions: measure again"
    if line["kind"] == "run" and type(line["config"].get("protocol")) is not int:
        return "config.protocol is missing or no number"
    return checksum_fault(line)


def _run_faults(line: Line, protocol: dict[str, Any]) -> Iterator[str]:
    """What the run line leaves unsaid of its departures: those that its own configuration shows."""
    said, config = line["protocol"], line["config"]
    right = (protocol["name"], protocol["hash"])
    if (said["name"], said["hash"]) != right:
        yield f"it was measured by protocol {said['name']} ({said['hash']}), and the bundle is of {right[0]} ({right[1]}): measure again"
        return
    definition = protocol["definition"]
    profile = _object(_object(definition.get("profiles")).get(str(config.get("profile"))))
    usual = profile.get("timeout_s", definition.get("timeout_s"))
    shown = {
        "timeout": "timeout_s" in config and usual is not None and config["timeout_s"] != usual,
        "max_memory": bool(config.get("max_memory_bytes")),
        "precision": bool(config.get("precision")),
        "max_time": bool(config.get("max_time_s")) and not config.get("precision"),
        "pin": config.get("pin", USUAL_PIN) != USUAL_PIN,
        "sweep_file": "sweep_file" in config,
    }
    for name in (name for name, departs in shown.items() if departs and name not in said["departs"]):
        yield f"it departs from the protocol in {name}, which its `protocol.departs` does not say"


def _object(value: Any) -> Line:
    """The value, empty where it is no object: a stranger's definition may hold anything."""
    return value if isinstance(value, dict) else {}


def _cell_faults(cell: Line, run: Line) -> Iterator[tuple[str, str]]:
    try:
        right = id_of(cell, run)
        if right != cell["cell"]:
            yield "edited", f"cell {cell['cell']} was edited: its id is that of another setting, {right} would be this one's"
        if cell["status"] != "ok":
            return
        if words := "; ".join(faults_of(cell, run)):
            yield "edited", f"cell {cell['cell']} was edited: {words}"
        yield from _unfit(cell)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        yield "edited", f"cell {plain(cell['cell'])} lacks what its figures follow from: {plain(str(error))[:80]}"


def _unfit(cell: Line) -> Iterator[tuple[str, str]]:
    """A number has conditions: its answer was verified, its training ended by itself."""
    if cell["measure"] in VERIFIED:
        verified = cell.get("verified")
        if not verified:
            yield "unverified", f"cell {cell['cell']} is unverified: its answer was not compared at its own shape; measure again"
        elif not (verified["error"] <= verified["bound"] and verified.get("gradient_error", 0) <= verified.get("gradient_bound", 0)):
            yield "unverified", f"cell {cell['cell']} is unverified: the error of its answer is above the bound"
    if cell["measure"] == "accuracy" and not cell.get("trial"):
        ended = cell["metrics"].get("ended_by")
        if ended in UNFINISHED or not ended:
            why = f"its training was cut off by its {ended}" if ended else "it does not say why its training ended"
            yield "unfinished", (f"cell {cell['cell']} is unfinished: {why}; train longer (--train steps=N), or take the line out: every line "
                                 "stands by itself")  # fmt: skip
