"""The conditions of a measurement, as data and in words: contract, scope, mode and shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .rows import Cell

SCOPES = ("attention", "layer", "model")
SCOPE_WORDS = {"attention": "attention alone", "layer": "encoder layer", "model": "whole model"}
MODES = ("forward", "train", "decode")
MODE_WORDS = {"forward": "forward", "train": "forward and backward", "decode": "decoding one token"}
SHAPE = {
    "batch": "batch {}",
    "heads": "{} heads",
    "head_dim": "head width {}",
    "threads": "{} threads",
    "kv_heads": "kv_heads {}",  # where query heads share keys
    "dtype": "{}",  # where it is not float32
    "layers": "{} layers",  # of a whole model, where they are not two
}


def contract(cell: Cell) -> str:
    return "causal" if cell.axes.get("causal") else "not causal"


def scope_of(cell: Cell) -> str:
    return str(cell.axes.get("scope") or "attention")


def scope_text(scope: str) -> str:
    return SCOPE_WORDS.get(scope, scope)


def mode_of(cell: Cell) -> str:
    return str(cell.axes.get("mode") or "forward")


def dtype_of(cell: Cell) -> str:
    return str(cell.axes.get("dtype") or "float32")


def decodes(cell: Cell) -> bool:
    return mode_of(cell) == "decode"


def shape_of(cell: Cell) -> tuple[Any, ...]:
    return tuple(cell.axes.get(name) for name in SHAPE)


def shape_name(cell: Cell) -> str:
    """Returns `-b1-h8-d64-t1`, of names of files."""
    batch, heads, head_dim, threads, kv_heads, dtype, layers = shape_of(cell)
    shared = f"-kv{kv_heads}" if kv_heads else ""
    stored = f"-{dtype}" if dtype else ""
    deep = f"-n{layers}" if layers else ""
    return f"-b{batch}-h{heads}-d{head_dim}-t{threads}{shared}{stored}{deep}"


def shape_text(cell: Cell, names: Iterable[str] = tuple(SHAPE)) -> str:
    known = {name: cell.axes[name] for name in names if cell.axes.get(name) is not None}
    said = [SHAPE[name].format(value) for name, value in known.items()]
    return ", ".join(s[:-1] if s in ("1 heads", "1 threads") else s for s in said)
