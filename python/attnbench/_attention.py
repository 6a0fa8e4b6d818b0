"""Attention of any variant of the catalogue on arrays of NumPy and tensors of torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from . import _core
from ._arrays import (
    KINDS,
    Call,
    contiguous,
    integer,
    is_tensor,
    lengths,
    query_key_value,
    same_dtype,
    seed_of,
    shared,
    text,
)
from ._core import Error
from ._place import COMMAND
from ._program import info

SPEC = "a variant such as 'full' or 'linformer[rank=64]'"
LACKS_GATES = re.compile(r"the variant reads \d+ gates \((.*)\); given are 0")


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
        q: Queries [batch, heads, q_len, head_dim], float32 or float64; tensors also bfloat16.
        k: Keys [batch, heads, kv_len, head_dim].
        v: Values, of the shape of k.
        causal: Whether query i sees keys j <= i + kv_len - q_len alone.
        kv_lengths: The number of valid keys of each batch entry, each in [0, kv_len]; None: all.
        weights: Values of learned or random weights by name, as initial_weights() lists them; the
            others are drawn from `seed`. Of the dtype of q, or float32 where q is bfloat16.
        seed: Of weights that are not given and of random features; in [0, 2**64).
        threads: How many threads compute; None: one for each core of this process, as of its
            first call.

    Returns:
        [batch, heads, q_len, head_dim], contiguous, of the kind and dtype of q. float32 is computed
        in float32 and float64 in float64. C-contiguous arrays and tensors are read where they are;
        others, such as those of transpose(1, 2), are copied first, as torch's own functions do.
        The interpreter lock is released while the library computes.

        Of torch tensors the result is differentiable, by the library's own backward pass, in q, k,
        v and the learned weights among `weights`. Second derivatives are not supported.

        bfloat16 has no backward pass. Variants with the trait `bfloat16` compute in it; the others
        widen to float32 and round the output.

        Variants with the trait `gated` read gates beside q, k and v, which this function does not
        take; `attnbench apply --input NAME=FILE.npy` does.

        In a process that fork() made, such as a worker of torch's DataLoader, each loop starts its
        threads anew, which takes some 50 microseconds.

    Raises:
        Error: an unknown variant or parameter, an argument of another type or out of its range,
            shapes or dtypes that do not fit, a gradient asked of bfloat16, a shape that the variant
            does not take, such as a causal Linformer, or a variant that reads gates.
        MemoryError: there is not enough memory.
    """
    text("spec", spec, SPEC)
    inputs, arrays = query_key_value(q, k, v)
    given = {name: _weight(name, value, arrays[0]) for name, value in _named(weights).items()}
    count = _cores() if threads is None else integer("threads", threads, 1, 2**31 - 1)
    call = Call(spec, bool(causal), lengths(kv_lengths), list(given), seed_of(seed), count)
    values = [shared(weight) for weight in given.values()]
    try:
        if is_tensor(q):
            from ._torch_attention import on_tensors

            return on_tensors(call, [*arrays, *values], (*inputs, *given.values()))
        return call.forward(*arrays, values, False).output()
    except Error as error:
        if found := LACKS_GATES.fullmatch(str(error)):
            raise Error(_gates_of(spec, found[1].split(", "))) from None
        raise


def _gates_of(spec: str, names: list[str]) -> str:
    """Why a variant that reads gates cannot be called here, and what takes them. The width of a
    gate may follow head_dim: the program tells that of one head_dim."""
    try:
        told = info(spec)
        widths = {gate["name"]: gate["width"] for gate in told["gates"]}
        at = f" at head_dim {told['cost']['head_dim']}"
    except (Error, OSError):  # without the program
        widths, at = {}, ""
    shown = [f"{name} [batch, heads, kv_len, {widths.get(name, 'width')}]" for name in names]
    files = " ".join(f"--input {name}=FILE.npy" for name in names)
    return (f"{spec} reads the gate{'s' if len(names) > 1 else ''} {', '.join(shown)}{at}, which "
            f"attention() does not take; '{COMMAND} apply -v {spec} {files}' does")  # fmt: skip


def _named(weights: Any) -> Mapping[str, Any]:
    given = {} if weights is None else weights
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise Error(f"weights is {_short(weights)}; expected a dict of arrays by name, as of initial_weights()")
    return given


def _short(value: Any) -> str:
    """What a message shows of a value that may hold arrays."""
    if isinstance(value, Mapping):
        return f"a {type(value).__name__} with the keys {list(value)!r}"
    return repr(value) if isinstance(value, (int, float, str)) else f"a {type(value).__name__}"


def _weight(name: str, value: Any, q: np.ndarray) -> Any:
    """A weight as contiguous() gives it, of the dtype of q; float32 beside bfloat16."""
    called = f"weights['{name}']"
    weight = contiguous(called, value)
    array = shared(weight)
    if KINDS[q.dtype] != "bfloat16":
        same_dtype(called, array, q)
    elif KINDS[array.dtype] == "float64":
        raise Error(f"{called} is float64, q is bfloat16; expected bfloat16 or float32")
    return weight.float() if KINDS[array.dtype] == "bfloat16" else weight


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
        seed: Of the random numbers; in [0, 2**64).

    Raises:
        Error: an unknown variant or parameter, an argument of another type or out of its range, or
            a configuration that the variant does not take.
    """
    sizes = [
        integer(name, size, 1, 2**63 - 1)
        for name, size in (("heads", heads), ("head_dim", head_dim), ("max_len", max_len))
    ]
    found = _core.weights(text("spec", spec, SPEC), *sizes, bool(causal), seed_of(seed))
    return {name: values for name, (values, _) in found.items()}
