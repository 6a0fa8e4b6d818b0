"""A function or class that the checks call, what is known of it, and what it is called with: whether
it can be is said once, in one line, before anything is run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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


CONFIG = ("heads", "head_dim", "max_len", "causal")  # what every class is made with
INPUTS = ("q", "k", "v")
ANYTHING = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


class _Unsaid:
    def __repr__(self) -> str:
        return ""


def _signature(call: Callable[..., Any]) -> inspect.Signature | None:
    """None where Python does not know it, as of many functions written in C."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(call, torch.nn.Module):
        call = call.forward
    try:
        # That of the wrapper itself, which is what gets called.
        return inspect.signature(call, follow_wrapped=False)
    except (TypeError, ValueError):
        return None


def _words(signature: inspect.Signature) -> str:
    """`(q, k, v, causal=)`, without annotations and defaults."""
    kept = [p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _Unsaid())
            for p in signature.parameters.values()]  # fmt: skip
    return str(inspect.Signature(kept))


def _form(name: str, positional: Sequence[str], named: Sequence[str]) -> str:
    return f"{name}({', '.join([*positional, *(f'{n}=' for n in named)])})"


def name_of(call: Callable[..., Any]) -> str:
    name = getattr(call, "__name__", type(call).__name__)
    return "f" if name == "<lambda>" else name


def _form_of(function: Function) -> str:
    """The sentence that says how it is called, or a class made."""
    name = name_of(function.call)
    if function.is_class:
        return f"a class is made as {_form(name, (), [*CONFIG, *function.params])}"
    promises = {"causal": function.causal, "padding": function.padding}
    promised = " and ".join(p for p, holds in promises.items() if holds)
    which = f" that promises {promised}" if promised else ""
    form = _form(name, INPUTS, list(function.options(False, None)))
    return f"a function{which} is called as {form}"


def _require(call: Callable[..., Any], positional: Sequence[str], named: Sequence[str],
             said: str) -> None:  # fmt: skip
    """Raises Error where `call` does not take these arguments; `said` begins the sentence."""
    signature = _signature(call)
    try:
        if signature is not None:
            signature.bind(*positional, **dict.fromkeys(named))
    except TypeError:
        raise Error(f"{said}; this one takes {_words(signature)}") from None


def refuse_other_signatures(function: Function) -> None:
    """Raises Error where the function or class does not take what it is called with."""
    call, options = function.call, list(function.options(False, None))
    if function.is_class:
        made, inputs = _form_of(function), ("self", *INPUTS, "mask")
        called = f"modules of {name_of(call)} are called as {_form('forward', inputs, ())}"
        for method, said in (("__init__", made), ("forward", called)):
            if getattr(call, method) is getattr(sys.modules["torch"].nn.Module, method):
                raise Error(f"{said}; this one has no {method} of its own")
        _require(call, (), [*CONFIG, *function.params], made)
        _require(call.forward, inputs, (), called)
    else:
        _require(call, INPUTS, options, _form_of(function))
    if function.backward is not None:
        inputs = (*INPUTS, "grad_output")
        said = f"backward is called as {_form(name_of(function.backward), inputs, options)}"
        _require(function.backward, inputs, options, said)


def is_unsaid(function: Function) -> bool:
    """Whether the signature does not say what the function takes: Python knows none, or it takes
    anything and hands it on."""
    signature = _signature(function.call)
    kinds = {p.kind for p in signature.parameters.values()} if signature else ANYTHING
    return bool(kinds & ANYTHING)


def refuse(function: Function, error: TypeError) -> None:
    """Raises Error that says how the function is called, and what it answered."""
    said = " ".join(str(error).split())
    raise Error(f"{_form_of(function)}; this one threw TypeError: {said}") from None
