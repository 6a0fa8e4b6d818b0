"""The noise floor that the run line of a file quotes (`attnbench noise`): the rule of the tables,
see harness/tables/floors.h."""

from __future__ import annotations

from typing import Any

from .caption import unique
from .rows import Cell, Rows

MOST_SHOWN = 8  # floors in one note
Known = list[dict[str, Any]]


class Floors:
    """The floors of each run, by its id."""

    def __init__(self, runs: list[dict[str, Any]]) -> None:
        self._of_run: dict[str, Known] = {}
        for head in runs:
            if head.get("noise_floor"):
                self._of_run.setdefault(head["run"], head["noise_floor"])

    def _known(self, cell: Cell) -> Known:
        mode, threads = cell.axes.get("mode", "forward"), cell.axes.get("threads", 1)
        known = self._of_run.get(cell.run, [])
        return [f for f in known if (f["mode"], f["threads"]) == (mode, threads)]

    def share(self, cell: Cell) -> float | None:
        """The floor of the cell's mode and threads at the nearest measured length; of two that are
        as near, the higher one. None where none was measured."""
        here = cell.length
        if here is None:
            return None
        found = [
            (max(f["length"] / here, here / f["length"]), -f["share"]) for f in self._known(cell)
        ]
        return -min(found)[1] if found else None

    def shares(self, cells: tuple[Cell, ...]) -> dict[int, float]:
        """By length, of cells of one mode and number of threads; of several runs the highest."""
        out: dict[int, float] = {}
        for cell in cells:
            share = self.share(cell)
            if share is not None and cell.length is not None:
                out[cell.length] = max(share, out.get(cell.length, 0.0))
        return out

    def note(self, cells: list[Cell]) -> str:
        """A sentence for a caption; empty where no run of these cells quotes a floor."""
        told = unique(_sentence(c, self._known(c)) for c in cells if c.run in self._of_run)
        return " ".join(told)


def _sentence(cell: Cell, known: Known) -> str:
    mode, threads = cell.axes.get("mode", "forward"), cell.axes.get("threads", 1)
    if not known:
        plural = "" if threads == 1 else "s"
        return (
            f"No noise floor of this machine is known for {mode} with {threads} thread{plural} "
            "(attnbench noise)."
        )
    known = sorted(known, key=lambda f: int(f["length"]))
    texts = [f"{100 * f['share']:.1f} % at {f['length']}" for f in known]
    if len(texts) > MOST_SHOWN:
        shares = sorted(f["share"] for f in known)
        texts = [
            f"{100 * shares[0]:.1f} to {100 * shares[-1]:.1f} % at {known[0]['length']} to "
            f"{known[-1]['length']}"
        ]
    date = max(str(f["measured_at"])[:10] for f in known)
    return f"Noise floor of this machine, {mode}: {', '.join(texts)} (attnbench noise, {date})."


def floors_of(rows: Rows) -> Floors:
    return Floors(rows.runs)
