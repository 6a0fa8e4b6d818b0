"""Functions of NumPy and of torch, and classes of torch modules, as the checks call them.

A callee is a function made for one configuration. It has weights() -> [(name, array, learned)] and
call(q, k, v, causal, kv_lengths, weights, gradients) -> (output, backward or None).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ._core import Error

Weights = list[tuple[str, np.ndarray, bool]]


@dataclass(frozen=True)
class Function:
    """What the user gave, and how it is called."""

    call: Callable[..., Any]
    framework: str  # "numpy" or "torch"
    causal: bool  # whether it takes `causal`
    padding: bool  # whether it takes `kv_lengths`
    random: bool  # whether it draws random numbers
    backward: Callable[..., Any] | None = None  # of a NumPy function
    params: dict[str, Any] = field(default_factory=dict)  # further keywords

    @property
    def is_class(self) -> bool:
        return inspect.isclass(self.call)

    @property
    def has_gradients(self) -> bool:
        return self.framework == "torch" or self.backward is not None

    def make(self, heads: int, head_dim: int, max_len: int, causal: bool, seed: int,
             in_double: bool, params: dict[str, Any] | None = None) -> NumpyCallee | Any:  # fmt: skip
        """A callee for this configuration; `params` are keywords beside the function's own."""
        function = replace(self, params={**self.params, **(params or {})})
        if self.framework == "numpy":
            return NumpyCallee(function, seed)
        from ._torch_callees import TorchCallee

        config = {"heads": heads, "head_dim": head_dim, "max_len": max_len, "causal": causal}
        return TorchCallee(function, config, seed, in_double)

    def options(self, causal: bool, kv_lengths: Any) -> dict[str, Any]:
        """The keywords of one call of a function."""
        named = {**self.params, **({"causal": causal} if self.causal else {})}
        return {**named, "kv_lengths": kv_lengths} if self.padding else named


def answer_of(function: Function, output: Any, q: np.ndarray) -> np.ndarray:
    """The output as an array of the shape and dtype of q, or TypeError, ValueError."""
    if not isinstance(output, np.ndarray):
        kind = "a torch tensor" if function.framework == "torch" else "a NumPy array"
        raise TypeError(f"returned a {type(output).__name__}, expected {kind}")
    if output.dtype != q.dtype:
        raise TypeError(f"returned {output.dtype} for q of {q.dtype}")
    return np.ascontiguousarray(output)


class NumpyCallee:
    def __init__(self, function: Function, seed: int) -> None:
        self.function, self.seed = function, seed

    def weights(self) -> Weights:
        return []

    def call(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool,
             kv_lengths: list[int] | None, weights: list[np.ndarray],
             gradients: bool) -> tuple[np.ndarray, Any]:  # fmt: skip
        lengths = None if kv_lengths is None else np.array(kv_lengths)
        options = self.function.options(causal, lengths)
        if self.function.random:
            np.random.seed(self.seed)
        output = answer_of(self.function, self.function.call(q, k, v, **options), q)
        backward = self.function.backward
        if not gradients or backward is None:
            return output, None

        def back(grad_output: np.ndarray) -> list[np.ndarray | None]:
            found = backward(q, k, v, grad_output, **options)
            return [None if g is None else np.ascontiguousarray(g, q.dtype) for g in found]

        return output, back


def function_of(fn: Callable[..., Any], framework: str | None, **known: Any) -> Function:
    """The function with what is known of it; `framework` None: of torch where it is a module, or
    returns a tensor for tensors."""
    if not callable(fn):
        raise Error(f"{fn!r} cannot be called; expected a function of q, k and v, or a class")
    if framework not in (None, "numpy", "torch"):
        raise Error(f"framework '{framework}' is not valid; expected numpy or torch")
    made = Function(call=fn, framework=framework or "numpy", **known)
    if made.is_class and framework == "numpy":
        raise Error(f"{fn.__name__} is a class; expected a torch.nn.Module, or a function")
    if framework is None and (made.is_class or _returns_tensors(made)):
        made = Function(call=fn, framework="torch", **known)
    if made.framework == "torch":
        try:
            import torch
        except ImportError:
            raise Error("torch is not installed; pip install torch") from None
        if made.is_class and not issubclass(fn, torch.nn.Module):
            raise Error(f"{fn.__name__} is no torch.nn.Module; expected one, or a function")
        if made.backward is not None:
            raise Error("backward is for NumPy functions; torch has its own gradients")
    return made


def _returns_tensors(function: Function) -> bool:
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(function.call, torch.nn.Module):
        return True
    inputs = [torch.zeros(1, 1, 1, 1) for _ in range(3)]
    try:
        output = function.call(*inputs, **function.options(False, None))
    except Exception:  # of any kind: a NumPy function that meets tensors
        return False
    return isinstance(output, torch.Tensor)


def refuses_double(function: Function, causal: bool, length: int) -> str | None:
    """Why the function cannot be checked in float64, by one call of it; None: it can."""
    x = np.linspace(-1, 1, 2 * 2 * length * 4).reshape(2, 2, length, 4)
    lengths = [length, length] if function.padding else None
    try:
        callee = function.make(2, 4, length, causal, 1, True)
        values = [array for _, array, _ in callee.weights()]
        callee.call(x, x.copy(), x.copy(), causal, lengths, values, False)
    except Exception as error:  # of any kind: what it says is told
        return f"the function does not compute in float64: {type(error).__name__}: {error}"
    return None
