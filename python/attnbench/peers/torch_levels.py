"""Attention to keys on several levels in PyTorch, one softmax over all: LongNet's segments with
gaps, and H-Transformer-1D's means of 2, 4, 8, ... positions.

q, k, v are [batch, heads, len, head_dim] with one length for all. Each level gives outputs of its
own and the log-sum-exp of its logits, by which the levels are joined."""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_parts import always_causal, cut, padded
from .torch_patterns import behind_first, bias_of, blocked, neighbours, positions, unblocked

ROWS = 128  # queries of a block that meets a window of keys


def sinks(q: Tensor, k: Tensor, v: Tensor, window: int, sinks: int) -> Tensor:
    """The first positions and the last ones up to the query's own."""
    return windowed(q, k, v, window, sinks)


def windowed(q: Tensor, k: Tensor, v: Tensor, window: int, first: int = 0) -> Tensor:
    """Causal attention to the last `window` positions, the own one among them, and to the `first`
    ones: blocks of queries, the blocks of keys that any of them sees, columns for the first."""
    n = q.shape[2]
    if n <= window:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    before = -(-(window - 1) // ROWS)

    def keys(x: Tensor) -> Tensor:  # [batch * heads, blocks, first + (before + 1) * ROWS, head_dim]
        near = neighbours(x, ROWS, before, 0)
        return behind_first(near, x, first) if first else near

    bias = window_bias(n, window, first, before)
    out = F.scaled_dot_product_attention(blocked(q, ROWS), keys(k), keys(v), attn_mask=bias)
    return unblocked(out, q)


@lru_cache(maxsize=1)
@torch.inference_mode(False)  # a later backward may keep it
def window_bias(length: int, window: int, first: int, before: int) -> Tensor:
    query, key = positions(length, ROWS, before, 0)
    near = (key >= first) & (key <= query) & (key > query - window)
    return bias_of(torch.cat([torch.arange(first) <= query, near], dim=2))


def weighed(logits: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax attention, and the log of the sum that it divides by. A row that sees nothing gets
    zeros and the least number."""
    weights, total, most = exponentials(logits)
    return weights @ v / total, total.log() + most


def exponentials(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """e^(logits - most), their sum, and most. Without a seen key zeros over a tiny sum: neither
    outputs nor gradients are NaN."""
    limits = torch.finfo(logits.dtype)
    most = logits.detach().amax(-1, keepdim=True).clamp(min=limits.min)
    weights = torch.exp(logits - most)
    return weights, weights.sum(-1, keepdim=True).clamp(min=limits.tiny), most


def merged(parts: list[Tensor], logs: list[Tensor]) -> Tensor:
    """Outputs weighted by the softmax of their log-sum-exps, [.., 1] each."""
    if len(parts) == 1:
        return parts[0]
    shares = torch.cat(logs, dim=-1).softmax(-1).split(1, dim=-1)
    out = parts[0] * shares[0]
    for part, share in zip(parts[1:], shares[1:]):
        out = out + part * share
    return out


class dilated:
    """Each level gathers the positions that see each other, of each head its own, and attends
    inside their segments. Who sees whom is listed once."""

    def __init__(self, length: int, causal: bool, segment: int, ratio: int, levels: int) -> None:
        self.length, self.causal, self.segment = length, causal, segment
        self.steps = [ratio**level for level in range(levels)]
        self.lists: list[tuple[Tensor, ...]] = []  # of each level

    @torch.inference_mode(False)
    def listed(self, heads: int, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of all heads, each with a row of zeros behind it, in the order of their segments;
        the bias that hides these zeros [heads, segments, rows or 1, rows]; where the result of each
        position stands [heads * len], behind all others where there is none."""
        n, whole = self.length, self.segment * step
        segments, rows = -(-n // whole), min(self.segment, -(-n // step))
        own = torch.arange(heads).view(-1, 1, 1)
        place = torch.arange(segments).view(-1, 1) * whole + torch.arange(rows) * step
        place = place + own // -(-heads // step)
        place = place.where(place < n, n)  # [heads, segments, rows]
        seen = (place < n).unsqueeze(2)
        if self.causal:
            seen = seen & torch.ones(rows, rows, dtype=torch.bool).tril()
        count = segments * rows
        back = torch.full((heads, n + 1), count)
        back = back.scatter(1, place.flatten(1), torch.arange(count).expand(heads, -1))[:, :-1]
        back = back + torch.arange(heads).view(-1, 1) * (count + 1)
        return (place + own * (n + 1)), bias_of(seen)[0], back.flatten()

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        heads, n = q.shape[1:3]
        if not self.lists:
            self.lists = [self.listed(heads, step) for step in self.steps]
        q = q * q.shape[3] ** -0.5
        parts, logs = [], []
        for place, bias, back in self.lists:

            def gathered(x: Tensor, place: Tensor = place) -> Tensor:
                rows = padded(x, 1).flatten(1, 2).index_select(1, place.flatten())
                return rows.unflatten(1, place.shape)

            def spread(x: Tensor, empty: float, back: Tensor = back) -> Tensor:
                x = F.pad(x.flatten(2, 3), (0, 0, 0, 1), value=empty).flatten(1, 2)
                return x.index_select(1, back).unflatten(1, (heads, n))

            out, log = weighed(gathered(q) @ gathered(k).mT + bias, gathered(v))
            parts.append(spread(out, 0.0))
            logs.append(spread(log, -torch.inf))
        return merged(parts, logs)


class hierarchical:
    """Level 0 is exact between neighbouring blocks; at a further level half a block of means meets
    the half blocks that its finer level leaves of both neighbours. A mean counts as often as it has
    positions."""

    def __init__(self, length: int, causal: bool, block: int) -> None:
        self.length, self.causal, self.block = length, causal, block
        query, key = positions(length, block, 1, 0 if causal else 1)
        seen = (key >= 0) & (key < length) & ((key <= query) if causal else (query >= 0))
        self.near = bias_of(seen | (query >= length))
        self.sizes = []  # of the means of further levels
        while -(-length // (block * 2 ** len(self.sizes))) > 2:
            self.sizes.append(2 ** (len(self.sizes) + 1))

    def means(self, x: Tensor, size: int) -> Tensor:
        return cut(x, size).sum(3) / self.counts(size).clamp(min=1).unsqueeze(1)

    def counts(self, size: int) -> Tensor:
        """Positions of each cell."""
        cells = torch.arange(-(-self.length // size))
        return (self.length - cells * size).clamp(max=size)

    def far(self, q: Tensor, k: Tensor, v: Tensor, size: int) -> tuple[Tensor, Tensor]:
        half = self.block // 2  # of a level's blocks, each the cells of one block of the finer one
        queries = (q[:, :, ::size] if self.causal else self.means(q, size)) * q.shape[3] ** -0.5
        cells = queries.shape[2]
        before, after = 3, 0 if self.causal else 3
        keys, values = (
            neighbours(self.means(x, size), half, before, after) for x in (k, v)
        )  # [batch * heads, halves, 7 or 4 halves of cells, head_dim]
        # Of the half blocks at -3, -2, .., 3 an even one sees -2, 2 and 3, an odd one -3, -2 and 2.
        even, odd = ([1], [0, 1]) if self.causal else ([1, 5, 6], [0, 1, 5])
        counts = self.counts(size).float().log()
        rest = -cells % half
        counts = F.pad(counts, (before * half, after * half + rest), value=-torch.inf)
        counts = counts.unfold(0, keys.shape[2], half)  # [halves, keys]
        rows = blocked(queries, half)
        found = []
        for first, seen in ((0, even), (1, odd)):
            columns = torch.cat([torch.arange(half) + part * half for part in seen])
            near_k, near_v = (x[:, first::2].index_select(2, columns) for x in (keys, values))
            times = counts[first::2].index_select(1, columns).unsqueeze(1)
            found.append(weighed(rows[:, first::2] @ near_k.mT + times, near_v))
        out, log = (interleaved(a, b) for a, b in zip(*found))
        return tuple(
            x.flatten(1, 2)[:, :cells].repeat_interleave(size, dim=1)[:, : self.length]
            .unflatten(0, q.shape[:2])
            for x in (out, log)
        )  # fmt: skip

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        around = (self.block, 1, 0 if self.causal else 1)
        rows = blocked(q * q.shape[3] ** -0.5, self.block)
        near = weighed(rows @ neighbours(k, *around).mT + self.near[0], neighbours(v, *around))
        found = [
            tuple(unblocked(x, q) for x in near),
            *(self.far(q, k, v, size) for size in self.sizes),
        ]
        return merged([out for out, _ in found], [log for _, log in found])


def interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """Blocks 0, 2, .. and 1, 3, .. in turns, along dimension 1; of the first there may be one more."""
    turns = torch.stack([even[:, : odd.shape[1]], odd], dim=2).flatten(1, 2)
    return torch.cat([turns, even[:, odd.shape[1] :]], dim=1)


VARIANTS = {"sinks": always_causal(sinks), "dilated": dilated, "hierarchical": hierarchical}
