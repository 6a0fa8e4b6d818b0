"""FLOPs and memory of a callee of torch, told to the library's counters and pool: what a call of the
same shapes needed is counted once, and added at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from . import _core


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
