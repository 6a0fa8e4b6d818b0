"""Attention by hashes and clusters in PyTorch.

q, k, v are [batch, heads, len, head_dim] with one length for all; weights are named as by
`attnbench info NAME`. Codes, clusters and routes have no gradient."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_parts import like, strips, unit

ROWS = 128  # queries whose collisions with all keys are counted at once
LEAST = 1e-24  # beside the square of a length in yoso


def clusters_of(q: Tensor, planes: Tensor, clusters: int, iterations: int) -> Tensor:
    """[batch, heads, len]: the cluster of each query, by k-means of sign codes. Codes are +1 and
    -1, so that the nearest by Hamming distance has the largest product, and the first of equal ones
    is taken. A centroid's bit is that of most members, -1 where they are even."""
    n = q.shape[2]
    if clusters >= n:
        return torch.arange(n).expand(q.shape[:3])
    codes = (q @ planes[..., :-1].mT + planes[..., -1].unsqueeze(1)).flatten(0, 1)
    codes = (codes > 0).float() * 2 - 1  # [batch * heads, len, bits]
    centroids = codes[:, torch.arange(clusters) * n // clusters]
    nearest = (codes @ centroids.mT).argmax(-1)
    for _ in range(iterations):
        index = nearest.unsqueeze(2).expand_as(codes)
        votes = torch.zeros_like(centroids).scatter_add(1, index, codes)
        sizes = members(nearest, clusters).unsqueeze(2)
        centroids = torch.where(sizes > 0, (votes > 0).float() * 2 - 1, centroids)
        before, nearest = nearest, (codes @ centroids.mT).argmax(-1)
        if torch.equal(before, nearest):
            break
    return nearest.view(q.shape[:3])


def members(cluster: Tensor, count: int) -> Tensor:
    """Of each cluster the number of queries: [.., len] -> [.., count]."""
    ones = torch.ones(cluster.shape)
    return ones.new_zeros(*cluster.shape[:-1], count).scatter_add(-1, cluster, ones)


def mean_queries(q: Tensor, cluster: Tensor, count: int) -> Tensor:
    sums = q.new_zeros(*q.shape[:2], count, q.shape[3]).scatter_add(2, like(cluster, q), q)
    return sums / members(cluster, count).clamp(min=1).unsqueeze(3)


def clustered(
    q: Tensor, k: Tensor, v: Tensor, planes: Tensor, clusters: int, bits: int, iterations: int
) -> Tensor:
    """The mean query of a cluster attends to all keys, and the members share the result."""
    assert planes.shape[1] == bits
    with torch.no_grad():
        cluster = clusters_of(q, planes, clusters, iterations)
    means = mean_queries(q, cluster, min(clusters, q.shape[2]))
    answers = F.scaled_dot_product_attention(means, k, v)
    return answers.gather(2, like(cluster, answers))


def improved_clustered(
    q: Tensor, k: Tensor, v: Tensor, planes: Tensor, clusters: int, keys: int, bits: int,
    iterations: int,
) -> Tensor:  # fmt: skip
    """Each query weighs the top keys of its cluster again, with the mass that the mean query gives
    to them. The queries of a cluster stand side by side, as many places as in the largest."""
    assert planes.shape[1] == bits
    n, count = q.shape[2], min(clusters, q.shape[2])
    with torch.no_grad():
        cluster = clusters_of(q, planes, clusters, iterations)
    q = q * q.shape[3] ** -0.5
    means = mean_queries(q, cluster, count)
    weights = (means @ k.mT).softmax(-1)  # [batch, heads, clusters, len]
    top = weights.detach().topk(min(keys, n), sorted=False)[1]
    mass = weights.gather(3, top).sum(-1, keepdim=True)
    rest = weights.scatter(3, top, 0.0) @ v

    def of_clusters(x: Tensor) -> Tensor:  # [batch, heads, clusters, keys, head_dim]
        return x.gather(2, like(top.flatten(2), x)).unflatten(2, top.shape[2:])

    with torch.no_grad():
        order = cluster.argsort(dim=-1, stable=True)
        sizes = members(cluster, count).long()
        most = int(sizes.max())
        first = sizes.cumsum(-1) - sizes
        place = torch.arange(n) - first.gather(2, cluster.gather(2, order))
        slot = cluster.gather(2, order) * most + place
        slot = torch.empty_like(slot).scatter(2, order, slot)  # of each query
    rows = q.new_zeros(*q.shape[:2], count * most, q.shape[3]).scatter(2, like(slot, q), q)
    again = (rows.unflatten(2, (count, most)) @ of_clusters(k).mT).softmax(-1) @ of_clusters(v)
    out = (again * mass.unsqueeze(4) + rest.unsqueeze(3)).flatten(2, 3)
    return out.gather(2, like(slot, out))


def routing(
    q: Tensor, k: Tensor, v: Tensor, centroids: Tensor, clusters: int = 0, window: int = 0
) -> Tensor:
    """Each centroid takes its nearest queries and keys, which attend inside the cluster; a position
    of several clusters gets the mean of their results, one of none zeros."""
    n, width = q.shape[2], (q.shape[3],)
    count = centroids.shape[1]
    window = window or -(-n // count)
    q, k = F.layer_norm(q, width), F.layer_norm(k, width)
    with torch.no_grad():
        of_q, of_k = (
            (centroids @ x.mT).topk(min(window, n), sorted=False)[1].flatten(2) for x in (q, k)
        )

    def routed(x: Tensor, index: Tensor) -> Tensor:  # [batch, heads * clusters, window, head_dim]
        return x.gather(2, like(index, x)).unflatten(2, (count, -1)).flatten(1, 2)

    answers = F.scaled_dot_product_attention(routed(q, of_q), routed(k, of_k), routed(v, of_k))
    answers = answers.unflatten(1, (q.shape[1], count)).flatten(2, 3)
    sums = torch.zeros_like(q).scatter_add(2, like(of_q, answers), answers)
    return sums / members(of_q, n).clamp(min=1).unsqueeze(3)


class Collisions(torch.autograd.Function):
    """The mean over hashes of the values whose code is the query's. With respect to the product of
    unit rows a weight w has the derivative bits / 2 * w, as the authors have it."""

    @staticmethod
    def forward(
        ctx: Any, unit_q: Tensor, unit_k: Tensor, v: Tensor, of_q: Tensor, of_k: Tensor, bits: int,
        causal: bool,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(unit_q, unit_k, v, of_q, of_k)
        ctx.bits, ctx.causal = bits, causal
        if causal:
            return torch.cat([w @ seen for w, seen in weighing(of_q, of_k, v, True)], dim=2)
        return by_tables(of_q, of_k, v, 1 << bits)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        unit_q, unit_k, v, of_q, of_k = ctx.saved_tensors
        to_q, to_k, to_v = [], torch.zeros_like(unit_k), torch.zeros_like(v)
        start = 0
        for w, seen in weighing(of_q, of_k, v, ctx.causal):
            keys, rows = seen.shape[2], slice(start, start + w.shape[2])
            slopes = (grad[:, :, rows] @ seen.mT).mul_(w).mul_(ctx.bits / 2)
            to_q.append(slopes @ unit_k[:, :, :keys])
            to_k[:, :, :keys] += slopes.mT @ unit_q[:, :, rows]
            to_v[:, :, :keys] += w.mT @ grad[:, :, rows]
            start += w.shape[2]
        return torch.cat(to_q, dim=2), to_k, to_v, None, None, None, None


def by_tables(of_q: Tensor, of_k: Tensor, v: Tensor, buckets: int) -> Tensor:
    """Each hash sums the values of a bucket, and a query reads its own bucket."""
    out = torch.zeros_like(v)
    for queries, keys in zip(of_q.unbind(2), of_k.unbind(2)):
        table = v.new_zeros(*v.shape[:2], buckets, v.shape[3])
        table.scatter_add_(2, like(keys, v), v)
        out += table.gather(2, like(queries, v))
    return out / of_q.shape[2]


def weighing(of_q: Tensor, of_k: Tensor, v: Tensor, causal: bool) -> Any:
    """For a chunk of queries after the other: the share of the hashes in which a query and a key
    agree, [batch, heads, rows, keys], and the values of these keys."""
    n, hashes = v.shape[2], of_q.shape[2]
    of_q, of_k = of_q.short(), of_k.short()
    for near, seen in strips(n, ROWS, causal):
        rows, keys = of_q[..., near].unsqueeze(4), of_k[..., seen].unsqueeze(3)
        same = torch.zeros(*v.shape[:2], rows.shape[3], seen.stop, dtype=torch.uint8)
        for hash in range(hashes):  # at most 255
            same += (rows[:, :, hash] == keys[:, :, hash]).view(torch.uint8)
        w = same.float() / hashes
        yield (w.tril(near.start) if causal else w), v[:, :, seen]


def yoso(
    q: Tensor, k: Tensor, v: Tensor, planes: Tensor, hashes: int, bits: int, causal: bool = False
) -> Tensor:
    """Weights are the share of sign hashes in which a query and a key agree; outputs at length
    one."""
    assert hashes <= 255  # which a byte counts
    powers = 2 ** torch.arange(bits)

    def codes(x: Tensor) -> Tensor:  # [batch, heads, hashes, len]
        signs = (x @ planes.mT > 0).unflatten(3, (hashes, bits))
        return (signs * powers).sum(-1).mT

    with torch.no_grad():
        of_q, of_k = codes(q), codes(k)
    queries, keys = unit(q, LEAST), unit(k, LEAST)
    return unit(Collisions.apply(queries, keys, v, of_q, of_k, bits, causal), LEAST)


VARIANTS = {made.__name__: made for made in (clustered, improved_clustered, routing, yoso)}
