"""Attention within sorted groups: Reformer's hashes and Sinkhorn's blocks, as users write them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .inputs import hash_shape
from .torch_patterns import bias_of, padded

LAST_RESORT = -1e5  # a query's logit with itself: it counts only where there is no other key


def reformer(
    q: Tensor, v: Tensor, rotations: Tensor, rounds: int, chunk: int, causal: bool = False
) -> Tensor:
    """Each round sorts the positions by bucket; a chunk of sorted queries meets its own keys and
    those of the chunk before, of the same bucket. A key that several rounds show counts once.
    Queries are the keys, at length one. Causal, a query sees the last `chunk` earlier members."""
    n, dim = q.shape[2:]
    keys = q * torch.rsqrt(q.square().sum(-1, keepdim=True) + 1e-6 * dim)
    with torch.no_grad():
        order, code = sorted_rounds(q, rotations, chunk, causal)
        place = order.argsort(dim=-1)  # of each position: [batch, heads, rounds, len]
        shown, times = visible_pairs(code, order, chunk, causal)
        bias = -times.clamp(min=1).log()
        bias = bias.masked_fill_(~shown, -torch.inf)
        itself = torch.eye(chunk, 2 * chunk, dtype=torch.bool).roll(chunk, dims=1)

    def chunks(x: Tensor) -> Tensor:  # -> [batch, heads, rounds, chunks, chunk, head_dim]
        taken = x.unsqueeze(2).expand(-1, -1, rounds, -1, -1).gather(3, columns(order, dim))
        return padded(taken, -n % chunk).unflatten(3, (-1, chunk))

    logits = chunks(q) @ with_before(chunks(keys)).mT + bias
    logits = logits.masked_fill(itself, LAST_RESORT)
    most = logits.detach().amax(-1, keepdim=True)
    weights = torch.exp(logits - most)
    total = weights.sum(-1, keepdim=True)
    out = weights @ with_before(chunks(v)) / total
    out, total = (
        x.flatten(3, 4)[:, :, :, :n].gather(3, columns(place, x.shape[-1]))
        for x in (out, total.log() + most)
    )
    return (out * total.softmax(2)).sum(2)


def columns(index: Tensor, count: int) -> Tensor:
    return index.unsqueeze(-1).expand(*index.shape, count)


def with_before(x: Tensor) -> Tensor:
    """Each chunk behind the one before it; before the first there are zeros."""
    before = F.pad(x[:, :, :, :-1], (0, 0, 0, 0, 1, 0))
    return torch.cat([before, x], dim=4)


def sorted_rounds(
    q: Tensor, rotations: Tensor, chunk: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """The positions in the order of their buckets, and a code of each position, both [batch, heads,
    rounds, len]. A query sees the keys whose code is 0 or 1 below its own; causal, 1 to `chunk`."""
    n = q.shape[2]
    first, second = hash_shape(max(4, 2 * -(-n // chunk)))
    scores = torch.einsum("bhnd,hrkd->bhrnk", q, rotations)

    def half(x: Tensor) -> Tensor:
        return torch.cat([x, -x], dim=-1).argmax(-1)

    bucket = half(scores[..., :first])
    if second:
        bucket = bucket * 2 * second + half(scores[..., first:])
    order = (bucket * n + torch.arange(n)).argsort(dim=-1)
    rank = order.argsort(dim=-1)
    code = rank + 2 * n * bucket if causal else rank // chunk + 2 * bucket
    return order, code.int()


def visible_pairs(
    code: Tensor, order: Tensor, chunk: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """Of the pairs that meet in a round, [batch, heads, rounds, chunks, chunk, 2 * chunk]: whether
    it shows them, and how many rounds do."""
    rounds = code.shape[2]
    far = torch.iinfo(torch.int32).max // 4
    times, own = None, []
    for other in range(rounds):
        there = code[:, :, other : other + 1].expand_as(order).gather(3, order)
        rest = -there.shape[-1] % chunk
        queries = F.pad(there, (0, rest), value=-far).unflatten(-1, (-1, chunk))
        keys = F.pad(there, (chunk, rest), value=far).unflatten(-1, (-1, chunk))
        keys = torch.cat([keys[:, :, :, :-1], keys[:, :, :, 1:]], dim=-1)
        apart = queries.unsqueeze(-1) - keys.unsqueeze(-2)
        near = (apart > 0) & (apart <= chunk) if causal else (apart >> 1) == 0
        own.append(near[:, :, other])
        times = near.float() if times is None else times.add_(near)
    return torch.stack(own, dim=2), times


def sinkhorn(
    q: Tensor, k: Tensor, v: Tensor, sort: Tensor, block: int, iterations: int,
    temperature: float = 0.75,
) -> Tensor:  # fmt: skip
    """Block scores, balanced in logarithms; each block of queries meets its own keys and the block
    that is sorted to it, a mixture of all blocks."""
    n = q.shape[2]
    rest = -n % block
    rows, keys, values = (padded(x, rest).unflatten(2, (-1, block)) for x in (q, k, v))
    scores = F.relu(rows.sum(3)) @ sort / temperature  # [batch, heads, blocks, blocks]
    for _ in range(iterations):
        scores = scores - scores.logsumexp(-2, keepdim=True)
        scores = scores - scores.logsumexp(-1, keepdim=True)
    weights = scores.exp()
    whole = torch.ones(block)
    if rest:  # of rows that the last block lacks the other blocks' mixture is normalised
        whole = whole.masked_fill(torch.arange(block) >= block - rest, 0)
        whole = 1 - weights[..., -1:] * (1 - whole)  # [batch, heads, blocks, block]
        whole = whole.unsqueeze(-1)
    else:
        whole = whole.unsqueeze(-1)

    def sorted_and_own(x: Tensor) -> Tensor:  # [batch, heads, blocks, 2 * block, head_dim]
        mixed = (weights @ x.flatten(3)).view_as(x) / whole
        return torch.cat([mixed, x], dim=3).flatten(0, 1)

    bias = None
    if rest:
        seen = torch.ones(scores.shape[-1], 1, 2 * block, dtype=torch.bool)
        seen[-1, :, 2 * block - rest :] = False
        bias = bias_of(seen).expand(-1, -1, block, -1)
    out = F.scaled_dot_product_attention(
        rows.flatten(0, 1), sorted_and_own(keys), sorted_and_own(values), attn_mask=bias
    )
    return out.flatten(1, 2)[:, :n].view(q.shape)
