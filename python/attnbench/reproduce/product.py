"""Calls of the program attnbench: sweeps, its analyses of rows, and one variant on given arrays.

Runs the sweeps and programs of entries into rows files.

Rows are written into NAME.part.jsonl, which the next call goes on with, and get their name when
the sweep has ended: rows of that name are whole, and are kept.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from attnbench.peers.sides import PROGRAM, InstallError, built_program
from attnbench.plots.rows.read import parse_object

from .entries import INTERRUPTED, IO, ROOT, USAGE, Entry, Measurement, MissingError, ReproduceError

NO_SUCH_ROWS = 4  # exit code of `fit`
RED_CHECK = 5  # exit code of `check`


@dataclass(frozen=True)
class Product:
    path: Path = PROGRAM

    @staticmethod
    def built() -> Product:
        try:
            return Product(built_program())
        except InstallError as error:
            raise ReproduceError(str(error), 1) from None

    def sweep(self, words: list[str], what: str) -> int:
        """Runs `attnbench run`; returns 0, or 1 where a cell failed. Progress goes to stderr."""
        done = subprocess.run([self.path, "run", *words], cwd=ROOT, stdout=subprocess.DEVNULL)
        if done.returncode in (130, 143, -2, -15):
            raise ReproduceError(f"{what}: interrupted; the same command goes on", INTERRUPTED)
        if done.returncode not in (0, 1):
            code = done.returncode if done.returncode > 0 else 1
            raise ReproduceError(f"{what}: attnbench ended with exit code {code} (see above)", code)
        return done.returncode

    def growths(self, rows: Path, *options: str) -> list[dict[str, Any]]:
        """Exponents of time and memory by length, with intervals: `attnbench fit`."""
        return self._lines("fit", str(rows), *options)

    def crossings(self, rows: Path) -> list[dict[str, Any]]:
        """Of the rows of a search: `attnbench table --crossings`."""
        return self._lines("table", str(rows), "--crossings")

    def environment(self) -> dict[str, Any]:
        """Machine and build, as a run line of rows holds them."""
        sweep = ["-v", "mean", "--measure", "memory", "--length", "8", "-o", "-", "--quiet"]
        found = json.loads(self._text("run", *sweep).splitlines()[0])["environment"]
        return {name: value for name, value in found.items() if name != "calibration"}

    def apply(
        self,
        variant: str,
        arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
        *options: str,
        weights: dict[str, np.ndarray] | None = None,
        gates: dict[str, np.ndarray] | None = None,
    ) -> np.ndarray:
        """The output of a variant for q, k, v of [batch, heads, len, head_dim]; `weights` replaces
        learned or random ones by name, `gates` are what a gated variant reads beside q, k and v."""
        with tempfile.TemporaryDirectory() as folder:
            words = ["--variant", variant, *options]
            for name, array in zip("qkv", arrays):
                np.save(Path(folder, f"{name}.npy"), np.ascontiguousarray(array))
                words += [f"--{name}", f"{folder}/{name}.npy"]
            for option, named in (("set", weights), ("input", gates)):
                for name, array in (named or {}).items():
                    path = f"{folder}/{option}-{name}.npy"
                    np.save(path, np.ascontiguousarray(array))
                    words += [f"--{option}", f"{name}={path}"]
            self._text("apply", *words, "--out", f"{folder}/out.npy")
            return np.load(Path(folder, "out.npy"))

    def weights(
        self, variant: str, q: np.ndarray, k: np.ndarray, *options: str, **more: Any
    ) -> np.ndarray:
        """The attention weights [len, len] that a variant of convex outputs gives to each key: its
        outputs for values that are columns of the identity, head_dim of them at a time. q and k
        are [len, head_dim]; the copies differ in the values alone."""
        n, dim = k.shape
        columns = np.zeros((-(-n // dim), 1, n, dim), k.dtype)
        for column in range(n):
            columns[column // dim, 0, column, column % dim] = 1
        copies = [np.broadcast_to(x, columns.shape[:2] + x.shape) for x in (q, k)]
        found = self.apply(variant, (*copies, columns), *options, **more)
        return found[:, 0].transpose(1, 0, 2).reshape(len(q), -1)[:, :n]

    def passes(self, variant: str, check: str, *options: str) -> dict[str, bool]:
        """Whether a variant keeps a contract check, by the name that the line gives it, which tells
        the precision too: `attnbench check`."""
        words = ["check", variant, *options, "--color", "never"]
        found = {}
        for line in self._text(*words, allowed=(0, RED_CHECK)).splitlines():
            state, name, told = [*line.split(maxsplit=2), "", "", ""][:3]
            if name == variant and told.startswith(check):
                found[told.partition("  ")[0]] = state == "ok"
        return found

    def _lines(self, *words: str) -> list[dict[str, Any]]:
        return json.loads(self._text(*words, "--format", "json"))

    def _text(self, *words: str, allowed: tuple[int, ...] = (0,)) -> str:
        try:
            done = subprocess.run([self.path, *words], capture_output=True, text=True, cwd=ROOT)
        except OSError as error:
            what = f"{self.path} cannot be run: {error.strerror}"
            raise ReproduceError(f"{what}; scripts/reproduce builds it", IO) from None
        if done.returncode == NO_SUCH_ROWS:
            raise MissingError(done.stderr.strip().splitlines()[-1])
        if done.returncode not in allowed:
            said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            code = done.returncode if done.returncode in (1, USAGE, 5, IO) else 1
            raise ReproduceError(said, code)
        return done.stdout


SCHEMA = "attnbench-reproduction/1"  # of the lines that programs write


def say(words: str) -> None:
    print(f"reproduce: {words}", file=sys.stderr, flush=True)


def measure(
    entry: Entry, product: Product, folder: Path, *, small: bool = False, force: bool = False
) -> int:
    """Makes the rows of an entry in `folder`; returns 1 where a cell failed, else 0."""
    worst = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in entry.measurements:
            rows = one.rows(folder)
            if rows.exists() and not force:
                check_source(entry, one, folder)
                say(f"{entry.id}: {rows.name} is there and is kept; --force measures it again")
                continue
            part = rows.with_suffix(".part.jsonl")
            say(f"{entry.id}: {one.source.name}")
            if one.is_program:
                _run_program(one, product, part, small)
            else:
                worst = max(worst, _run_sweep(entry, one, product, part, small, force))
            part.replace(rows)
    except OSError as error:
        raise ReproduceError(f"'{error.filename}': {error.strerror}", IO) from None
    return worst


def check_source(entry: Entry, one: Measurement, folder: Path) -> None:
    """Rows are of the sweep file as it is now; of a program only that it wrote them."""
    rows = one.rows(folder)
    with rows.open("rb") as file:
        head = _object(file.readline(), rows)
    now = one.source.read_text(encoding="utf-8")
    if one.is_program:
        told = head.get("schema") == SCHEMA
    else:
        told = (head.get("config") or {}).get("sweep_file") == now
    if not told:
        raise ReproduceError(f"{_short(rows)} is of another {one.source.name}; "
                             f"scripts/reproduce run {entry.id} --force measures it anew")  # fmt: skip


def _run_sweep(
    entry: Entry, one: Measurement, product: Product, part: Path, small: bool, force: bool
) -> int:
    words = [_short(one.source), *one.words(small)]
    words += ["-o", _short(part), "--yes", *(["--force"] if force else [])]
    return product.sweep(words, f"{entry.id}: {one.source.name}")


def _run_program(one: Measurement, product: Product, part: Path, small: bool) -> None:
    module = load(one.source)
    head = {
        "schema": SCHEMA,
        "kind": "run",
        "program": one.source.name,
        "small": small,
        "environment": product.environment(),
        "started_at": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    lines = [head]
    for record in module.measure(product, small):
        lines.append({"schema": SCHEMA, "kind": "record", **record})
    text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
    part.write_text(text, encoding="utf-8")


def load(path: Path) -> ModuleType:
    """The program or verdict of an entry, as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_records(rows: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The head and the records of the rows of a program."""
    lines = rows.read_bytes().removesuffix(b"\n").split(b"\n")
    head, *records = [_object(line, rows) for line in lines]
    for line in (head, *records):
        if line.get("schema") != SCHEMA:
            raise ReproduceError(f"{_short(rows)}: schema is {line.get('schema')!r}, not {SCHEMA!r}")
    return head, records


def _object(line: bytes, rows: Path) -> dict[str, Any]:
    try:
        return parse_object(line)
    except ValueError as error:
        raise ReproduceError(f"{_short(rows)}: {error}") from None


def _short(path: Path) -> str:
    """Relative to the repository, so that rows name no folder of this machine."""
    return os.path.relpath(path, ROOT) if path.is_relative_to(ROOT) else str(path)
