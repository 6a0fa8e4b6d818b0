"""The rows that may be asked: which machine and run a cell is of, what a variant is called, and which cells are of a mode."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from attnbench.plots.layout.caption import machine_words
from attnbench.plots.rows.learned import EXACT
from attnbench.plots.rows.read import OF_RUN, Cell, Params, Rows
from attnbench.plots.rows.settings import mode_of, scope_of, spec_text, without_run, without_settings
from attnbench.plots.rows.style import Styles
from attnbench.pooling.machines import Version, identity, protocol_of
from attnbench.pooling.ratios import log_times

from .deciding import Estimate

Key = tuple[str, Params]  # a variant and its parameters
CONTROLS = "control"  # the family
FREE = ("length", "seed", "repetitions", "mode", "causal")  # axes that are no part of a shape


@dataclass(frozen=True)
class Spot:
    """A run of the program on a machine: times of one spot may be divided by each other."""

    machine: str
    run: int  # its place among the runs that were read


def key_of(cell: Cell) -> Key:
    """Returns variant and parameters without the name of a run."""
    return cell.variant, without_run(without_settings(cell.params))


def shape_key(cell: Cell) -> str:
    return json.dumps({k: v for k, v in cell.axes.items() if k not in FREE}, sort_keys=True)


class Evidence:
    """Rows, and what is asked of them more than once."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._places = {head["run"]: i for i, head in reversed(list(enumerate(rows.runs)))}
        self._spots = [Spot(name, i) for i, name in enumerate(_machines(rows))]

    def place(self, cell: Cell) -> int:
        """Returns the place of the cell's run among all runs."""
        _, _, place = cell.id.partition(OF_RUN)
        return int(place) if place else self._places[cell.run]

    def spot(self, cell: Cell) -> Spot:
        return self._spots[self.place(cell)]

    def log_time(self, cell: Cell) -> Estimate | None:
        """Returns the logarithm of a time in seconds. Its variance is steadied by the other cells of its run; None of a single
        visit, which tells none."""
        return self._log_times.get(cell.id)

    @cached_property
    def _log_times(self) -> dict[str, Estimate]:
        by_run: dict[int, list[Cell]] = {}
        for cell in self.rows.of("speed"):
            if cell.ok and not cell.noisy:
                by_run.setdefault(self.place(cell), []).append(cell)
        return {
            cell.id: Estimate(time.mean, math.sqrt(time.of_mean.value), time.of_mean.degrees)
            for own in by_run.values()
            for cell, time in zip(own, log_times(own), strict=True)
            if time.of_mean.degrees > 0
        }

    def version(self, spot: Spot, cells: Iterable[Cell]) -> Version:
        """Returns what must be equal for figures of several machines to be pooled."""
        sources = {(f"{c.variant} {name}", value) for c in cells for name, value in c.sources.items()}
        return Version(protocol_of(self.rows.runs[spot.run]), tuple(sorted(sources)))

    def machines_of(self, cells: Iterable[Cell]) -> list[str]:
        return list(dict.fromkeys(self.spot(c).machine for c in cells))

    def path_of(self, cell: Cell) -> str:
        """Returns the rows file of a cell, as it was named."""
        return str(self.rows.sources[self.place(cell)])

    def of(self, measure: str, mode: str, causal: bool) -> list[Cell]:
        """Returns the cells of attention alone in this mode and under this mask, without those whose checks are red."""
        return [
            c
            for c in self.rows.of(measure)
            if mode_of(c) == mode
            and bool(c.axes.get("causal")) == causal
            and scope_of(c) == "attention"
            and c.length is not None
            and not c.is_gated
        ]

    @cached_property
    def exact(self) -> Key:
        """Returns exact attention as people run it: with the defaults that the rows tell."""
        held = [key_of(c) for c in self.rows.cells if c.variant == EXACT and c.ok]
        usual = EXACT, self._defaults(EXACT)
        return usual if usual in held or not held else max(dict.fromkeys(held), key=held.count)

    def is_control(self, key: Key) -> bool:
        """Returns whether a variant is there to be compared with, such as a mean of all values, and nothing to take."""
        return self._styles.family(key[0]) == CONTROLS

    def label(self, key: Key) -> str:
        """Returns `linformer[rank=16]`, as the command line takes it: with the parameters that are not the default."""
        name, params = key
        usual = dict(self._defaults(name))
        return spec_text(name, [(k, v) for k, v in params if usual.get(k) != v])

    def _defaults(self, variant: str) -> Params:
        if variant not in {c.variant for c in self.rows.cells}:
            return ()
        return without_run(self._styles.defaults(variant))

    @cached_property
    def _styles(self) -> Styles:
        return Styles(self.rows)


def _machines(rows: Rows) -> list[str]:
    """Returns the machine of each run in words; machines that the same words describe are numbered."""
    told: dict[str, str] = {}
    alike: dict[str, int] = {}
    names = []
    for head in rows.runs:
        env = head.get("environment") or {}
        mark = identity(env)
        if mark not in told:
            words = machine_words(env)
            alike[words] = alike.get(words, 0) + 1
            told[mark] = words if alike[words] == 1 else f"{words} ({alike[words]})"
        names.append(told[mark])
    return names
