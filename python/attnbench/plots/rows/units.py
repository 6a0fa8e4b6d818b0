"""Numbers in words as axes, labels and captions write them, the median of a few values, and tables
of Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Units = tuple[tuple[str, float], ...]  # suffixes with their sizes, the largest first
SECONDS: Units = ((" s", 1.0), (" ms", 1e-3), (" \u00b5s", 1e-6), (" ns", 1e-9))
BYTES: Units = ((" GiB", 2.0**30), (" MiB", 2.0**20), (" KiB", 2.0**10), (" B", 1.0))
THOUSANDS: Units = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))


def in_units(value: float, units: Units) -> str:
    """Writes three digits in the largest unit that the value fills, or in the smallest unit."""
    fitting = (unit for unit in units if value >= unit[1] * 0.9995)
    suffix, size = next(fitting, units[-1])
    return f"{value / size:.3g}{suffix}"


def seconds_text(value: float) -> str:
    return in_units(value, SECONDS)


def bytes_text(value: float) -> str:
    return in_units(value, BYTES)


def thousands_text(value: float) -> str:
    return in_units(value, THOUSANDS)


def ratio_text(value: float) -> str:
    """Writes a time as a multiple of another: `×0.5`."""
    return f"×{factor_text(value)}"


def factor_text(value: float) -> str:
    """Writes a multiple in three digits, from 100 on as a whole number: `0.5`, `1,234`."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


TEXTS = {"seconds": seconds_text, "bytes": bytes_text, "ratio": ratio_text}


def length_text(n: float) -> str:
    n = int(round(n))
    return f"{n // 1024}k" if n >= 1024 and n % 1024 == 0 else str(n)


def median(values: Sequence[float]) -> float:
    """As numpy's, NaN where a value is NaN. Of one value for each seed numpy takes twenty times as long."""
    if any(math.isnan(value) for value in values):
        return math.nan
    ordered, half = sorted(values), len(values) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table with these heads; an entry may be empty."""
    return "\n".join([_line(heads), "|" + "---|" * len(heads), *map(_line, lines)])


def _line(entries: Sequence[str]) -> str:
    return "|" + "|".join(f" {entry} " if entry else " " for entry in entries) + "|"
