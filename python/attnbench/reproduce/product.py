"""Calls of the program attnbench: sweeps, its analyses of rows, and one variant on given arrays."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from attnbench.peers.install import PROGRAM, InstallError, built_program

from .entries import ROOT
from .fault import INTERRUPTED, IO, USAGE, MissingError, ReproduceError

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
