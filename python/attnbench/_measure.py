"""Time, memory and fidelity of a Python function, in the rows of a sweep beside native variants."""

from __future__ import annotations

import datetime
import hashlib
import inspect
import json
import os
import re
import sys
import time
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._arrays import integer
from ._attention import attention
from ._callees import function_of, make_callee
from ._function import Function
from ._check import Report, check
from ._core import Error
from ._rows import Rows, load
from ._run import run

MEASURES = ("speed", "memory", "fidelity")
LEAST_SAMPLE = 2e-3  # seconds: shorter calls are timed several at a time
SAMPLES = 15


def measure(
    fn: Callable[..., Any],
    *,
    length: int | Sequence[int] = (256, 512, 1024),
    batch: int = 1,
    heads: int = 4,
    head_dim: int = 64,
    causal: bool = False,
    measure: str | Sequence[str] = MEASURES,
    mode: str | Sequence[str] = ("forward",),
    threads: int = 1,
    against: str | Sequence[str] = ("full",),
    output: str | os.PathLike[str] | None = None,
    name: str | None = None,
    progress: bool = True,
    **promises: Any,
) -> Rows:
    """Measures a function beside native variants, in one rows file.

    Args:
        fn: A function or a class of modules, as check() takes it.
        length, batch, heads, head_dim, causal, mode, threads: The axes of `attnbench run`. q, k and
            v are [batch, heads, length, head_dim], float32, N(0, 1).
        measure: Of "speed", "memory" and "fidelity".
        mode: "forward", or "train" (forward and backward, of torch functions).
        against: Native variants that are measured at the same shapes first, by run(). As of
            length, measure and mode, one alone needs no list.
        output: A rows file, which must not exist; None: results/<UTC time>.jsonl.
        name: In rows; None: the function's own. Rows say "python_NAME".
        progress: Whether the native run says what it does.
        promises: What check() is told: padding, random, framework, params, multiple_of, …

    Returns:
        The rows. Those of the function are marked `"provided_by": "python"`. Speed is the time of
        calls in this process, with its interpreter: SAMPLES samples of at least LEAST_SAMPLE
        seconds; `flops` is what torch's FlopCounterMode counts, 0 of NumPy functions. Memory is by
        how much the resident memory of this process grows in a call, with the inputs: pages of
        4 KiB, and what the allocator keeps is not seen. Fidelity is the distance from exact
        attention in float64. Where a quick check is red, the rows are `failed` and hold no figures.

    Raises:
        Error: an argument is not valid, or what check() or run() refuses.
    """
    lengths = [integer("length", n, 1, 2**31 - 1) for n in _several("length", length)]
    measures, modes = _several("measure", measure), _several("mode", mode)
    variants = _several("against", against)
    sizes = {"batch": batch, "heads": heads, "head_dim": head_dim, "threads": threads}
    sizes = {axis: integer(axis, size, 1, 2**31 - 1) for axis, size in sizes.items()}
    for given in measures:
        if given not in MEASURES:
            raise Error(f"measure '{given}' is not one of {', '.join(MEASURES)}")
    if output is not None and Path(output).exists():
        raise Error(f"'{output}' exists; measure() writes a new file")
    called = name or getattr(fn, "__name__", type(fn).__name__)
    known = ("padding", "random", "backward", "params")
    function = function_of(fn, promises.get("framework"), causal=causal, **{
        "padding": False, "random": False, **{k: promises[k] for k in known if promises.get(k)}
    })  # fmt: skip
    if "train" in modes and function.framework != "torch":
        raise Error("mode 'train' needs a function of torch")
    checked = check(fn, causal=causal, name=called, quick=True, **promises)
    timed = set(measures) != {"fidelity"}  # fidelity has no mode
    rows = run(variant=variants, measure=measures, length=lengths, causal=causal,
               mode=modes if timed else None, output=output, progress=progress, **sizes)  # fmt: skip
    shapes = [(sizes["batch"], sizes["heads"], n, sizes["head_dim"]) for n in lengths]
    cells = _cells(function, shapes, causal, measures, modes, sizes["threads"], checked)
    slug = re.sub(r"\W+", "_", f"python_{called}".lower())
    with rows.files[0].open("a", encoding="utf-8") as file:
        for cell in cells:
            row = _row(rows.runs[-1]["run"], slug, function, cell)
            file.write(json.dumps(row, allow_nan=False) + "\n")
            file.flush()
    return load(rows.files[0], interrupted=rows.interrupted)


def _several(name: str, value: Any) -> list[Any]:
    """The values of an argument that may be one alone. Raises Error where there is none."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = [value]
    found = list(value)
    if not found:
        raise Error(f"{name} is {value!r}; expected one value or several")
    return found


def _cells(function: Function, shapes: list[tuple[int, int, int, int]], causal: bool,
           measures: Sequence[str], modes: Sequence[str], threads: int,
           checked: Report) -> Iterator[dict[str, Any]]:  # fmt: skip
    """The fields of each row that depend on its cell."""
    red = ", ".join(result.check for result in checked.failed)
    for of in measures:
        for mode in modes if of != "fidelity" else [None]:
            for shape in shapes:
                batch, heads, length, head_dim = shape
                axes = {"length": length, "batch": batch, "heads": heads, "head_dim": head_dim,
                        "causal": causal, "threads": threads, "seed": 0}  # fmt: skip
                axes |= {"mode": mode, "scope": "attention"} if mode else {"input": "random",
                                                                           "input_scale": 1.0}  # fmt: skip
                begun = time.time()
                cell = {"measure": of, "axes": axes, "status": "ok", "reason": None,
                        "metrics": None, "samples": None}  # fmt: skip
                if red:
                    cell |= {"status": "failed", "reason": f"contract checks are red: {red}"}
                else:
                    cell |= _measured(function, of, mode, shape, causal, threads)
                yield {**cell, "begun": begun, "duration_s": time.time() - begun}


def _measured(function: Function, of: str, mode: str | None, shape: tuple[int, int, int, int],
              causal: bool, threads: int) -> dict[str, Any]:  # fmt: skip
    case = _Case(function, shape, causal, mode == "train")
    try:
        with _Threads(function, threads):
            if of == "speed":
                return _speed(case)
            return {"metrics": _memory(case) if of == "memory" else _fidelity(case)}
    except MemoryError as error:
        return {"status": "oom", "reason": str(error) or "out of memory"}
    except Exception as error:  # of any kind: the row says which
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}


class _Case:
    """One call with inputs of its own."""

    def __init__(self, function: Function, shape: tuple[int, int, int, int], causal: bool,
                 train: bool) -> None:  # fmt: skip
        stream = np.random.default_rng(0)
        self.inputs = [stream.standard_normal(shape, dtype=np.float32) for _ in range(3)]
        _, heads, length, head_dim = shape
        self.function, self.shape, self.causal, self.train = function, shape, causal, train
        self.callee = make_callee(function, heads, head_dim, length, causal, 0, False)
        self.weights = [array.copy() for _, array, _ in self.callee.weights()]

    def __call__(self) -> np.ndarray:
        q, k, v = self.inputs
        output, back = self.callee.call(q, k, v, self.causal, None, self.weights, self.train)
        if back is not None:
            back(q)
        return output


class _Threads:
    """torch's number of threads, for a while."""

    def __init__(self, function: Function, threads: int) -> None:
        self.torch = sys.modules["torch"] if function.framework == "torch" else None
        self.threads = threads

    def __enter__(self) -> None:
        if self.torch:
            self.before = self.torch.get_num_threads()
            self.torch.set_num_threads(self.threads)

    def __exit__(self, *_: object) -> None:
        if self.torch:
            self.torch.set_num_threads(self.before)


def _speed(case: _Case) -> dict[str, Any]:
    def seconds(calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            case()
        return time.perf_counter() - start

    seconds(1)  # warm
    calls = 1
    while seconds(calls) < LEAST_SAMPLE:
        calls *= 2
    samples = [seconds(calls) / calls for _ in range(SAMPLES)]
    found = _core.summary(samples)
    flops, (batch, _, length, _) = _flops(case), case.shape
    metrics = {"time_s": found, "tokens_per_s": batch * length / found["median"], "flops": flops,
               "flops_per_s": flops / found["median"], "peak_fraction": None}  # fmt: skip
    return {"metrics": metrics, "samples": samples, "visits": [SAMPLES]}


def _flops(case: _Case) -> float:
    if case.function.framework != "torch":
        return 0.0
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        case()
    return float(counter.get_total_flops())


def _memory(case: _Case) -> dict[str, Any]:
    case()  # what a first call loads and keeps is not of the pass
    grown = min(_core.resident_growth(case) for _ in range(3))
    weights = sum(array.nbytes for array in case.weights)
    peak = grown + sum(array.nbytes for array in case.inputs) + weights
    return {"peak_bytes": peak, "weights_bytes": weights, "activations_bytes": peak - weights,
            "workspace_bytes": 0, "extra_bytes": grown, "declared_extra_bytes": None,
            "state_bytes": None, "rss_peak_bytes": _highest_resident()}  # fmt: skip


def _highest_resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM:"))


def _fidelity(case: _Case) -> dict[str, Any]:
    out = case().astype(np.float64)
    exact = attention("full", *(x.astype(np.float64) for x in case.inputs), causal=case.causal)
    norms = np.linalg.norm(out, axis=-1) * np.linalg.norm(exact, axis=-1)
    products = (out * exact).sum(-1)
    cosines = np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0)
    error = float(np.linalg.norm(out - exact) / np.linalg.norm(exact))
    return {"relative_error": error, "cosine": float(cosines.mean()), "weights_kl": None}


def _row(run_id: str, name: str, function: Function, cell: dict[str, Any]) -> dict[str, Any]:
    begun = datetime.datetime.fromtimestamp(cell.pop("begun"), datetime.timezone.utc)
    try:
        source = inspect.getsource(function.call)
    except (OSError, TypeError, tokenize.TokenError):  # typed in, of a page, or not of Python
        source = ""
    params = {k: v for k, v in function.params.items() if isinstance(v, (bool, int, float, str))}
    key = [cell["measure"], cell["axes"], name, params, source]
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return {"schema": "attnbench/1", "kind": "cell", "run": run_id, "cell": digest[:16],
            "variant": {"name": name, "params": params}, "task": None, "provided_by": "python",
            "started_at": f"{begun:%Y-%m-%dT%H:%M:%SZ}", **cell}  # fmt: skip
