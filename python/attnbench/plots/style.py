"""One colour, marker and dash per variant everywhere, by the variant's place in the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from . import looks
from .groups import Group, grouped
from .looks import Look
from .rows import Cell, Params, Rows, canonical, marked
from .runs import RUN, run_of
from .trained import SETTING, shown, without_settings

BASELINE = "full"
TILED = "tiled"  # the default kernel of exact attention


@dataclass(frozen=True)
class Series:
    """One parameterisation of one variant in a figure: its label, look and cells."""

    variant: str
    params: Params
    label: str
    look: Look
    cells: tuple[Cell, ...]

    @property
    def key(self) -> tuple[str, Params]:
        return self.variant, self.params

    @property
    def columns(self) -> dict[str, str]:
        """Names the series in a table."""
        return {"series": self.label, "variant": self.variant}

    def where(self, wanted: Callable[[Cell], bool]) -> Series:
        return replace(self, cells=tuple(filter(wanted, self.cells)))


def among(cells: Iterable[Cell], series: Iterable[Series]) -> list[Series]:
    """Restricts each series to those of its cells that are in `cells`."""
    held = {c.id for c in cells}
    return [s.where(lambda cell: cell.id in held) for s in series]


class Styles:
    """The order of the variants and what follows from it."""

    def __init__(self, rows: Rows) -> None:
        self._place: dict[str, int] = {}
        self._family: dict[str, str] = {}
        self._defaults: dict[str, Params] = {}
        for run in rows.runs:
            listed = [v for v in run.get("variants") or [] if isinstance(v, dict) and "name" in v]
            for index, info in enumerate(listed):
                name = marked(info["name"])
                self._place.setdefault(name, int(info.get("order", index)))
                self._family.setdefault(name, str(info.get("family") or ""))
                if isinstance(info.get("params"), dict):
                    self._defaults.setdefault(name, canonical(info["params"]))
        held: dict[str, list[Params]] = {}
        for cell in rows.cells:  # rows without a list: by first appearance
            self._place.setdefault(cell.variant, max(self._place.values(), default=-1) + 1)
            own = held.setdefault(cell.variant, [])
            own += [] if cell.params in own else [cell.params]
        asked = _asked(rows)
        for variant, own in held.items():
            if variant not in self._defaults:
                self._defaults[variant] = _usual(variant, own, asked)

        self._number = {v: i for i, v in enumerate(v for v in self._ordered() if v != BASELINE)}
        self.groups = self._grouped([v for v in self._number if v in held])
        self._color: dict[str, int] = {}
        for group in self.groups:
            self._choose_colors(group)

    def _ordered(self) -> list[str]:
        return sorted(self._place, key=lambda v: self._place[v])

    def _grouped(self, variants: list[str]) -> list[Group]:
        families: dict[str, list[str]] = {}
        for variant in variants:
            families.setdefault(self._family.get(variant, ""), []).append(variant)
        return grouped(list(families.items()))

    def _choose_colors(self, group: Group) -> None:
        """Each variant has the colour of its place in the catalog, unless one before it in its
        panel has it: then the next that is free."""
        count = len(looks.COLORS) - 1
        taken: set[int] = set()
        for variant in group.variants:
            wanted = [(self._number[variant] + step) % count for step in range(count)]
            self._color[variant] = next((c for c in wanted if c not in taken), wanted[0])
            taken.add(self._color[variant])

    def place(self, variant: str) -> int:
        return self._place[variant]

    def defaults(self, variant: str) -> Params:
        """Returns its default parameters as far as the rows tell them."""
        return self._defaults.get(variant, ())

    def family(self, variant: str) -> str:
        """Returns its family's name, or "" where the rows do not say."""
        return self._family.get(variant, "")

    def kind(self, variant: str) -> str:
        """Returns what many variants are grouped by: the family, of a stack of layers that it is one."""
        return "stacks" if "+" in variant else self.family(variant) or "other"

    def look(self, variant: str, parameterisation: int = 0) -> Look:
        if variant == BASELINE:
            return looks.exact(parameterisation)
        return looks.look(self._number[variant], self._color[variant], parameterisation)

    def series(self, cells: list[Cell]) -> list[Series]:
        """Groups cells by variant and parameters: catalog order, default parameters first."""
        groups: dict[tuple[str, Params], list[Cell]] = {}
        for cell in cells:
            groups.setdefault((cell.variant, cell.params), []).append(cell)
        by_variant: dict[str, list[Params]] = {}
        for variant, params in groups:
            by_variant.setdefault(variant, []).append(params)
        out = []
        for variant in sorted(by_variant, key=self.place):
            all_params = sorted(by_variant[variant], key=self._params_order(variant))
            varying = {
                k
                for params in all_params
                for k, v in params
                if k.startswith(SETTING)
                or (k == "as" and v != "paper")  # another function than the name tells
                or any(dict(other).get(k) != v for other in all_params)
            }
            for index, params in enumerate(all_params):
                label = " ".join([variant, *(_shown(k, v) for k, v in params if k in varying)])
                out.append(
                    Series(
                        variant,
                        params,
                        label,
                        self.look(variant, index),
                        tuple(groups[variant, params]),
                    )
                )
        return out

    def baseline(self, series: list[Series], run: str | None = None) -> Series | None:
        """Exact attention as people run it, `full` with its default parameters, of that run."""
        full = [s for s in series if s.variant == BASELINE]
        return next((s for s in full if run_of(s.params) == run), full[0] if full else None)

    def baselines(self, series: list[Series]) -> list[Series]:
        """The baseline of every run."""
        found = {run_of(s.params): self.baseline(series, run_of(s.params)) for s in series}
        return list({s.key: s for s in found.values() if s is not None}.values())

    def _params_order(self, variant: str) -> Any:
        default = dict(self._defaults[variant])
        default.pop(RUN, None)

        def order(params: Params) -> tuple[Any, ...]:
            own = {k: v for k, v in params if k != RUN}
            plain = dict(without_settings(tuple(own.items())))
            return plain != default, [(k, number(v)) for k, v in own.items()]

        return order


def _asked(rows: Rows) -> list[str]:
    """Returns the variants that the run lines ask for, as `name[parameter=value,...]`, in order."""
    configs = [run.get("config") or {} for run in rows.runs]
    sweeps = [sweep for config in configs for sweep in config.get("sweeps") or []]
    return [spec for sweep in sweeps for spec in sweep.get("variants") or []]


def _usual(variant: str, held: list[Params], asked: list[str]) -> Params:
    """Returns what stands for a variant's defaults in rows whose run line does not hold them: for
    exact attention its kernel that computes in tiles, else what the run line asks for first. How
    often something was measured says nothing: a search measures the nearer rival more often."""

    def rank(params: Params) -> tuple[bool, int]:
        words = ",".join(f"{k}={v}" for k, v in params if k != RUN)
        spec = f"{variant}[{words}]" if words else variant
        other = variant == BASELINE and dict(params).get("kernel", TILED) != TILED
        return other, asked.index(spec) if spec in asked else len(asked)

    return min(held, key=rank)


def number(text: str) -> tuple[float, str]:
    try:
        return float(text), text
    except ValueError:
        return 0.0, text


def _shown(key: str, value: str) -> str:
    """`features=64`, but just `tiled`: a word tells by itself what it is; a run in brackets."""
    if key == RUN:
        return f"({value})"
    plain = value.isalpha() and value not in ("true", "false")
    return value if plain else f"{shown(key)}={value}"
