"""A function or class that the checks call, and what is known of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
