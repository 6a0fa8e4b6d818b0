"""What a verdict reads: the rows of its entry, the program's analyses of them, published figures."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from attnbench.plots.rows.read import Cell, Rows, RowsError, UnreadableError, read_rows

from .entries import IO, Entry, Measurement, MissingError, ReproduceError
from .estimates import Estimate
from .judging import Verdict
from .product import Product, load, read_records


class Evidence:
    """`folder` holds the rows files of the entry."""

    def __init__(self, entry: Entry, folder: Path, product: Product) -> None:
        self.entry, self.folder, self.product = entry, folder, product
        self._rows = cache(self._read)

    def published(self, name: str) -> dict[str, Any]:
        return self.entry.published[name].values

    def path(self, name: str) -> Path:
        path = self.folder / f"{name}.jsonl"
        if not path.exists():
            raise MissingError(f"{path.name} is not measured")
        return path

    def rows(self, name: str) -> Rows:
        return self._rows(name)

    def _read(self, name: str) -> Rows:
        try:
            return read_rows([self.path(name)])
        except RowsError as error:
            code = IO if isinstance(error, UnreadableError) else 2
            raise ReproduceError(str(error), code) from None

    def cells(self, name: str, variant: str = "", **wanted: Any) -> list[Cell]:
        """The cells whose measure, axes, parameters or training settings have these values."""
        return [
            cell
            for cell in self.rows(name).cells
            if variant in ("", cell.variant)
            and all(_has(cell, key, value) for key, value in wanted.items())
        ]

    def cell(self, name: str, variant: str, **wanted: Any) -> Cell:
        """The one ok cell; MissingError where it is not there or has no figure."""
        found = self.cells(name, variant, **wanted)
        told = f"{variant} {' '.join(f'{k}={v}' for k, v in wanted.items())}".strip()
        if len(found) != 1:
            raise MissingError(f"{len(found)} rows of {told} in {name}.jsonl; expected one")
        if not found[0].ok:
            raise MissingError(f"{told}: {found[0].status} ({found[0].reason})")
        return found[0]

    def growth(self, name: str, variant: str, measure: str, axes: str = "", *options: str) -> Estimate:
        """The exponent of a variant's time or memory over length. `variant` is as `fit` names it, or
        without parameters where one alone has that name. `axes` is a part of what `fit` names the
        axes, `mode train`; options are those of `attnbench fit`."""
        lines = self.product.growths(self.path(name), *options)
        found = [
            line
            for line in lines
            if line["measure"] == measure
            and axes in line["axes"]
            and variant in (line["variant"], line["variant"].partition("[")[0])
        ]
        exactly = [line for line in found if line["variant"] == variant] or found
        if len(exactly) != 1:
            raise MissingError(f"{len(exactly)} growths of {variant} {measure} {axes}; expected one")
        line = exactly[0]
        if line.get("exponent") is None:
            raise MissingError(f"no growth of {variant} {measure}: {line.get('reason')}")
        reach = line.get("exponent_reach")
        half = float("inf") if reach is None else reach
        return Estimate(line["exponent"], line["exponent"] - half, line["exponent"] + half)

    def crossings(self, name: str) -> list[dict[str, Any]]:
        return self.product.crossings(self.path(name))

    def records(self, name: str, **wanted: Any) -> list[dict[str, Any]]:
        """Those of a program that have these values."""
        _, records = read_records(self.path(name))
        return [r for r in records if all(r.get(k) == v for k, v in wanted.items())]

    def record(self, name: str, **wanted: Any) -> dict[str, Any]:
        found = self.records(name, **wanted)
        if len(found) != 1:
            raise MissingError(f"{len(found)} records of {wanted} in {name}.jsonl; expected one")
        return found[0]

    def runs(self, one: Measurement) -> Rows:
        """Run lines of a rows file, for the words of where it was measured."""
        if one.is_program:
            head, _ = read_records(self.path(one.name))
            return Rows((one.rows(self.folder),), [head], [])
        return self.rows(one.name)


def _has(cell: Cell, key: str, value: Any) -> bool:
    if key in ("measure", "task"):
        return getattr(cell, key) == value
    if key in cell.axes:
        return cell.axes[key] == value
    if key in cell.training:
        return cell.training[key] == value
    told = dict(cell.params) | {f"task_{k}": v for k, v in cell.task_params}
    return told.get(key) == (value if isinstance(value, str) else _text(value))


def _text(value: Any) -> str:
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def judged(entry: Entry, folder: Path, product: Product) -> Verdict:
    """By verdict.py of the entry. Where a figure that it needs is missing, undecided."""
    try:
        return load(entry.folder / "verdict.py").verdict(Evidence(entry, folder, product))
    except MissingError as missing:
        return Verdict((), f"A figure that the claim needs is missing: {missing}.")


def is_measured(entry: Entry, folder: Path) -> bool:
    return all(one.rows(folder).exists() for one in entry.measurements)
