"""What stands between arrays of NumPy or torch and the library: memory is shared where it is
contiguous, and copied else. A forward pass that can be made again, and the examples of a task."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from . import _core
from ._core import Error

# Of this machine's byte order. NumPy has no bfloat16: arrays hold its bits.
KINDS = {
    np.dtype(np.float32): "float32",
    np.dtype(np.float64): "float64",
    np.dtype(np.int16): "bfloat16",
}


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor of torch, which is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def contiguous(name: str, value: Any) -> Any:
    """`value` itself where its memory can be read in place, else a copy, through which gradients of
    torch flow. Raises Error where it is no array of numbers that the library computes with."""
    if isinstance(value, np.ndarray):
        if value.dtype.char not in "fd" or not value.dtype.isnative:
            raise Error(f"{name} is {value.dtype}; expected float32 or float64")
        in_place = value.flags.c_contiguous and value.flags.aligned
        return value if in_place else value.copy(order="C")
    if not is_tensor(value):
        kind = type(value).__name__
        raise Error(f"{name} is a {kind}; expected a NumPy array or a torch tensor")
    torch = sys.modules["torch"]
    if not value.is_cpu:
        raise Error(f"{name} is on {value.device}; expected a tensor on the cpu")
    if value.dtype not in (torch.float32, torch.float64, torch.bfloat16):
        kind = str(value.dtype).removeprefix("torch.")
        raise Error(f"{name} is {kind}; expected float32, float64 or bfloat16")
    if value.layout is not torch.strided:
        raise Error(f"{name} is {value.layout}; expected a dense tensor")
    return value.resolve_neg().contiguous() if value.is_neg() else value.contiguous()


def shared(value: Any) -> np.ndarray:
    """A NumPy array over the memory of what contiguous() gave."""
    if isinstance(value, np.ndarray):
        return value
    tensor = value.detach() if value.requires_grad else value
    torch = sys.modules["torch"]
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def query_key_value(q: Any, k: Any, v: Any) -> tuple[tuple[Any, Any, Any], list[np.ndarray]]:
    """The three, contiguous, and their memory; of one kind, one dtype and shapes with four sizes."""
    if not is_tensor(q) == is_tensor(k) == is_tensor(v):
        raise Error("q, k and v are of two kinds; expected all NumPy arrays or all torch tensors")
    inputs = contiguous("q", q), contiguous("k", k), contiguous("v", v)
    arrays = [shared(x) for x in inputs]
    for name, array in zip("qkv", arrays):
        if array.ndim != 4 or 0 in array.shape:
            raise Error(f"{name} has shape {list(array.shape)}; "
                        "expected [batch, heads, len, head_dim], none of them 0")  # fmt: skip
        same_dtype(name, array, arrays[0])
    return inputs, arrays


def same_dtype(name: str, array: np.ndarray, q: np.ndarray) -> None:
    """Raises Error where an array has another dtype than q."""
    if array.dtype != q.dtype:
        raise Error(f"{name} is {KINDS[array.dtype]}, q is {KINDS[q.dtype]}; expected one dtype")


def text(name: str, value: Any, expected: str) -> str:
    """`value`, which the library reads as text. Raises Error where it is none."""
    if not isinstance(value, str):
        raise Error(f"{name} is {value!r}; expected {expected}")
    return value


def integer(name: str, value: Any, low: int, high: int) -> int:
    """`value`, also of NumPy, as an int in [low, high]. Raises Error where it is none."""
    try:
        found = operator.index(value)
    except TypeError:
        found = low - 1
    if not low <= found <= high:
        raise Error(f"{name} is {value!r}; expected an integer in [{low}, {high}]")
    return found


def seed_of(value: Any) -> int:
    return integer("seed", value, 0, 2**64 - 1)


def lengths(kv_lengths: Iterable[int] | None) -> list[int]:
    """kv_lengths as a list, empty where all keys are valid."""
    if kv_lengths is None:
        return []
    try:
        found = kv_lengths.tolist() if hasattr(kv_lengths, "tolist") else list(kv_lengths)
    except TypeError:
        found = None
    if not isinstance(found, list) or not all(type(n) is int and abs(n) < 2**63 for n in found):
        raise Error(f"kv_lengths is {kv_lengths!r}; expected one integer a batch entry")
    return found


@dataclass(frozen=True)
class Batch:
    """`size` examples, padded to the task's length. What the task does not have is None.

    Pairs of documents have a dimension more, [size, 2, length]. The arrays hold the library's own
    memory; they are yours to change.
    """

    tokens: np.ndarray | None  # int32 [size, length], 0 is padding
    values: np.ndarray | None  # float32 [size, length, channels], in place of tokens
    lengths: np.ndarray  # int64 [size]: positions that are no padding
    # int32 [size]: a class; [size, length]: a class a position, or [size, outputs]: an output
    # sequence; -1 where there is no label.
    targets: np.ndarray | None
    wanted: np.ndarray | None  # float32 [size], the number to predict, in place of targets
    # (first [size · length + 1], keys): query r of the batch may see keys[first[r]:first[r + 1]].
    edges: tuple[np.ndarray, np.ndarray] | None
    length: int  # of the longest example of the task

    @property
    def mask(self) -> np.ndarray:
        """bool [size, length]: True where a position is no padding."""
        return np.arange(self.length) < self.lengths[..., None]

    @property
    def labels(self) -> np.ndarray:
        """`targets`, or `wanted` where the answer is a number."""
        return self.targets if self.wanted is None else self.wanted

    def __len__(self) -> int:
        return len(self.lengths)


class Source(Protocol):
    """What a dataset takes its examples from: a Task."""

    spec: str

    @property
    def real(self) -> bool: ...

    @property
    def edges(self) -> bool: ...

    def count(self, split: str) -> int: ...

    def batch(self, split: str, first: int, size: int, seed: int) -> Batch: ...


class Call:
    """A forward pass that can be made again: everything but the arrays."""

    def __init__(self, spec: str, causal: bool, kv_lengths: list[int], names: list[str],
                 seed: int, threads: int) -> None:  # fmt: skip
        self.spec, self.causal, self.kv_lengths = spec, causal, kv_lengths
        self.names, self.seed, self.threads = names, seed, threads

    def forward(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, weights: list[np.ndarray],
                gradients: bool) -> Any:  # fmt: skip
        named = dict(zip(self.names, weights))
        return _core.forward(self.spec, q, k, v, self.causal, self.kv_lengths, named, self.seed,
                             self.threads, gradients, KINDS[q.dtype])  # fmt: skip
