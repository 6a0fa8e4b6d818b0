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
        order, code = sorted_rounds(q, rotations, rounds, chunk, causal)
        place = order.argsort(dim=-1)  # of each position: [batch, heads, rounds, len]
        codes = sorted_chunks(code.unsqueeze(2).expand(-1, -1, rounds, -1, -1), order, chunk)
        visible = visible_pairs(codes, chunk, causal)

    def chunks(x: Tensor) -> Tensor:  # -> [batch, heads, rounds, chunks, chunk, head_dim]
        taken = x.unsqueeze(2).expand(-1, -1, rounds, -1, -1).gather(3, columns(order, dim))
        return padded(taken, -n % chunk).unflatten(3, (-1, chunk))

    logits = chunks(q) @ with_before(chunks(keys)).mT
    times = visible.sum(2)  # rounds that show the pair
    shown = visible.diagonal(dim1=2, dim2=3).movedim(-1, 2)  # in the round itself
    logits = (logits - times.clamp(min=1).log()).masked_fill(~shown, -torch.inf)
    itself = torch.eye(chunk, 2 * chunk, dtype=torch.bool).roll(chunk, dims=1)
    logits = logits.masked_fill(itself, LAST_RESORT)
    total = logits.logsumexp(-1, keepdim=True)
    out = torch.exp(logits - total) @ with_before(chunks(v))
    out, total = (
        x.flatten(3, 4)[:, :, :, :n].gather(3, columns(place, x.shape[-1])) for x in (out, total)
    )
    return (out * total.softmax(2)).sum(2)


def columns(index: Tensor, count: int) -> Tensor:
    return index.unsqueeze(-1).expand(*index.shape, count)


def with_before(x: Tensor) -> Tensor:
    """Each chunk behind the one before it; before the first there are zeros."""
    before = F.pad(x[:, :, :, :-1], (0, 0, 0, 0, 1, 0))
    return torch.cat([before, x], dim=4)


def sorted_rounds(
    q: Tensor, rotations: Tensor, rounds: int, chunk: int, causal: bool
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
    return order, (rank + 2 * n * bucket if causal else rank // chunk + 2 * bucket)


def sorted_chunks(code: Tensor, order: Tensor, chunk: int) -> Tensor:
    """The codes of every round in the order of each: [batch, heads, rounds, rounds of the codes,
    chunks, chunk]; -1 behind the end."""
    places = order.unsqueeze(3).expand_as(code)
    taken = code.gather(4, places)
    return F.pad(taken, (0, -taken.shape[-1] % chunk), value=-1).unflatten(-1, (-1, chunk))


def visible_pairs(codes: Tensor, chunk: int, causal: bool) -> Tensor:
    """[batch, heads, rounds of the codes, rounds, chunks, chunk, 2 * chunk]: who sees whom in a
    round, of the pairs that meet in another."""
    before = F.pad(codes[..., :-1, :], (0, 0, 1, 0), value=-1)
    keys = torch.cat([before, codes], dim=-1).transpose(2, 3).unsqueeze(-2)
    queries = codes.transpose(2, 3).unsqueeze(-1)
    apart = queries - keys
    near = (apart >= 1) & (apart <= chunk) if causal else (apart == 0) | (apart == 1)
    itself = torch.eye(chunk, 2 * chunk, dtype=torch.bool).roll(chunk, dims=1)
    return near & (keys >= 0) & (queries >= 0) & ~itself


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
