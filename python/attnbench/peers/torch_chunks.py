"""Sums over the past that decay, in chunks of positions, as a careful PyTorch user writes them: pairs
of a chunk by matrix products, and a state [.., columns of keys, columns of values] from each chunk to
the next. Yang et al. 2023, arXiv:2312.06635, section 4; Dao and Gu 2024, arXiv:2405.21060, section 6.

Rows are [batch, heads, len, width], cut to [batch, heads, chunks, CHUNK, width]. A log-decay has one
number a position, or one for each column of the keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_parts import cut, joined, later

SUB = 16  # rows whose decays of each column are factors of rows and of keys: exp(-8 steps) is a number


@dataclass(frozen=True)
class Rows:
    """What meets keys: rows, what they have decayed by, and whether they miss the key of their own
    position."""

    rows: Tensor
    at: Tensor
    strict: bool = False


def pairs(rows: Rows, keys: Tensor, keys_at: Tensor) -> Tensor:
    """rows_i·(exp(at_i - keys_at_j)⊙keys_j) for j <= i, or where strict for j < i, else 0."""
    return all_pairs([rows], [keys], keys_at)[0][0]


def all_pairs(all_rows: list[Rows], all_keys: list[Tensor], keys_at: Tensor) -> list[list[Tensor]]:
    """Each rows with each keys: of the decays of each column the factors are made once."""
    if keys_at.shape[-1] == 1:
        assert all(x.at is keys_at for x in all_rows)
        left = falling(keys_at - keys_at.mT)
        return [
            [((x.rows @ k.mT) * left).tril(-int(x.strict)) for k in all_keys] for x in all_rows
        ]
    size = keys_at.shape[-2]
    found: list[list[list[Tensor]]] = [[[] for _ in all_keys] for _ in all_rows]
    for start in range(0, size, SUB):  # exponents above 0 span half of a strip
        end = min(start + SUB, size)
        middle = keys_at[..., (start + end) // 2, :].unsqueeze(-2)
        grown = (middle - keys_at[..., :end, :]).exp()
        rights = [(keys[..., :end, :] * grown).mT for keys in all_keys]
        for x, strips in zip(all_rows, found):
            left = x.rows[..., start:end, :] * (x.at[..., start:end, :] - middle).exp()
            for right, strip in zip(rights, strips):
                strip.append(F.pad(left @ right, (0, size - end)))
    return [
        [torch.cat(strip, dim=-2).tril(-int(x.strict)) for strip in strips]
        for x, strips in zip(all_rows, found)
    ]


def falling(exponents: Tensor) -> Tensor:
    """e^x on and below the diagonal, else 0; what stands above may be too large for exp."""
    return exponents.masked_fill(later(exponents), -torch.inf).exp()


def states_before(decay: Tensor, sums: Tensor) -> Tensor:
    """The state before each chunk, from what each chunk adds [batch, heads, chunks, ..] and what a chunk
    leaves of the state before it, of the same rank."""
    found = [torch.zeros_like(sums[:, :, 0])]
    for left, more in list(chunk_by_chunk(decay, sums))[:-1]:
        found.append(torch.addcmul(more, left, found[-1]))
    return torch.stack(found, dim=2)


def decayed(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, bonus: Tensor | None = None
) -> Tensor:
    """q_i·S_i with S_i = exp(log_decay_i)⊙S_{i-1} + k_iᵀ·v_i. With a bonus [heads, columns], q_i
    reads S_{i-1} + bonus⊙k_iᵀ·v_i."""
    length = q.shape[2]
    q, k, v, log_decay = (cut(x) for x in (q, k, v, log_decay))
    at = log_decay.cumsum(3)
    last = at[..., -1:, :]
    rows_at = at if bonus is None else at - log_decay
    before = states_before(last.exp().mT, (k * (last - at).exp()).mT @ v)
    near = pairs(Rows(q, rows_at, strict=bonus is not None), k, at)
    out = near @ v + (q * rows_at.exp()) @ before
    if bonus is not None:
        out = out + (q * k * bonus[:, None, None]).sum(-1, keepdim=True) * v
    return joined(out, length)


def delta_rule(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, log_decay: Tensor | None = None
) -> Tensor:
    """q_i·S_i with S̄ = exp(log_decay_i)⊙S_{i-1}, S_i = S̄ + beta_i·k_iᵀ·(v_i - k_i·S̄). What a chunk
    writes solves a triangular system. Yang et al. 2024, arXiv:2406.06484, section 3."""
    length, dim = q.shape[2:]
    q, k, v, written = (cut(x) for x in (q, k, v * beta, k * beta))
    kept, left = k, q.new_ones(1).expand(1, 1, q.shape[2], 1, 1)
    if log_decay is None:
        system, scores = (written @ k.mT).tril(-1), (q @ k.mT).tril()
    else:
        at = cut(log_decay).cumsum(3)
        last = at[..., -1:, :]
        [system], [scores] = all_pairs([Rows(written, at, strict=True), Rows(q, at)], [k], at)
        grown = at.exp()
        q, kept, written = q * grown, k * (last - at).exp(), written * grown
        left = last.exp().mT
    values, keys = solved(system, torch.cat([v, written], dim=-1)).split(dim, dim=-1)
    state, out = q.new_zeros(*q.shape[:2], dim, dim), []
    for value, key, score, read, keep, own in chunk_by_chunk(
        values, keys, scores, q, kept.mT, left
    ):
        new = value - key @ state
        out.append(score @ new + read @ state)
        state = state * own + keep @ new
    return joined(torch.stack(out, dim=2), length)


def chunk_by_chunk(*arrays: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Of all arrays the parts of each chunk. Indexing would cost the backward pass a whole array a
    chunk."""
    return zip(*(x.unbind(2) for x in arrays))


def solved(system: Tensor, right: Tensor, upper: bool = False) -> Tensor:
    """x of (I + system)·x = right; system has zeros on the diagonal and above, or `upper` below."""
    return torch.linalg.solve_triangular(system, right, upper=upper, unitriangular=True)
