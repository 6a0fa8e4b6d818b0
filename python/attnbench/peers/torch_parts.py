"""What several of the variants in PyTorch share: rows cut into chunks and strips, rows of length 1, what
causality hides. Rows are [batch, heads, len, width]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 64  # of causal sums: the fastest of 32, 64, 128 and 256 at length 4096


def always_causal(made: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """For a variant that never sees the future: drops the argument that says so."""

    @wraps(made)
    def call(causal: bool, **given: Any) -> Tensor:
        assert causal
        return made(**given)

    return call


def padded(x: Tensor, rows: int) -> Tensor:
    """So many rows of zeros behind."""
    return F.pad(x, (0, 0, 0, rows)) if rows else x  # F.pad copies, whatever it pads


def cut(x: Tensor, chunk: int = CHUNK) -> Tensor:
    """[batch, heads, chunks, chunk, width]. Zeros fill the last chunk: they write nothing and decay
    nothing."""
    return padded(x, -x.shape[2] % chunk).unflatten(2, (-1, chunk))


def joined(x: Tensor, length: int) -> Tensor:
    """The rows that cut() has cut."""
    return x.flatten(2, 3)[:, :, :length]


def strips(length: int, rows: int, causal: bool) -> Iterator[tuple[slice, slice]]:
    """Slices of so many queries at a time, and of the keys that they meet: where causal, no key after the
    last of these queries."""
    for start in range(0, length, rows):
        end = min(start + rows, length)
        yield slice(start, end), slice(0, end if causal else length)


def later(scores: Tensor, start: int = 0) -> Tensor:
    """[rows, keys]: true at the keys after each query; the first query has the position `start`."""
    return torch.ones(scores.shape[-2:], dtype=torch.bool).triu(start + 1)


def unit(x: Tensor, least: float = 1e-6) -> Tensor:
    """Rows of length 1; `least` is added to the square of the length."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + least)


def like(index: Tensor, x: Tensor) -> Tensor:
    """An index of rows, for gather and scatter_add of whole rows as wide as those of x."""
    return index.unsqueeze(-1).expand(*index.shape, x.shape[-1])


def rows_of(x: Tensor) -> Tensor:
    """[batch, heads, len, head_dim] -> [batch, len, width]"""
    return x.transpose(1, 2).flatten(2)


def heads_of(x: Tensor, heads: int) -> Tensor:
    """[batch, len, width] -> [batch, heads, len, head_dim]"""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def turned(x: Tensor, by: Tensor) -> Tensor:
    """Each pair of neighbouring columns as a complex number, times another."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * by).flatten(-2)
