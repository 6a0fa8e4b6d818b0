"""attnbench from Python: attention variants on your arrays, tasks as arrays, checks of your own
functions, and sweeps with their rows, tables and pictures.

Everything is computed by the C++ library and the program that the command line runs. Names are
imported when they are first used, so that drawing rows needs no compiled extension.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._attention import attention, initial_weights
    from ._check import Report, Result, check
    from ._core import Error
    from ._core import version as __version__
    from ._measure import measure
    from ._program import info, tasks, variants
    from ._rows import Rows, compare, load, plot, report, table
    from ._run import run
    from ._tasks import Batch, Task, task

_MODULES = {
    "_attention": ("attention", "initial_weights"),
    "_check": ("Report", "Result", "check"),
    "_core": ("Error", "__version__"),
    "_measure": ("measure",),
    "_program": ("info", "tasks", "variants"),
    "_rows": ("Rows", "compare", "load", "plot", "report", "table"),
    "_run": ("run",),
    "_tasks": ("Batch", "Task", "task"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Batch",
    "Error",
    "Report",
    "Result",
    "Rows",
    "Task",
    "__version__",
    "attention",
    "check",
    "compare",
    "info",
    "initial_weights",
    "load",
    "measure",
    "plot",
    "report",
    "run",
    "table",
    "task",
    "tasks",
    "variants",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'attnbench' has no attribute '{name}'")
    module = import_module(f".{_MODULE_OF[name]}", __name__)
    found = getattr(module, "version" if name == "__version__" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
