"""Examples of a task, and what datasets need of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Batch:
    """`size` examples, padded to the task's length. What the task does not have is None.

    Pairs of documents have a dimension more, [size, 2, length]. The arrays hold the library's own
    memory; they are yours to change.
    """

    tokens: np.ndarray | None  # int32 [size, length], 0 is padding
    values: np.ndarray | None  # float32 [size, length, channels], in place of tokens
    lengths: np.ndarray  # int64 [size]: positions that are no padding
    # int32 [size]: a class; [size, length]: a class a position, or [size, outputs]: an output
    # sequence; -1 where there is no label.
    targets: np.ndarray | None
    wanted: np.ndarray | None  # float32 [size], the number to predict, in place of targets
    # (first [size · length + 1], keys): query r of the batch may see keys[first[r]:first[r + 1]].
    edges: tuple[np.ndarray, np.ndarray] | None
    length: int  # of the longest example of the task

    @property
    def mask(self) -> np.ndarray:
        """bool [size, length]: True where a position is no padding."""
        return np.arange(self.length) < self.lengths[..., None]

    @property
    def labels(self) -> np.ndarray:
        """`targets`, or `wanted` where the answer is a number."""
        return self.targets if self.wanted is None else self.wanted

    def __len__(self) -> int:
        return len(self.lengths)


class Source(Protocol):
    """What a dataset takes its examples from: a Task."""

    spec: str

    @property
    def real(self) -> bool: ...

    @property
    def edges(self) -> bool: ...

    def count(self, split: str) -> int: ...

    def batch(self, split: str, first: int, size: int, seed: int) -> Batch: ...
