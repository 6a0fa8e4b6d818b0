"""Cells measured anew: the command of a row as `attnbench repro` prints it, its price as `run --dry-run` forecasts it, and the rows that it gives.
All of it runs in the sandbox: with a plug-in, the program holds a stranger's code."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..plots.rows.read import parse_object
from ..plots.rows.terms import EXACT
from .archive import PROCESSOR, Line, sealed
from .container import BundleError, plain
from .program import ask
from .sandbox import Sandbox

QUIET = ["--yes", "--quiet", "--progress=none", "--color=never"]
MOST_ROWS = 16 << 20  # bytes of the rows that a command gives
START = 60  # seconds that a command may take beside its cells: calibration, contract checks, imports
BUILD = ("commit", "dirty", "compiler", "flags", "libraries", "caches")


class NotMeasured(Exception):
    """Why a cell could not be measured here, in one line."""


@dataclass(frozen=True)
class Workshop:
    """Where and with what cells are measured: the sandbox, and the words that load what the bundle brings."""

    sandbox: Sandbox
    plugins: tuple[str, ...] = ()

    def machine(self) -> Line:
        """The run line of a tiny sweep here: processor, build, protocol. Raises BundleError where the program fails."""
        words = ["run", "-v", EXACT, "--measure", "memory", "--length", "16", "--heads", "1", "--head-dim", "8"]
        try:
            return self._rows(words, "machine.jsonl", 10 * START)[0]
        except NotMeasured as error:
            raise BundleError(f"attnbench does not measure here: {error}") from None

    def command(self, cell: Line, run: Line) -> list[str]:
        """The words of `attnbench run` that measure the cell. Raises NotMeasured where this program has no such cell."""
        config = {name: value for name, value in run["config"].items() if name != "python"}  # folders of the other machine
        file = self.sandbox.folder / "one.jsonl"
        file.unlink(missing_ok=True)
        with file.open("x", encoding="utf-8") as new:  # not through a link
            new.writelines(json.dumps(sealed(line)) + "\n" for line in ({**run, "config": config}, cell))
        done = ask(self.sandbox, ["repro", str(file), cell["cell"], "--print", *self.plugins])
        try:
            words = shlex.split(done.out)
        except ValueError:
            words = []
        if done.code or words[:2] != ["attnbench", "run"] or "--seed" not in words:
            raise NotMeasured(f"this program makes no such cell: {plain(done.last_line)}")
        return words[1:]

    def price(self, words: list[str]) -> float:
        """The forecast of the command in seconds. Raises NotMeasured where nothing would run."""
        done = ask(self.sandbox, [*words, "-o", "priced.jsonl", "--dry-run", "--format=json"])
        if done.code:
            raise NotMeasured(plain(done.last_line))
        try:
            cells = json.loads(done.out)
            if skipped := next((c["skipped"] for c in cells if c["skipped"]), None):
                raise NotMeasured(f"skipped here: {plain(str(skipped))}")
            return sum(float(c["forecast_s"]) for c in cells)
        except (ValueError, TypeError, KeyError):
            raise NotMeasured("the program forecasts it in another form") from None

    def measured(self, words: list[str], name: str, longest_s: float) -> list[Line]:
        """The run line and the cells that the command gives. A cell may take three times `longest_s`, which was forecast. Raises NotMeasured."""
        return self._rows([*words, f"--timeout={max(1, round(3 * longest_s))}s"], name, 2 * 3 * longest_s + START)

    def _rows(self, words: list[str], name: str, timeout_s: float) -> list[Line]:
        file = self.sandbox.folder / name
        file.unlink(missing_ok=True)
        done = ask(self.sandbox, [*words, "-o", name, *QUIET], timeout_s)
        if done.code == 124:
            raise NotMeasured(f"it was not done after {timeout_s:.0f} s")
        try:
            return _read(file)
        except (OSError, ValueError, KeyError):
            raise NotMeasured(f"attnbench run ended with code {done.code}: {plain(done.last_line)}") from None


def _read(file: Path) -> list[Line]:
    if file.is_symlink() or file.stat().st_size > MOST_ROWS:
        raise ValueError("too large")
    lines = [parse_object(raw) for raw in file.read_bytes().removesuffix(b"\n").split(b"\n")]
    if lines[0]["kind"] != "run" or not all(line["kind"] in ("run", "cell") for line in lines):
        raise ValueError("no rows")
    return lines


def with_seed(words: list[str], seed: int) -> list[str]:
    """The command with another seed: other inputs, other random features."""
    at = words.index("--seed")
    return [*words[: at + 1], str(seed), *words[at + 2 :]]


def with_exact(words: list[str], exact: Line) -> list[str]:
    """The command beside exact attention with the parameters of the row `exact`."""
    params = ",".join(f"{name}={json.dumps(value) if isinstance(value, bool) else value}" for name, value in exact["variant"]["params"].items())
    return [*words[:1], "-v", f"{EXACT}[{params}]" if params else EXACT, *words[1:]]


def difference(one: dict[str, Any], other: dict[str, Any], facts: tuple[str, ...] = PROCESSOR) -> str:
    """Returns "" where two environments are of one processor and instruction set, or agree in other `facts`; else the first that differs."""
    for name in facts:
        if one.get(name) != other.get(name):
            return f"{name.replace('_', ' ')} {plain(str(one.get(name)))} there, {plain(str(other.get(name)))} here"
    return ""


def is_same_build(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two environments are of one processor and of one build of one commit, in which the same seed gives the same bits."""
    return bool(one.get("commit")) and one.get("dirty") is False and not difference(one, other, (*PROCESSOR, *BUILD))
