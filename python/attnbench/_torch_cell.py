"""Requests of a sweep answered for a variant in Python: the library measures, trains and compares,
and calls the variant where its own kernels would stand. FLOPs and
memory of a callee of torch are told to the library's counters and pool: what a call of the same
shapes needed is counted once, and added at every call."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from . import _core
from ._callees import make_callee
from ._check import Result, _results
from ._variant_file import Described, find, load, one_line


class Counted:
    """A callee (see _callees.py) whose FLOPs are torch's own count and, with `tracks_memory`, whose
    highest memory in a call is that of torch's allocator."""

    def __init__(self, callee: Any, tracks_memory: bool) -> None:
        self.callee, self.tracks_memory = callee, tracks_memory
        self.flops: dict[Any, float] = {}

    def weights(self) -> Any:
        return self.callee.weights()

    def _counted(self, key: Any, call: Callable[[], Any]) -> tuple[Any, int]:
        """What the call gave, and the bytes that it left allocated, where they are asked for."""
        if self.tracks_memory:
            highest, kept, found = peak_of(call)
            _core.Held(highest)  # raises the pool's peak
            return found, kept
        if key in self.flops:
            found = call()
        else:
            with FlopCounterMode(display=False) as counter:
                found = call()
            self.flops[key] = float(counter.get_total_flops())
        _core.count_flops(self.flops[key])
        return found, 0

    def call(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool,
             kv_lengths: list[int] | None, weights: list[np.ndarray],
             gradients: bool) -> tuple[np.ndarray, Any]:  # fmt: skip
        key = (q.shape, k.shape, causal, kv_lengths is None, gradients)

        def forward() -> tuple[np.ndarray, Any]:
            return self.callee.call(q, k, v, causal, kv_lengths, weights, gradients)

        (output, back), kept = self._counted((key, "forward"), forward)
        if back is None:
            return output, None
        held = [_core.Held(kept)] if kept else []  # what the backward pass needs

        def backward(grad_output: np.ndarray) -> Any:
            found, _ = self._counted((key, "backward"), lambda: back(grad_output))
            held.clear()
            return found

        return output, backward


def peak_of(call: Callable[[], Any]) -> tuple[int, int, Any]:
    """By how many bytes the memory of torch's allocator grew at most in the call, and by how many at
    its end, with what the call gave."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                profile_memory=True) as profiler:  # fmt: skip
        found = call()
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = highest = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        highest = max(highest, now)
    return highest, max(0, now), found


def _register(described: Described, file: str, name: str, tracks_memory: bool) -> None:
    def make(heads: int, head_dim: int, max_len: int, causal: bool, seed: int, in_double: bool,
             params: dict[str, Any]) -> Counted:  # fmt: skip
        function = described.function({})
        try:
            callee = make_callee(function, heads, head_dim, max_len, causal, seed, in_double, params)
        except Exception as error:
            raise RuntimeError(one_line(error, file)) from None
        return Counted(callee, tracks_memory)

    digest = _core.hash_of_bytes(Path(file).read_bytes() + described.attribute.encode())
    _core.add_variant(json.dumps(described.as_json()), name, file, described.attribute, digest, make)


def answer(request: dict[str, Any], file: str, attribute: str, name: str) -> str:
    """The reply to a request, as `attnbench cell` writes it. Raises Error where the file has no
    such variant."""
    key = request.get("key") or {}
    # Threads of torch begin on the processors of this one; the library's own would be pinned.
    cpus = request.pop("cpus", None)
    if cpus:
        os.sched_setaffinity(0, cpus)
    torch.set_num_threads(int((key.get("axes") or {}).get("threads") or 1))
    described = find(load(file), attribute)
    if request.get("max_memory_bytes"):  # torch, once imported, is none of the cell's
        request["max_memory_bytes"] += _data_bytes()
    _register(described, file, name, key.get("measure") == "memory")
    if request["do"] != "check":
        return _core.answer(json.dumps(request))
    results = _checks(described, name, request["variant"]["params"], quick=True)
    results += [Result(*words) for words in _core.checks_at(json.dumps(request))]
    red = next((r for r in results if r.outcome == "failed"), None)
    return _core.check_reply(red.check if red else None, red.detail if red else "")


def _data_bytes() -> int:
    """What the system counts against a limit of data."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("VmData:")), 0)


def _checks(described: Described, name: str, params: dict[str, Any], quick: bool) -> list[Result]:
    promises = {"name": name, **described.promises}
    return list(_results(described.function(params), promises, _core.checks_of(promises), quick))


def checked(asked: dict[str, Any], file: str, attribute: str, name: str) -> dict[str, Any]:
    """All contract checks, as (subject, check, outcome, detail)."""
    torch.set_num_threads(1)
    described = find(load(file), attribute)
    results = _checks(described, name, _whole(described, asked["params"]), quick=not asked["full"])
    return {"results": [[r.subject, r.check, r.outcome, r.detail] for r in results]}


def weights(asked: dict[str, Any], file: str, attribute: str, name: str) -> dict[str, Any]:
    """Name, shape and whether it is learned, of each weight for one configuration."""
    described = find(load(file), attribute)
    sizes = [asked[of] for of in ("heads", "head_dim", "max_len")]
    callee = make_callee(described.function(asked["params"]), *sizes, False, 0, False)
    return {"weights": [{"name": of, "shape": list(array.shape), "learned": learned}
                        for of, array, learned in callee.weights()]}  # fmt: skip


def _whole(described: Described, given: dict[str, Any]) -> dict[str, Any]:
    return {**{p["name"]: p["default"] for p in described.params}, **given}
