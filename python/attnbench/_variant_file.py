"""Variants in a file of Python: which classes and functions it holds, their parameters and promises.

A class of torch.nn.Module is made as Class(heads=, head_dim=, max_len=, causal=, **params) and
called as module(q, k, v, mask); a function is called as f(q, k, v, causal=, kv_lengths=, **params),
with those of causal and kv_lengths that it takes.
"""

from __future__ import annotations

import difflib
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ._check import PROMISES
from ._core import Error
from ._function import CONFIG, Function, refuse_other_signatures

MASKS = ("causal", "kv_lengths")  # what a function may take beside q, k and v
KINDS = (bool, int, float, str)  # of parameters


def one_line(error: BaseException, file: str) -> str:
    """`TypeError: message (mine.py, line 3)`: the exception, and the last line of the file in it."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, SyntaxError):
        return text
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{text} ({Path(file).name}, line {lines[-1]})" if lines else text


def load(file: str) -> ModuleType:
    """The file as a module; modules beside it can be imported. Raises Error where it fails."""
    path = Path(file)
    sys.path.insert(0, str(path.parent))
    module = ModuleType(f"attnbench_file_{path.stem}")
    module.__file__ = file
    sys.modules[module.__name__] = module
    try:
        # Not by importlib, whose cache may hold the code of a moment ago.
        exec(compile(path.read_bytes(), file, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:  # of any kind: the user's code
        raise Error(f"'{path.name}' cannot be loaded: {one_line(error, file)}") from None
    return module


@dataclass(frozen=True)
class Described:
    """A class or function as a variant; `fault` says why it cannot be one."""

    attribute: str
    value: Callable[..., Any]
    own: bool  # of this file, not imported there
    summary: str
    params: list[dict[str, Any]]  # name, default, help
    promises: dict[str, Any]
    fault: str

    def as_json(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "own": self.own, "summary": self.summary,
                "params": self.params, "promises": self.promises, "fault": self.fault}  # fmt: skip

    def function(self, params: dict[str, Any]) -> Function:
        """As the checks call it."""
        return _function(self.value, self.promises, params)


def _function(
    value: Callable[..., Any], promises: dict[str, Any], params: dict[str, Any]
) -> Function:
    """It gets what it takes, and what it promises to take."""
    taken = MASKS if inspect.isclass(value) else _named(value)
    return Function(value, "torch", causal="causal" in taken or promises["causal"],
                    padding="kv_lengths" in taken or promises["padding"],
                    random=promises["random"], params=params)  # fmt: skip


def candidates(module: ModuleType) -> list[Described]:
    """Classes of torch.nn.Module and functions of the file, but for names that begin with "_"."""
    import torch

    found = []
    for name, value in vars(module).items():
        is_module = inspect.isclass(value) and issubclass(value, torch.nn.Module)
        if not name.startswith("_") and (is_module or inspect.isfunction(value)):
            found.append(describe(name, value, module.__name__))
    return found


def describe(name: str, value: Callable[..., Any], module: str) -> Described:
    """What a variant of it would be."""
    # Its own words, not those of torch.nn.Module; those of the file where it has none.
    words = value.__doc__ or getattr(sys.modules.get(value.__module__), "__doc__", None) or ""
    summary = inspect.cleandoc(words).partition("\n")[0]
    params: list[dict[str, Any]] = []
    promises: dict[str, Any] = {promise: False for promise in PROMISES}
    fault = ""
    try:
        promises = promises_of(value)
        refuse_other_signatures(_function(value, promises, {}))
        params = params_of(value)
    except Error as error:
        fault = str(error)
    kind = "a class of torch.nn.Module" if inspect.isclass(value) else "a function of torch"
    return Described(name, value, value.__module__ == module, summary or kind, params,
                     {"multiple_of": 1, **promises}, fault)  # fmt: skip


def _named(value: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of the constructor or function that are no q, k, v and no self."""
    parameters = dict(inspect.signature(value).parameters)
    if inspect.isclass(value):
        return {n: p for n, p in parameters.items() if n not in CONFIG}
    return dict(list(parameters.items())[3:])


def params_of(value: Callable[..., Any]) -> list[dict[str, Any]]:
    """Name, default and help of each parameter that a spec may set. Raises Error for one without a
    default of a kind that a row can hold."""
    found = []
    for of, parameter in _named(value).items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if not inspect.isclass(value) and of in MASKS:
            continue
        default = parameter.default
        if type(default) not in KINDS:
            said = "no default" if default is parameter.empty else f"the default {default!r}"
            raise Error(f"its parameter '{of}' has {said}; expected an int, float, bool or str")
        if type(default) is int and parameter.annotation in (float, "float"):
            default = float(default)
        found.append({"name": of, "default": default, "help": "a parameter in Python"})
    return found


def promises_of(value: Callable[..., Any]) -> dict[str, Any]:
    """What it promises, as check() takes it: a class masks by `mask`, a function by the arguments
    that it takes; its attribute `promises` says more, or takes back."""
    taken = MASKS if inspect.isclass(value) else _named(value)
    promises = {promise: False for promise in PROMISES}
    promises |= {"causal": "causal" in taken, "padding": "kv_lengths" in taken, "multiple_of": 1}
    given = getattr(value, "promises", {})
    if not isinstance(given, dict):
        raise Error(f"its promises are {given!r}; expected a dict such as {{'exact': True}}")
    for promise, holds in given.items():
        if promise not in promises:
            near = difflib.get_close_matches(str(promise), promises, 1, 0)[0]
            raise Error(f"its promise '{promise}' is unknown; nearest is '{near}'")
        is_number = promise == "multiple_of"
        if type(holds) is not (int if is_number else bool) or is_number and holds < 1:
            wanted = "an int of at least 1" if is_number else "True or False"
            raise Error(f"its promise '{promise}' is {holds!r}; expected {wanted}")
        promises[promise] = holds
    return promises


def find(module: ModuleType, attribute: str) -> Described:
    """The variant of that name. Raises Error where there is none or it cannot be one."""
    for one in candidates(module):
        if one.attribute == attribute:
            if one.fault:
                raise Error(f"{attribute}: {one.fault}")
            return one
    raise Error(f"'{Path(module.__file__ or '').name}' has no class or function '{attribute}'")
