"""One colour, marker and dash per variant everywhere, by the variant's place in the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.colors import to_rgb
from matplotlib.patheffects import AbstractPathEffect, withStroke

from .rows import Cell, Params, Rows, canonical
from .runs import RUN, run_of
from .trained import SETTING, shown, without_settings

BASELINE = "full"
INK, GREY, GRID = "#222222", "#6b6b6b", "#e4e4e4"
# After Okabe and Ito's colour-blind-safe set, moved apart in lightness: they differ in grey too.
COLORS = ("#000000", "#E89A00", "#0B559F", "#CC4414", "#2AAE84", "#A9559B", "#6FBBE8", "#7A6A00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
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
FILLS = (
    "full",
    "none",
    "left",
    "bottom",
    "top",
)  # parameterisations of one variant, defaults first


def halo() -> list[AbstractPathEffect]:
    """A white edge that keeps text readable over lines."""
    return [withStroke(linewidth=2.4, foreground="white")]


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
        rgb = to_rgb(self.color)
        light = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]
        dark = min(1.0, 0.42 / light) if light else 1.0
        return rgb[0] * dark, rgb[1] * dark, rgb[2] * dark

    def line(self) -> dict[str, Any]:
        """Keyword arguments of a matplotlib line."""
        return {
            "color": self.color,
            "marker": self.marker,
            "linestyle": self.dash,
            "linewidth": self.width,
            "markersize": 4.6,
            "markeredgewidth": 1.1,
            "fillstyle": self.fill,
            "markerfacecoloralt": "white",
            "markerfacecolor": "white" if self.fill == "none" else self.color,
        }


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


class Styles:
    """The order of the variants and what follows from it."""

    def __init__(self, rows: Rows) -> None:
        self._place: dict[str, int] = {}
        self._defaults: dict[str, Params] = {}
        for run in rows.runs:
            listed = [v for v in run.get("variants") or [] if isinstance(v, dict) and "name" in v]
            for index, info in enumerate(listed):
                self._place.setdefault(info["name"], int(info.get("order", index)))
                if isinstance(info.get("params"), dict):
                    self._defaults.setdefault(info["name"], canonical(info["params"]))
        counts: dict[str, dict[Params, int]] = {}
        for cell in rows.cells:  # rows without a list: by first appearance
            self._place.setdefault(cell.variant, max(self._place.values(), default=-1) + 1)
            own = counts.setdefault(cell.variant, {})
            own[cell.params] = own.get(cell.params, 0) + (cell.measure != "fidelity")
        for variant, own in counts.items():  # rows without defaults: what was measured most
            self._defaults.setdefault(variant, max(own, key=lambda params: own[params]))

    def place(self, variant: str) -> int:
        return self._place[variant]

    def look(self, variant: str, parameterisation: int = 0) -> Look:
        place = self._place[variant]
        # Past eight variants the colours repeat with another marker and dash.
        shift = place // len(COLORS)
        return Look(
            COLORS[place % len(COLORS)],
            MARKERS[(place + 3 * shift) % len(MARKERS)],
            DASHES[(place + shift) % len(DASHES)],
            FILLS[parameterisation % len(FILLS)],
            1.7 if parameterisation == 0 else 1.1,
        )

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

    def _params_order(self, variant: str) -> Any:
        default = dict(self._defaults[variant])
        default.pop(RUN, None)

        def order(params: Params) -> tuple[Any, ...]:
            own = {k: v for k, v in params if k != RUN}
            plain = dict(without_settings(tuple(own.items())))
            return plain != default, [(k, number(v)) for k, v in own.items()]

        return order


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
