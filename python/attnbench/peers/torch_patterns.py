"""Softmax attention over a fixed pattern of keys, in blocks, as a careful PyTorch user writes it.

q, k, v are [batch, heads, len, head_dim] with one length for all. A block of queries meets the keys
that any of them sees, gathered side by side; a bias hides what a single query does not see.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_parts import cut


def blocked(x: Tensor, size: int) -> Tensor:
    """[batch, heads, len, head_dim] -> [batch * heads, blocks, size, head_dim], zeros behind."""
    return cut(x, size).flatten(0, 1)


def unblocked(x: Tensor, q: Tensor) -> Tensor:
    """[batch * heads, blocks, size, width] -> [batch, heads, len, width], as many rows as q has."""
    return x.flatten(1, 2)[:, : q.shape[2]].unflatten(0, q.shape[:2])


def neighbours(x: Tensor, size: int, before: int, after: int) -> Tensor:
    """Each block with those before and after it: [.., blocks, (before + 1 + after) * size, ..]."""
    blocks = -(-x.shape[2] // size)
    x = F.pad(x, (0, 0, before * size, blocks * size - x.shape[2] + after * size))
    x = x.flatten(0, 1).unflatten(1, (-1, size))
    return torch.cat([x[:, i : i + blocks] for i in range(before + 1 + after)], dim=2)


def positions(length: int, size: int, before: int, after: int) -> tuple[Tensor, Tensor]:
    """Of the rows of blocked() and of neighbours(): [blocks, size, 1], [blocks, 1, keys]."""
    blocks = -(-length // size)
    query = torch.arange(blocks * size).view(blocks, size, 1)
    first = torch.arange(blocks).view(blocks, 1, 1) * size - before * size
    return query, first + torch.arange((before + 1 + after) * size)


def behind_first(near: Tensor, x: Tensor, first: int) -> Tensor:
    """The rows that neighbours() gives each block of x, behind the `first` rows of x."""
    columns = x[:, :, :first].flatten(0, 1).unsqueeze(1).expand(-1, near.shape[1], -1, -1)
    return torch.cat([columns, near], dim=2)


def bias_of(seen: Tensor) -> Tensor:
    """0 where a query sees a key, -inf elsewhere. Of rank 4, or PyTorch does not take its fused
    kernel."""
    return torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf).unsqueeze(0)


def truncated(q: Tensor, k: Tensor, v: Tensor, window: int, causal: bool = False) -> Tensor:
    """Keys within `window` positions of the query, causal: before it. Blocks of `window` queries
    see their own block of keys and its neighbours; a bias cuts the band out of them."""
    around = (window, 1, 0 if causal else 1)
    bias = band_bias(q.shape[2], window, 0, causal)
    out = F.scaled_dot_product_attention(
        blocked(q, window), neighbours(k, *around), neighbours(v, *around), attn_mask=bias
    )
    return unblocked(out, q)


@lru_cache(maxsize=1)
@torch.inference_mode(False)  # a later backward may keep it
def band_bias(length: int, window: int, first: int, causal: bool) -> Tensor:
    """[1, blocks, window, keys]: the band, of which the `first` keys are left to columns of their
    own, before those of the neighbours."""
    query, key = positions(length, window, 1, 0 if causal else 1)
    seen = (key >= first) & (key < length) & (key >= query - window)
    seen &= key <= (query if causal else query + window)
    column = torch.arange(first).expand(query.shape[0], 1, first)
    own = (column <= query) if causal else (column <= query.clamp(min=length))
    seen = torch.cat([own, seen], dim=2)
    seen |= query >= length  # rows of padding, cut off later: kept free of 0/0
    return bias_of(seen)


def longformer(
    q: Tensor, k: Tensor, v: Tensor, window: int, global_tokens: int, causal: bool = False
) -> Tensor:
    """The band of truncated() and columns for the first positions, under one softmax. These
    positions' own queries see everything."""
    n, first = q.shape[2], global_tokens
    around = (window, 1, 0 if causal else 1)

    def keys(x: Tensor) -> Tensor:  # [batch * heads, blocks, first + (2 or 3) * window, head_dim]
        return behind_first(neighbours(x, *around), x, first)

    bias = band_bias(n, window, first, causal)
    out = F.scaled_dot_product_attention(blocked(q, window), keys(k), keys(v), attn_mask=bias)
    out = unblocked(out, q)
    if causal:  # what a first position sees are first positions
        return out
    all_seen = F.scaled_dot_product_attention(q[:, :, :first], k, v)
    return torch.cat([all_seen, out[:, :, first:]], dim=2)


def local(
    q: Tensor, k: Tensor, v: Tensor, block: int, look_back: int, causal: bool = False
) -> Tensor:
    """Blocks of queries, their own block of keys and `look_back` blocks before it."""
    out = F.scaled_dot_product_attention(
        blocked(q, block), neighbours(k, block, look_back, 0), neighbours(v, block, look_back, 0),
        attn_mask=block_bias(q.shape[2], block, look_back, causal),
    )  # fmt: skip
    return unblocked(out, q)


@lru_cache(maxsize=1)
@torch.inference_mode(False)
def block_bias(length: int, block: int, look_back: int, causal: bool) -> Tensor:
    query, key = positions(length, block, look_back, 0)
    seen = (key >= 0) & (key < length) & ((key <= query) if causal else (query >= 0))
    return bias_of(seen | (query >= length))


def sparse(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Keys nearer than √n, in blocks, and every √n-th key, as columns of a table with √n columns;
    one softmax over both."""
    n, dim = q.shape[2:]
    stride = round(n**0.5)
    after = 0 if causal else 1
    near_bias, far_bias = strided_bias(n, stride, causal)

    def columns(x: Tensor) -> Tensor:  # -> [batch * heads, stride, blocks, ..]
        return x.transpose(1, 2)

    rows = blocked(q * dim**-0.5, stride)  # [batch * heads, blocks, stride, head_dim]
    own_k, own_v = columns(blocked(k, stride)), columns(blocked(v, stride))
    near = rows @ neighbours(k, stride, 1, after).mT + near_bias
    far = columns(rows) @ own_k.mT + far_bias
    weights = torch.cat([near, columns(far)], dim=-1).softmax(-1)
    near, far = weights.split([near.shape[-1], far.shape[-1]], dim=-1)
    out = near @ neighbours(v, stride, 1, after) + columns(columns(far) @ own_v)
    return unblocked(out, q)


@lru_cache(maxsize=1)
@torch.inference_mode(False)
def strided_bias(length: int, stride: int, causal: bool) -> tuple[Tensor, Tensor]:
    """[blocks, stride, keys] and [stride, blocks, blocks]. What is in the query's column is not
    seen again near it."""
    query, key = positions(length, stride, 1, 0 if causal else 1)
    near = (key >= 0) & (key < length) & ((query - key).abs() < stride) & (key != query)
    table = torch.arange(query.numel()).view(-1, stride).T  # [stride, blocks]
    row, column = table.unsqueeze(2), table.unsqueeze(1)
    far = (column < length) | (row >= length)
    if causal:
        near, far = near & (key < query), far & (column <= row)
    return bias_of(near)[0], bias_of(far)[0]


class bigbird:
    """Each block of queries meets the blocks that it sees, gathered; those that see all meet all.

    `pattern` [heads, blocks, blocks] says which; the gathering is prepared once. Of the blocks that
    see all there are the same in every head."""

    def __init__(self, length: int, causal: bool, pattern: Tensor, block: int) -> None:
        self.block, self.causal = block, causal
        heads, blocks, _ = pattern.shape
        whole = pattern.all(dim=2).all(dim=0) & (not causal)
        self.whole, self.others = whole.nonzero()[:, 0], (~whole).nonzero()[:, 0]
        seen = pattern[:, self.others]  # [heads, others, blocks]
        most = int(seen.sum(-1).max()) if len(self.others) else 0
        listed = seen.int().argsort(dim=-1, descending=True, stable=True)[..., :most]
        used = seen.gather(2, listed)  # fewer than the most: slots that nobody sees
        self.listed = (listed + torch.arange(heads).view(-1, 1, 1) * blocks).flatten()
        key = (listed.unsqueeze(-1) * block + torch.arange(block)).flatten(2).unsqueeze(2)
        query = (self.others.unsqueeze(1) * block + torch.arange(block)).unsqueeze(-1)
        shown = used.repeat_interleave(block, dim=2).unsqueeze(2) & (key < length)
        shown = shown & (key <= query) if causal else shown.expand(-1, -1, block, -1)
        self.bias = bias_of(shown | (query >= length))[0]  # [heads, others, block, most * block]

    def gathered(self, x: Tensor) -> Tensor:  # [batch, heads, len, head_dim]
        batch, heads, _, dim = x.shape
        x = cut(x, self.block).flatten(1, 2).index_select(1, self.listed)
        return x.view(batch * heads, len(self.others), -1, dim)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        batch = q.shape[0]
        rows = blocked(q, self.block)
        out = torch.zeros_like(rows)
        if len(self.others):
            bias = self.bias.repeat(batch, 1, 1, 1) if batch > 1 else self.bias
            near = F.scaled_dot_product_attention(
                rows.index_select(1, self.others), self.gathered(k), self.gathered(v),
                attn_mask=bias,
            )  # fmt: skip
            out = out.index_copy(1, self.others, near)
        if len(self.whole):
            ends = rows.index_select(1, self.whole).flatten(1, 2).unflatten(0, q.shape[:2])
            all_seen = F.scaled_dot_product_attention(ends, k, v)
            all_seen = all_seen.flatten(0, 1).unflatten(1, (-1, self.block))
            out = out.index_copy(1, self.whole, all_seen)
        return unblocked(out, q)


class graph:
    """Attention along edges: a logit for each, a softmax over those of a query by scatter_reduce,
    and a sum by index_add. `pattern` [2, edges]: queries and keys."""

    def __init__(self, length: int, causal: bool, pattern: Tensor, degree: int) -> None:
        self.query, self.key = pattern

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scale = q.shape[3] ** -0.5
        rows, keys = q.index_select(2, self.query), k.index_select(2, self.key)
        logits = (rows * keys).sum(-1) * scale  # [batch, heads, edges]
        query = self.query.expand_as(logits)
        most = logits.new_full(q.shape[:3], -torch.inf)
        most = most.scatter_reduce(2, query, logits.detach(), "amax")
        weights = torch.exp(logits - most.index_select(2, self.query))
        total = torch.zeros_like(most).index_add(2, self.query, weights)
        values = v.index_select(2, self.key) * weights.unsqueeze(-1)
        return torch.zeros_like(q).index_add(2, self.query, values) / total.unsqueeze(-1)


VARIANTS = {
    made.__name__: made for made in (truncated, longformer, local, sparse, bigbird, graph)
}
