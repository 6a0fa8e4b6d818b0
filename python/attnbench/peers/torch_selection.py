"""Attention to keys that the data choose in PyTorch: single keys, or blocks of them.

q, k, v are [batch, heads, len, head_dim] with one length for all; weights are named as by
`attnbench info NAME`. What is chosen has no gradient."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_levels import exponentials, merged, weighed, window_bias, windowed
from .torch_parts import always_causal, heads_of, later, rows_of, strips
from .torch_patterns import blocked, neighbours

ROWS = 128  # queries whose scores with all keys are made at once


def chosen_keys(scores: Tensor, start: int, count: int, causal: bool) -> tuple[Tensor, Tensor]:
    """Of each row [.., rows, keys] the places of the largest scores, and which of them are seen."""
    if causal:
        scores.masked_fill_(later(scores, start), -torch.inf)
    best, places = scores.topk(min(count, scores.shape[-1]), sorted=False)
    return places, best > -torch.inf


def attend_to(q: Tensor, k: Tensor, v: Tensor, places: Tensor, seen: Tensor) -> Tensor:
    """Softmax attention of each query to its keys: places [batch, heads, len, count]."""
    batch, heads, keys, dim = k.shape
    count = places.shape[3]
    index = places + torch.arange(batch * heads).view(batch, heads, 1, 1) * keys
    rows = k.flatten(0, 2).index_select(0, index.flatten()).view(*index.shape, dim)
    logits = (rows @ q.unsqueeze(4)).squeeze(4) * dim**-0.5
    weights = logits.masked_fill(~seen, -torch.inf).softmax(-1)
    bags = F.embedding_bag(
        index.view(-1, count), v.reshape(-1, dim), mode="sum",
        per_sample_weights=weights.reshape(-1, count),
    )  # fmt: skip
    return bags.view(q.shape)


def topk(q: Tensor, k: Tensor, v: Tensor, keys: int, causal: bool = False) -> Tensor:
    """All scores are made; each query then attends to the keys of the largest."""
    out, n = [], q.shape[2]
    for some, seen in strips(n, ROWS, causal):
        rows, near_k, near_v = q[:, :, some], k[:, :, seen], v[:, :, seen]
        with torch.no_grad():
            found = chosen_keys(rows @ near_k.mT, some.start, keys, causal)
        out.append(attend_to(rows, near_k, near_v, *found))
    return torch.cat(out, dim=2)


def dsa(
    q: Tensor, k: Tensor, v: Tensor, index_query: Tensor, index_key: Tensor, index_weight: Tensor,
    keys: int, index_heads: int, index_dim: int,
) -> Tensor:  # fmt: skip
    """One indexer for all heads scores keys by a few narrow heads of its own."""
    n, heads = q.shape[2], q.shape[1]
    with torch.no_grad():
        wide_q, wide_k = rows_of(q), rows_of(k)
        query = heads_of(wide_q @ index_query.flatten(0, 1), index_heads)
        key = F.layer_norm(wide_k @ index_key.flatten(0, 1), (index_dim,)).unsqueeze(1)
        weight = (1 + wide_q @ index_weight.flatten(0, 1)).mT.unsqueeze(3)
    out = []
    for rows, past in strips(n, ROWS, causal=True):
        with torch.no_grad():
            scores = F.relu(query[:, :, rows] @ key[:, :, past].mT)
            scores = (scores * weight[:, :, rows]).sum(1, keepdim=True)
            places, seen = chosen_keys(scores, rows.start, keys, causal=True)
        places, seen = (x.expand(-1, heads, -1, -1) for x in (places, seen))
        out.append(attend_to(q[:, :, rows], k[:, :, past], v[:, :, past], places, seen))
    return torch.cat(out, dim=2)


def chosen_blocks(
    q: Tensor, k: Tensor, v: Tensor, places: Tensor, seen: Tensor, block: int
) -> Tensor:
    """Causal softmax attention of each query to its own block, up to itself, and to whole earlier
    blocks: places and seen [batch, heads, len, count]. A block meets all queries that chose it,
    gathered; the parts of a query are joined by their log-sum-exps."""
    batch, heads, n, dim = q.shape
    count = places.shape[3]
    rows, keys, values = (blocked(x, block) for x in (q * dim**-0.5, k, v))
    near = rows @ keys.mT
    own, own_log = weighed(near.masked_fill(later(near), -torch.inf), values)
    own, own_log = (x.flatten(1, 2)[:, :n].reshape(-1, x.shape[-1]) for x in (own, own_log))
    if not count:
        return own.view(q.shape)
    queries = rows.flatten(1, 2)[:, :n].reshape(-1, dim)
    blocks = keys.shape[1]
    with torch.no_grad():
        head = torch.arange(batch * heads).view(batch, heads, 1, 1)
        target = (head * blocks + places).masked_fill(~seen, batch * heads * blocks).flatten()
        order = target.argsort(stable=True)  # pairs of a query and a block, block by block
        sizes = torch.bincount(target, minlength=batch * heads * blocks + 1)[:-1].tolist()
        back = order.argsort()
    pairs = sum(sizes)
    outs, logs = [], []
    picked = queries.index_select(0, order[:pairs] // count).split(sizes)
    for some, key, value in zip(picked, keys.flatten(0, 1), values.flatten(0, 1)):
        if len(some):
            out, log = weighed(some @ key.mT, value)
            outs.append(out)
            logs.append(log)
    if not outs:
        return own.view(q.shape)
    nothing = [own.new_zeros(1, dim), own.new_full((1, 1), -torch.inf)]
    parts = (torch.cat([*found, none]) for found, none in zip((outs, logs), nothing))
    slots = back.clamp(max=pairs)
    out, log = (x.index_select(0, slots).unflatten(0, (-1, count)) for x in parts)
    every = merged([own, *out.unbind(1)], [own_log, *log.unbind(1)])  # [batch * heads * len, dim]
    return every.view(q.shape)


def earlier(scores: Tensor, block: int, first: int, last: int) -> Tensor:
    """-inf but for the blocks from `first` to `last` before a query's own; in place."""
    own = torch.arange(scores.shape[-2]).unsqueeze(1) // block
    place = torch.arange(scores.shape[-1])
    return scores.masked_fill_((place < first) | (place > own - last), -torch.inf)


def moba(q: Tensor, k: Tensor, v: Tensor, block: int, blocks: int) -> Tensor:
    """The earlier blocks whose mean keys have the largest product with the query."""
    whole = q.shape[2] // block  # a last block that is not whole is nobody's earlier one
    with torch.no_grad():
        means = k[:, :, : whole * block].unflatten(2, (-1, block)).mean(3)
        scores = earlier(q @ means.mT, block, 0, 1)
        best, places = scores.topk(min(blocks - 1, whole), sorted=False)
    return chosen_blocks(q, k, v, places, best > -torch.inf, block)


class nsa:
    """Three branches times their gates: compressed blocks, chosen blocks and a window. Which blocks
    share how many strides is counted once."""

    def __init__(
        self, length: int, causal: bool, block: int, blocks: int, window: int,
        compress_block: int, compress_stride: int,
    ) -> None:  # fmt: skip
        assert causal
        self.block, self.blocks, self.window = block, blocks, window
        self.size, self.stride = compress_block, compress_stride
        rows = max(0, (length - compress_block) // compress_stride + 1)
        start = torch.arange(rows).unsqueeze(1) * compress_stride
        first = torch.arange(-(-length // block)) * block
        end = torch.minimum(start + compress_block, first + block)
        common = (end - torch.maximum(start, first)).clamp(min=0) // compress_stride
        self.common = common.float()  # [rows, blocks]
        self.hidden = start.mT + compress_block - 1 > torch.arange(length).unsqueeze(1)

    def compressed(self, x: Tensor, position: Tensor, up: Tensor, down: Tensor) -> Tensor:
        windows = x.unfold(2, self.size, self.stride).mT  # [batch, heads, rows, size, head_dim]
        return F.gelu((windows + position).flatten(3) @ up) @ down

    def chosen(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The first block, the one before the own one, and those of the largest weights."""
        batch, heads, n, _ = weights.shape
        own = (torch.arange(n) // self.block).view(1, 1, -1, 1).expand(batch, heads, -1, -1)
        scores = earlier(weights @ self.common, self.block, 1, 2)
        best, others = scores.topk(min(self.blocks - 3, scores.shape[3]), sorted=False)
        places = torch.cat([torch.zeros_like(own), own - 1, others], dim=3)
        seen = torch.cat([own > 0, own > 1, best > -torch.inf], dim=3)
        return places, seen

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, gate_branches: Tensor, **weights: Tensor
    ) -> Tensor:
        gates = torch.sigmoid(gate_branches).unsqueeze(3).unbind(4)
        keys, values = (
            self.compressed(x, *(weights[f"{name}_{part}"] for part in ("position", "up", "down")))
            for x, name in ((k, "compress_k"), (v, "compress_v"))
        )
        logits = (q * q.shape[3] ** -0.5 @ keys.mT).masked_fill(self.hidden, -torch.inf)
        shares, total, _ = exponentials(logits)  # before the end of a first block there are none
        shares = shares / total
        with torch.no_grad():
            places, seen = self.chosen(shares)
        selected = chosen_blocks(q, k, v, places, seen, self.block)
        near = windowed(q, k, v, self.window + 1)
        return gates[0] * selected + gates[1] * near + gates[2] * (shares @ values)


class csa:
    """One softmax over a window, rows of blocks, and a sink: the parts are joined by their
    log-sum-exps. An indexer chooses rows where there are more than are kept."""

    def __init__(
        self, length: int, causal: bool, stride: int, window: int, keys: int, index_heads: int,
        index_dim: int,
    ) -> None:  # fmt: skip
        assert causal
        self.stride, self.window, self.keys = stride, min(window, length - 1), keys
        self.index_heads, self.index_dim = index_heads, index_dim
        end = (torch.arange(length // stride) + 1) * stride  # of each block
        self.hidden = end > torch.arange(length).unsqueeze(1) + 1
        self.before = -(-self.window // ROWS)
        self.bias = window_bias(length, self.window + 1, 0, self.before)

    def rows(self, x: Tensor, weights: Tensor, gain: Tensor) -> Tensor:
        blocks = self.slots(x, x)
        sums = (weights * blocks).sum(3)
        return sums * torch.rsqrt(sums.square().mean(3, keepdim=True) + 1e-6) * gain.unsqueeze(1)

    def slots(self, own: Tensor, earlier: Tensor) -> Tensor:
        """Positions of each block, then those of the block before it, [batch, heads, blocks, 2 *
        stride, head_dim]; before the first block there are zeros."""
        whole = own.shape[2] // self.stride * self.stride
        blocks, last = (
            x[:, :, :whole].unflatten(2, (-1, self.stride)) for x in (own, earlier)
        )
        return torch.cat([blocks, F.pad(last[:, :, :-1], (0, 0, 0, 0, 1, 0))], dim=3)

    def near(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = (neighbours(x, ROWS, self.before, 0) for x in (k, v))
        logits = blocked(q * q.shape[3] ** -0.5, ROWS) @ keys.mT + self.bias
        parts = weighed(logits, values)
        out, log = (x.flatten(1, 2)[:, : q.shape[2]].unflatten(0, q.shape[:2]) for x in parts)
        return out, log

    def scores(self, q: Tensor, keys: Tensor, w: dict[str, Tensor]) -> Tensor:
        """Of all heads together, [batch, 1, len, blocks]."""
        wide_q, wide_k = rows_of(q), rows_of(keys)
        query = heads_of(wide_q @ w["index_query"].flatten(0, 1), self.index_heads)
        key = F.layer_norm(wide_k @ w["index_key"].flatten(0, 1), (self.index_dim,)).unsqueeze(1)
        weight = (1 + wide_q @ w["index_weight"].flatten(0, 1)).mT.unsqueeze(3)
        found = (F.relu(query @ key.mT) * weight).sum(1, keepdim=True)
        return found.masked_fill(self.hidden, -torch.inf)

    def far(
        self, q: Tensor, keys: Tensor, values: Tensor, w: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        if keys.shape[2] > self.keys:
            with torch.no_grad():
                best, places = self.scores(q, keys, w).topk(self.keys, sorted=False)
        q = q * q.shape[3] ** -0.5
        if keys.shape[2] <= self.keys:
            return weighed((q @ keys.mT).masked_fill(self.hidden, -torch.inf), values)
        out, logs = [], []
        for part, _ in strips(q.shape[2], ROWS, causal=True):
            index = places[:, :, part].expand(-1, q.shape[1], -1, -1).flatten(2).unsqueeze(3)
            near_k, near_v = (
                x.gather(2, index.expand(-1, -1, -1, x.shape[3])).unflatten(2, (-1, self.keys))
                for x in (keys, values)
            )
            logits = (near_k @ q[:, :, part].unsqueeze(4)).squeeze(4)
            logits = logits.masked_fill(best[:, :, part] == -torch.inf, -torch.inf)
            found, log = weighed(logits.unsqueeze(3), near_v)
            out.append(found.squeeze(3))
            logs.append(log.squeeze(3))
        return torch.cat(out, 2), torch.cat(logs, 2)

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, gate_compress: Tensor, position: Tensor,
        norm_k: Tensor, norm_v: Tensor, sinks: Tensor, **index: Tensor,
    ) -> Tensor:  # fmt: skip
        near = self.near(q, k, v)
        if not self.hidden.shape[1]:
            far = torch.zeros_like(near[0]), torch.full_like(near[1], -torch.inf)
        else:
            logits = self.slots(*gate_compress.chunk(2, dim=3)) + position.unsqueeze(1)
            empty = torch.zeros(logits.shape[2:4], dtype=torch.bool)
            empty[0, self.stride :] = True  # before the first block
            weights = logits.masked_fill(empty.unsqueeze(2), -torch.inf).softmax(3)
            keys, values = self.rows(k, weights, norm_k), self.rows(v, weights, norm_v)
            far = self.far(q, keys, values, index)
        sink = sinks.view(1, -1, 1, 1).expand_as(near[1])
        return merged([near[0], far[0], torch.zeros_like(near[0])], [near[1], far[1], sink])


VARIANTS = {
    "topk": topk, "dsa": always_causal(dsa), "moba": always_causal(moba), "nsa": nsa, "csa": csa,
}  # fmt: skip
