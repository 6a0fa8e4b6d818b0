"""What a variant holds at a length: the counted peak of a pass or, of decoding where nothing else is told, the state. It is
counted, not sampled: machines agree, and between two measured lengths a bound stands on either side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from attnbench.plots.rows.read import Cell

from .evidence import Evidence, Key, key_of, shape_key
from .times import neighbours

ROUNDING = 1.05  # a length that fills no tile takes a little more than its share


@dataclass(frozen=True)
class Held:
    """Bytes: between `low` and `high`, which are one figure where the length was measured."""

    low: float
    high: float
    what: str  # peak or state
    lengths: tuple[int, ...]
    shape: str
    cells: tuple[Cell, ...]
    is_same: bool = True  # the shape is that of the times

    def fits(self, limit: int) -> str:
        """Returns within, over, undecided, or, of another shape, unknown."""
        if not self.is_same:
            return "unknown"
        if self.high <= limit:
            return "within"
        return "over" if self.low > limit else "undecided"


def memory(evidence: Evidence, mode: str, causal: bool, length: int, shape: str) -> dict[Key, Held]:
    """Returns what each variant holds: at `shape` where it was measured, else at the shape that most variants share."""
    peaks = [c for c in evidence.of("memory", mode, causal) if c.ok]
    found = _of(peaks, "peak_bytes", "peak", length, shape)
    if mode == "decode":
        states = [c for c in evidence.of("speed", mode, causal) if c.ok and c.metric("state_bytes") is not None]
        found = _of(states, "state_bytes", "state", length, shape) | found
    return found


def _of(cells: Iterable[Cell], metric: str, what: str, length: int, shape: str) -> dict[Key, Held]:
    by_shape: dict[str, dict[Key, dict[int, list[Cell]]]] = {}
    for cell in cells:
        at = by_shape.setdefault(shape_key(cell), {}).setdefault(key_of(cell), {})
        at.setdefault(cell.length or 0, []).append(cell)
    known: dict[str, dict[Key, Held]] = {}
    for name, by_key in by_shape.items():
        held = {k: h for k, by_length in by_key.items() if (h := _at(by_length, metric, what, length, name)) is not None}
        if held:
            known[name] = held
    if shape in known:
        return known[shape]
    others = max((known[name] for name in sorted(known)), key=len, default={})
    return {key: replace(held, is_same=not shape) for key, held in others.items()}


def _at(by_length: dict[int, list[Cell]], metric: str, what: str, length: int, shape: str) -> Held | None:
    def at(n: int) -> float:
        return max(c.metric(metric) or 0.0 for c in by_length[n])

    if length in by_length:
        return Held(at(length), at(length), what, (length,), shape, tuple(by_length[length]))
    found = neighbours(by_length, length)
    if found is None:
        return None
    left, right, share = found
    ends = at(left), at(right)
    if min(ends) <= 0:
        return None
    # A sum of powers of the length, such as a peak, lies below its chord between logarithms.
    chord = ends[0] ** (1 - share) * ends[1] ** share
    high = max(min(ROUNDING * chord, max(ends)), min(ends))
    return Held(min(ends), high, what, (left, right), shape, (*by_length[left], *by_length[right]))
