"""Attention of any variant of the catalogue on arrays of NumPy and tensors of torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from . import _core
from ._arrays import Error, is_tensor, lengths, query_key_value, shared


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
                             self.threads, gradients, q.dtype == np.float64)  # fmt: skip


@cache
def _cores() -> int:  # asking the system takes longer than a small call
    return _core.cores()


def attention(
    spec: str,
    q: Any,
    k: Any,
    v: Any,
    causal: bool = False,
    kv_lengths: Iterable[int] | None = None,
    weights: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    threads: int | None = None,
) -> Any:
    """Attention by one variant: `attention("linformer[rank=64]", q, k, v)`.

    Args:
        spec: A variant and its parameters, as on the command line: "full", "performer[features=64]".
        q: Queries [batch, heads, q_len, head_dim], float32 or float64.
        k: Keys [batch, heads, kv_len, head_dim].
        v: Values, of the shape of k.
        causal: Whether query i sees keys j <= i + kv_len - q_len alone.
        kv_lengths: The number of valid keys of each batch entry, each in [0, kv_len]; None: all.
        weights: Values of learned or random weights by name, as initial_weights() lists them; the
            others are drawn from `seed`.
        seed: Of weights that are not given and of random features.
        threads: How many threads compute; None: one for each core of this process, as of its
            first call.

    Returns:
        [batch, heads, q_len, head_dim], of the kind and dtype of q. float32 is computed in float32
        and float64 in float64. Inputs are read where they are: C-contiguous arrays are not copied,
        and others are refused. The interpreter lock is released while the library computes.

        Of torch tensors the result is differentiable, by the library's own backward pass, in q, k,
        v and the learned weights among `weights`. Second derivatives are not supported.

    Raises:
        Error: an unknown variant or parameter, shapes, dtypes or strides that do not fit, or a
            shape that the variant does not take, such as a causal Linformer.
        MemoryError: there is not enough memory.
    """
    arrays = query_key_value(q, k, v)
    given = dict(weights or {})
    values = [shared(f"weights['{name}']", weight) for name, weight in given.items()]
    for name, array in zip(given, values):
        if array.dtype != arrays[0].dtype:
            raise Error(f"weights['{name}'] is {array.dtype}, q is {arrays[0].dtype}; "
                        "expected one dtype")  # fmt: skip
    count = _cores() if threads is None else threads
    call = Call(spec, bool(causal), lengths(kv_lengths), list(given), seed, count)
    if is_tensor(q):
        from ._torch_attention import on_tensors

        return on_tensors(call, (*arrays, *values), (q, k, v, *given.values()))
    return call.forward(*arrays, values, False).output()


def initial_weights(
    spec: str,
    heads: int,
    head_dim: int,
    max_len: int,
    causal: bool = False,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """The weights of a variant by name, float32, as `seed` draws them; {} where it has none.

    Args:
        spec: A variant and its parameters.
        heads, head_dim: Of queries and keys.
        max_len: The kv_len that attention() will be called with: some shapes follow it.
        causal: As attention() will be called.
        seed: Of the random numbers.

    Raises:
        Error: an unknown variant or parameter, or a configuration that it does not take.
    """
    found = _core.weights(spec, heads, head_dim, max_len, causal, seed)
    return {name: values for name, (values, _) in found.items()}
