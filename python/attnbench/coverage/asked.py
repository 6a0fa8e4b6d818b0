"""What a sweep asks for: its cells with their forecasts, as `attnbench run --dry-run` prints them, gathered
into units of one variant at one setting."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._place import program
from ..plots.rows.read import Cell, Params, canonical

OF_SEARCH = ("steps", "stretch")  # settings of training in which a short training of a search differs
REPEATED = ("seed", "repetitions")  # axes that repeat a measurement rather than change what is measured
Key = tuple[Any, ...]


class ProgramError(Exception):
    """What the program said, in one line, and its exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def output_of(*words: str) -> str:
    """Returns what `attnbench WORDS...` prints. Raises ProgramError where it fails or is not there."""
    path = str(program())
    try:
        done = subprocess.run([path, *words], capture_output=True, text=True)
    except OSError as error:
        raise ProgramError(f"cannot start '{path}': {error.strerror}", 6) from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no word"]
        raise ProgramError(lines[-1].removeprefix("attnbench: ").removeprefix("error: "), done.returncode)
    return done.stdout


@dataclass(frozen=True)
class Setting:
    """What is measured, apart from the variant: the measure, the task, the axes that do not repeat, the settings of
    training that are not tuned."""

    measure: str
    task: str | None
    task_params: Params
    axes: Params
    training: Params


@dataclass
class Unit:
    """One variant at one setting: the cells of all seeds, with the search of settings before them."""

    variant: str
    params: Params
    family: str
    setting: Setting
    axes: dict[str, Any]  # of its first cell
    training: dict[str, Any]
    raw_params: dict[str, Any]
    raw_task: dict[str, Any] | None
    tuned: tuple[str, ...] = ()
    choices: dict[str, list[Any]] = field(default_factory=dict)  # of each tuned setting, in the order of the sweep
    is_halved: bool = False
    seconds: dict[int, float] = field(default_factory=dict)  # forecast of each seed, its share of the whole sweep
    search_s: float = 0.0  # of the short trainings of the search
    source: dict[str, str] = field(default_factory=dict)
    skip: str | None = None  # why it cannot run

    @property
    def key(self) -> Key:
        return self.variant, self.params, self.setting

    @property
    def price(self) -> float:
        """Returns the forecast of the whole unit, in seconds."""
        return sum(self.seconds.values()) + self.search_s

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.seconds)


def setting_of_cell(cell: Cell) -> Setting:
    """The setting of a row's cell."""
    return _setting(cell.measure, cell.task, cell.task_params, cell.axes, cell.training, cell.tuned)


def _setting(
    measure: str,
    task: str | None,
    task_params: Params,
    axes: dict[str, Any],
    training: dict[str, Any],
    tuned: Iterable[str],
) -> Setting:
    fixed = {k: v for k, v in axes.items() if k not in REPEATED}
    kept = {k: v for k, v in training.items() if k not in set(tuned)}
    return Setting(measure, task, task_params, canonical(fixed), canonical(kept))


def planned(words: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the cells of `attnbench run WORDS... --dry-run`. Raises ProgramError."""
    printed = output_of("run", *words, "--dry-run", "--format", "json")
    cells: list[dict[str, Any]] = json.loads(printed)
    return cells


def catalogue() -> dict[str, dict[str, Any]]:
    """Returns what `attnbench list` knows of each variant, by its name, in the order of the catalogue."""
    return {v["name"]: v for v in json.loads(output_of("list", "variants", "--json"))["variants"]}


def units_of(cells: Iterable[dict[str, Any]], families: dict[str, str]) -> list[Unit]:
    """Gathers the cells of a plan. A short training of a search belongs to the unit whose other settings it shares."""
    units: dict[Key, Unit] = {}
    searched: dict[Key, Unit] = {}
    trials = []
    for cell in cells:
        if "trial" in cell:
            trials.append(cell)
            continue
        unit = _unit(cell, families)
        unit = units.setdefault(unit.key, unit)
        searched.setdefault(_search_key(cell), unit)
        for name in unit.tuned:
            values = unit.choices.setdefault(name, [])
            if cell["training"][name] not in values:
                values.append(cell["training"][name])
        seed = int(cell["axes"].get("seed", 0))
        seconds = float(cell.get("share_s", cell.get("forecast_s")) or 0.0)
        # A grid trains every choice with each seed; else a second cell of the seed repeats the first.
        if unit.tuned or seed not in unit.seconds:
            unit.seconds[seed] = unit.seconds.get(seed, 0.0) + seconds
    for cell in trials:
        owner = searched.get(_search_key(cell))
        if owner is None:
            continue
        if not owner.is_halved:
            owner.is_halved, owner.choices = True, {name: [] for name in owner.tuned}
        for name in owner.tuned:
            if cell["training"][name] not in owner.choices[name]:
                owner.choices[name].append(cell["training"][name])
        owner.search_s += float(cell.get("share_s", cell.get("forecast_s")) or 0.0)
    return list(units.values())


def _unit(cell: dict[str, Any], families: dict[str, str]) -> Unit:
    task, training = cell.get("task"), cell.get("training") or {}
    tuned = tuple(cell.get("tuned") or ())
    task_params = canonical(task["params"]) if task else ()
    name = cell["variant"]["name"]
    return Unit(
        variant=name,
        params=canonical(cell["variant"]["params"]),
        family=families.get(name, name),
        setting=_setting(cell["measure"], task["name"] if task else None, task_params, cell["axes"], training, tuned),
        axes=dict(cell["axes"]),
        training=dict(training),
        raw_params=dict(cell["variant"]["params"]),
        raw_task=task,
        tuned=tuned,
        source=cell.get("source") or {},
        skip=cell.get("skipped"),
    )


def _search_key(cell: dict[str, Any]) -> Key:
    """What a search's short trainings share with the trainings after them."""
    training, tuned = cell.get("training") or {}, cell.get("tuned") or ()
    kept = {k: v for k, v in training.items() if k not in (*tuned, *OF_SEARCH)}
    axes = {k: v for k, v in cell["axes"].items() if k not in REPEATED}
    task = cell.get("task") or {"name": "", "params": {}}
    what = [cell["measure"], cell["variant"], task, axes, kept]
    return (json.dumps(what, sort_keys=True),)


def asked_for(sweep: Sequence[str], specs: Sequence[str], exact: str, known: dict[str, dict[str, Any]]) -> list[Unit]:
    """Returns the units of a sweep for these variants, with those of exact attention; for all of the catalogue without specs.
    A variant that the sweep itself has keeps the parameters that the sweep gives it. Raises ProgramError."""
    families = {name: info["family"] for name, info in known.items()}
    own = units_of(planned(sweep), families)
    held = {unit.variant for unit in own}
    wanted = list(specs) or list(known)
    names = {spec for spec in wanted if spec in held} | {exact}
    units = [unit for unit in own if unit.variant in names]
    others = [spec for spec in dict.fromkeys([*wanted, exact]) if spec not in held]
    if others:
        units += units_of(planned([*sweep, *(word for spec in others for word in ("-v", spec))]), families)
    order = {name: i for i, name in enumerate(known)}
    found = {unit.key: unit for unit in units}
    return sorted(found.values(), key=lambda u: order.get(u.variant, len(order)))
