"""What stands between arrays of NumPy or torch and the library: memory is shared, never copied."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from ._core import Error

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))  # of this machine's byte order


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor of torch, which is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def shared(name: str, value: Any) -> np.ndarray:
    """`value` as a NumPy array over the same memory.

    Raises Error where that memory is not a C-contiguous float32 or float64 array of the processor.
    """
    if isinstance(value, np.ndarray):
        if value.dtype not in FLOATS:
            raise Error(f"{name} is {value.dtype}; expected float32 or float64")
        if not value.flags.c_contiguous or not value.flags.aligned:
            raise Error(f"{name} is not contiguous (strides {value.strides} bytes); "
                        f"pass numpy.ascontiguousarray({name})")  # fmt: skip
        return value
    if not is_tensor(value):
        kind = type(value).__name__
        raise Error(f"{name} is a {kind}; expected a NumPy array or a torch tensor")
    if not value.is_cpu:
        raise Error(f"{name} is on {value.device}; expected a tensor on the cpu")
    kind = str(value.dtype).removeprefix("torch.")
    if kind not in ("float32", "float64"):
        raise Error(f"{name} is {kind}; expected float32 or float64")
    if not value.is_contiguous() or value.is_neg():
        raise Error(f"{name} is not contiguous (strides {tuple(value.stride())}); "
                    f"pass {name}.contiguous()")  # fmt: skip
    return value.detach().numpy() if value.requires_grad else value.numpy()


def query_key_value(q: Any, k: Any, v: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three arrays, of one kind, one dtype and shapes that fit each other."""
    if not is_tensor(q) == is_tensor(k) == is_tensor(v):
        raise Error("q, k and v are of two kinds; expected all NumPy arrays or all torch tensors")
    arrays = shared("q", q), shared("k", k), shared("v", v)
    for name, array in zip("qkv", arrays):
        if array.ndim != 4 or 0 in array.shape:
            raise Error(f"{name} has shape {list(array.shape)}; "
                        "expected [batch, heads, len, head_dim], none of them 0")  # fmt: skip
        if array.dtype != arrays[0].dtype:
            raise Error(f"{name} is {array.dtype}, q is {arrays[0].dtype}; expected one dtype")
    return arrays


def lengths(kv_lengths: Iterable[int] | None) -> list[int]:
    """kv_lengths as a list, empty where all keys are valid."""
    if kv_lengths is None:
        return []
    found = kv_lengths.tolist() if hasattr(kv_lengths, "tolist") else list(kv_lengths)
    if not isinstance(found, list) or not all(type(n) is int for n in found):
        raise Error(f"kv_lengths is {kv_lengths!r}; expected one integer a batch entry")
    return found
