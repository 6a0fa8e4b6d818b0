"""A variant's name and look everywhere: one colour for the colour-blind, marker and dash, by its
place in the catalogue. Variants too many for one panel share it by family; parameterisations of one
variant differ in weight and fill."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .read import RUN, Cell, Params, Rows, canonical, marked, run_of
from .settings import SETTING, shown, spec_text, without_run, without_settings

MOST = 7  # variants in a panel beside exact attention: as many as there are colours
JOINED = 5  # up to which small families that follow each other share a panel
TITLE = 34  # characters that a panel's title has room for


@dataclass(frozen=True)
class Group:
    title: str
    variants: tuple[str, ...]


def grouped(families: Sequence[tuple[str, Sequence[str]]]) -> list[Group]:
    """Panels of variants for families in the catalog's order; "" is no family's name."""
    everything = [name for _, names in families for name in names]
    if len(everything) <= MOST:
        return [Group("", tuple(everything))]
    out: list[Group] = []
    joinable = False
    for family, names in families:
        parts = math.ceil(len(names) / MOST)
        both = f"{out[-1].title}, {family}" if joinable else ""
        few = joinable and len(out[-1].variants) + len(names) <= JOINED
        if few and len(both) <= TITLE:
            out[-1] = Group(both, (*out[-1].variants, *names))
            continue
        size = math.ceil(len(names) / parts)
        for part in range(parts):
            own = tuple(names[part * size : (part + 1) * size])
            title = family if parts == 1 else f"{family} ({part + 1} of {parts})"
            out.append(Group(title if family else f"{own[0]} to {own[-1]}", own))
        joinable = parts == 1 and bool(family)
    return out


INK, GREY, GRID, BEHIND = "#222222", "#6b6b6b", "#e4e4e4", "#cccccc"
# After Okabe and Ito's colour-blind-safe set, moved apart in lightness: they differ in grey too.
# The first of each list is exact attention's alone.
COLORS = ("#000000", "#E89A00", "#0B559F", "#CC4414", "#2AAE84", "#A9559B", "#6FBBE8", "#7A6A00")
# No cross, which marks failures, and no arrow to a side, which marks what lies outside a panel.
MARKERS = ("o", "s", "^", "D", "v", "P", "d", "p", "*", "h")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (2.6, 1.3)),
    (0, (1.1, 1.1)),
    (0, (8, 2)),
    (0, (4, 1.2, 1.2, 1.2, 1.2, 1.2)),
    (0, (1.1, 2.2)),
)
# Parameterisations of one variant, defaults first.
FILLS = ("full", "none", "left", "bottom", "top")


@dataclass(frozen=True)
class Look:
    color: str
    marker: str
    dash: Any
    fill: str = "full"
    width: float = 1.7

    @property
    def ink(self) -> tuple[float, float, float]:
        """The colour for text: darkened until it reads well on white."""
        from matplotlib.colors import to_rgb  # slow to import, and needed only to draw

        rgb = to_rgb(self.color)
        light = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]
        dark = min(1.0, 0.42 / light) if light else 1.0
        return rgb[0] * dark, rgb[1] * dark, rgb[2] * dark

    def hollow(self) -> dict[str, Any]:
        """Keyword arguments of points that no line joins, as of trainings that were cut off."""
        own = {"linestyle": "none", "fillstyle": "none", "markerfacecolor": "white"}
        return {**self.line(), **own}

    def line(self) -> dict[str, Any]:
        """Keyword arguments of a matplotlib line."""
        return {
            "color": self.color,
            "marker": self.marker,
            "linestyle": self.dash,
            "linewidth": self.width,
            "markersize": 5.4 if self.marker == "*" else 4.6,
            "markeredgewidth": 1.1,
            "fillstyle": self.fill,
            "markerfacecoloralt": "white",
            "markerfacecolor": "white" if self.fill == "none" else self.color,
        }


def exact(parameterisation: int) -> Look:
    return _parameterised(COLORS[0], MARKERS[0], 0, parameterisation)


def look(place: int, color: int, parameterisation: int = 0) -> Look:
    """Of the variant at `place` among all but exact attention. Markers and dashes are 9 and 8, so
    that of 72 variants no two share both, and those next to each other share neither."""
    marker = MARKERS[1 + place % (len(MARKERS) - 1)]
    return _parameterised(COLORS[1 + color], marker, 1 + place, parameterisation)


def _parameterised(color: str, marker: str, dash: int, index: int) -> Look:
    turn = dash + 3 * (index // len(FILLS))
    width = 1.7 if index == 0 else 1.1
    return Look(color, marker, DASHES[turn % len(DASHES)], FILLS[index % len(FILLS)], width)


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
        # Learning curves show trainings whose scores are left out: their variants need a look too.
        for cell in (*rows.cells, *rows.unlearned):  # rows without a list: by first appearance
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
        count = len(COLORS) - 1
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
            return exact(parameterisation)
        return look(self._number[variant], self._color[variant], parameterisation)

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
        default = dict(without_run(self._defaults[variant]))

        def order(params: Params) -> tuple[Any, ...]:
            own = dict(without_run(params))
            plain = dict(without_settings(tuple(own.items())))
            # Rows leave out what a parameter is by default that was added when rows existed.
            return default | plain != default, [(k, number(v)) for k, v in own.items()]

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
        spec = spec_text(variant, without_run(params))
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


THIN, BOLD = 0.9, 2.2  # points, the lines of the smallest and of the largest parameter
HALVES = ("left", "bottom", "top")


def families(series: list[Series]) -> list[Series]:
    """The series ordered by parameter within a variant, and restyled."""
    members: dict[str, list[Series]] = {}
    for s in series:
        members.setdefault(s.variant, []).append(s)
    return [
        s
        for own in members.values()
        for s in (_graded(sorted(own, key=_by_value)) if len(own) > 1 else own)
    ]


def tag(series: Series) -> str:
    """What tells a series from its family: `64` of `linformer rank=64`."""
    words = series.label.removeprefix(series.variant).split()
    told = [word for word in words if not word.startswith("(")]
    if len(told) == 1:  # the legend names the parameter
        words[0] = told[0].partition("=")[2] or told[0]
    return " ".join(words)


def _graded(own: list[Series]) -> list[Series]:
    fills = ["none", *(HALVES[min(i, 2)] for i in range(len(own) - 2)), "full"]
    widths = np.linspace(THIN, BOLD, len(own))
    return [
        replace(s, look=replace(s.look, fill=fill, width=float(width)))
        for s, fill, width in zip(own, fills, widths)
    ]


def _by_value(series: Series) -> Any:
    return [(name, number(value)) for name, value in series.params]
