"""Tasks as datasets of torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from ._arrays import Batch, Error, Source


def tensors_of(batch: Batch, labels: torch.dtype) -> dict[str, torch.Tensor]:
    """Tensors over the memory of the batch, labels aside: losses of torch take classes as int64."""
    inputs = {"tokens": batch.tokens, "values": batch.values, "mask": batch.mask}
    found = {name: torch.from_numpy(a) for name, a in inputs.items() if a is not None}
    return {**found, "labels": torch.from_numpy(batch.labels).to(labels)}


def _kind_of_labels(task: Source) -> torch.dtype:
    if task.edges:
        raise Error(f"{task.spec} has edges, which no tensor of one shape holds; "
                    "use batch()")  # fmt: skip
    return torch.float32 if task.real else torch.int64


class Examples(Dataset):
    """See Task.dataset()."""

    def __init__(self, task: Source, split: str, count: int, seed: int) -> None:
        if not 1 <= count <= task.count(split):
            raise Error(f"{count} examples of {split}, which has {task.count(split)}")
        self.task, self.split, self.count, self.seed = task, split, count, seed
        self.labels = _kind_of_labels(task)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        if not 0 <= index < self.count:
            raise IndexError(f"example {index} of {self.count}")
        batch = self.task.batch(self.split, index, 1, self.seed)
        return {name: tensor[0] for name, tensor in tensors_of(batch, self.labels).items()}


class Stream(IterableDataset):
    """See Task.stream()."""

    def __init__(self, task: Source, split: str, size: int, seed: int) -> None:
        if not 1 <= size <= task.count(split):
            raise Error(f"batches of {size} examples of {split}, which has {task.count(split)}")
        self.task, self.split, self.size, self.seed = task, split, size, seed
        self.labels = _kind_of_labels(task)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = get_worker_info()
        turn, step = (worker.id, worker.num_workers) if worker else (0, 1)
        whole = self.task.count(self.split) // self.size  # batches of one pass
        while True:
            first = turn % whole * self.size
            yield tensors_of(self.task.batch(self.split, first, self.size, self.seed), self.labels)
            turn += step
