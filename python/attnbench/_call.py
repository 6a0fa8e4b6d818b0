"""A forward pass of the library that can be made again."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import KINDS


class Call:
    """A forward pass that can be made again: everything but the arrays."""

    def __init__(self, spec: str, causal: bool, kv_lengths: list[int], names: list[str],
                 seed: int, threads: int) -> None:  # fmt: skip
        self.spec, self.causal, self.kv_lengths = spec, causal, kv_lengths
        self.names, self.seed, self.threads = names, seed, threads

    def forward(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, weights: list[np.ndarray],
                gradients: bool) -> Any:  # fmt: skip
        named = dict(zip(self.names, weights))
        return _core.forward(self.spec, q, k, v, self.causal, self.kv_lengths, named, self.seed,
                             self.threads, gradients, KINDS[q.dtype])  # fmt: skip
