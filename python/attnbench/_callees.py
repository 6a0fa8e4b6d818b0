"""Functions of NumPy and of torch, and classes of torch modules, as the checks call them.

A callee is a function made for one configuration. It has weights() -> [(name, array, learned)] and
call(q, k, v, causal, kv_lengths, weights, gradients) -> (output, backward or None).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ._core import Error
from ._function import Function, Weights, answer_of, is_unsaid, refuse, refuse_other_signatures


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


def make_callee(function: Function, heads: int, head_dim: int, max_len: int, causal: bool, seed: int,
                in_double: bool, params: dict[str, Any] | None = None) -> NumpyCallee | Any:  # fmt: skip
    """A callee for this configuration; `params` are keywords beside the function's own."""
    function = replace(function, params={**function.params, **(params or {})})
    if function.framework == "numpy":
        return NumpyCallee(function, seed)
    from ._torch_callees import TorchCallee

    config = {"heads": heads, "head_dim": head_dim, "max_len": max_len, "causal": causal}
    return TorchCallee(function, config, seed, in_double)


def function_of(fn: Callable[..., Any], framework: str | None, **known: Any) -> Function:
    """The function with what is known of it; `framework` None: of torch where it is a module, or
    returns a tensor for tensors. Raises Error where it does not take what it is called with."""
    if not callable(fn):
        raise Error(f"{fn!r} cannot be called; expected a function of q, k and v, or a class")
    if framework not in (None, "numpy", "torch"):
        raise Error(f"framework '{framework}' is not valid; expected numpy or torch")
    made = Function(call=fn, framework=framework or "numpy", **known)
    if made.is_class and framework == "numpy":
        raise Error(f"{fn.__name__} is a class; expected a torch.nn.Module, or a function")
    if not made.is_class:
        refuse_other_signatures(made)
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
    if made.is_class:
        refuse_other_signatures(made)
    if is_unsaid(made):
        _try(made, framework)
    return made


def _zeros_of_torch() -> list[Any]:
    """Small q, k and v; none where torch is not imported."""
    torch = sys.modules.get("torch")
    return [torch.zeros(1, 1, 1, 1) for _ in range(3)] if torch else []


def _returns_tensors(function: Function) -> bool:
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(function.call, torch.nn.Module):
        return True
    try:
        output = function.call(*_zeros_of_torch(), **function.options(False, None))
    except Exception:  # of any kind: a NumPy function that meets tensors
        return False
    return isinstance(output, torch.Tensor)


def _try(function: Function, framework: str | None) -> None:
    """Raises Error where a class cannot be made, or each call on small inputs is a TypeError."""
    calls = []
    if function.is_class:
        calls.append(lambda: make_callee(function, 1, 1, 1, False, 0, False))
    else:
        inputs = [_zeros_of_torch()] if framework != "numpy" else []
        if function.framework == "numpy":
            inputs.append([np.zeros((1, 1, 1, 1), np.float32) for _ in range(3)])
        options = function.options(False, None)
        calls += [lambda x=x: function.call(*x, **options) for x in inputs if x]
    errors = []
    for call in calls:
        try:
            call()
        except TypeError as error:
            errors.append(error)
        except Exception:  # of any other kind: for the checks to tell
            return
        else:
            return
    refuse(function, errors[0])


def refuses_double(function: Function, causal: bool, length: int) -> str | None:
    """Why the function cannot be checked in float64, by one call of it; None: it can."""
    x = np.linspace(-1, 1, 2 * 2 * length * 4).reshape(2, 2, length, 4)
    lengths = [length, length] if function.padding else None
    try:
        callee = make_callee(function, 2, 4, length, causal, 1, True)
        values = [array for _, array, _ in callee.weights()]
        callee.call(x, x.copy(), x.copy(), causal, lengths, values, False)
    except Exception as error:  # of any kind: what it says is told
        return f"the function does not compute in float64: {type(error).__name__}: {error}"
    return None
