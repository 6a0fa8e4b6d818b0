"""attnbench from Python: attention variants on your arrays, tasks as arrays, checks of your own
functions, and sweeps with their rows, tables and pictures.

Everything is computed by the C++ library and the program that the command line runs.
"""

from ._attention import attention, initial_weights
from ._check import Report, Result, check
from ._core import Error
from ._core import version as __version__
from ._measure import measure
from ._program import info, tasks, variants
from ._rows import Rows, compare, load, plot, report, table
from ._run import run
from ._tasks import Batch, Task, task

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
