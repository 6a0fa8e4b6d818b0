"""Examples of tasks as NumPy arrays, in batches, and as datasets of torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _core
from ._arrays import Batch, Error, text


class Task:
    """A task of the catalogue with its parameters; see task()."""

    def __init__(self, spec: str) -> None:
        self.spec = text("spec", spec, "a task such as 'mqar' or 'mqar[preset=small]'")
        self._task = _core.Task(spec)
        self._about = self._task.about()

    def __repr__(self) -> str:
        return f"attnbench.task({self.spec!r})"

    def __reduce__(self) -> tuple[Any, ...]:  # for worker processes of a DataLoader
        return Task, (self.spec,)

    def __getattr__(self, name: str) -> Any:
        """name, metric, chance, length, vocab, classes, channels, outputs, per_token, causal,
        pairs, real, edges: as tasks/api/task.h describes TaskShape."""
        about = self.__dict__.get("_about", {})
        if name not in about:
            raise AttributeError(f"a task has no '{name}'; it has {', '.join(about)}")
        return about[name]

    def count(self, split: str) -> int:
        """How many examples a split has: "train" has the parameter `train_examples` and repeats
        them, generated validation and test splits are endless (2**63 - 1)."""
        return self._task.count(split)

    def batch(self, split: str, first: int, size: int, seed: int = 0) -> Batch:
        """Examples first .. first + size - 1 of a split; the same bits for the same arguments.

        Raises Error where the split has fewer, or is none of train, validation and test.
        """
        if size < 1 or first < 0 or seed < 0:
            raise Error(f"a batch of {size} examples from {first} on, seed {seed}; "
                        "expected size >= 1, first >= 0 and seed >= 0")  # fmt: skip
        if first + size > self.count(split):
            raise Error(f"examples up to {first + size - 1} of {split}, "
                        f"which has {self.count(split)}")  # fmt: skip
        return Batch(**self._task.batch(split, first, size, seed), length=self.length)

    def batches(self, split: str, size: int, count: int, seed: int = 0) -> Iterator[Batch]:
        """The first `count` examples of a split, `size` at a time; the last batch may be smaller."""
        for first in range(0, count, size):
            yield self.batch(split, first, min(size, count - first), seed)

    def dataset(self, split: str, count: int, seed: int = 0) -> Any:
        """A torch Dataset of the first `count` examples of a split: each a dict of tensors without
        the dimension of the batch (`tokens` or `values`, `mask`, `labels`). Needs torch."""
        from ._torch_data import Examples

        return Examples(self, split, count, seed)

    def stream(self, split: str, size: int, seed: int = 0) -> Any:
        """A torch IterableDataset of batches of `size` examples, each a dict of tensors. The train
        split is repeated without end, in its order. Workers of a DataLoader (batch_size=None) take
        turns. Needs torch."""
        from ._torch_data import Stream

        return Stream(self, split, size, seed)


def task(spec: str) -> Task:
    """A task by its spec, as on the command line: `task("mqar[preset=small]")`.

    Raises Error for an unknown task or parameter, with the nearest known one.
    """
    return Task(spec)
