"""Inputs whose choices do not hang on rounding. Variants that hash, cluster, select or cut at 0 read what
two libraries may round to either side of a border: a key in and another out changes an output by far
more than rounding. Rows that lie so near to a border are drawn again, or moved away from 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .plan import Block

Arrays = dict[str, np.ndarray]
Normal = Callable[..., np.ndarray]  # shape -> random numbers
# Scores are sums of some hundred products: float32 sums in another order differ by about 1e-6 of
# their size, which is at most 10.
MARGIN = 1e-4
DRAWS = 200
HASH_MARGIN, HASH_DRAWS = 1e-3, 100  # of reformer, whose rows are drawn again all at once
GRID = 1 / 32  # of relu's q and k
FAR = 2.5  # deviations from 0 of the biases before induced's relu
ROWS = 512  # queries whose scores are held at once


def redraw(x: np.ndarray, unclear: Callable[[np.ndarray], np.ndarray], normal: Normal) -> None:
    """Draws those of the rows x [.., len, dim] again that `unclear`, given places, says."""
    rows = np.arange(x.shape[-2])
    for _ in range(DRAWS):
        parts = np.split(rows, range(ROWS, len(rows), ROWS))
        rows = np.concatenate([part[unclear(part)] for part in parts])
        if not len(rows):
            return
        x[..., rows, :] = normal((*x.shape[:-2], len(rows), x.shape[-1]))
    raise RuntimeError(f"no clear choice after {DRAWS} draws")


def close(scores: np.ndarray, count: int, margin: float = MARGIN) -> np.ndarray:
    """Whether the least of the `count` largest scores of a row is close to the next one. -inf is no
    score."""
    keys = scores.shape[-1]
    if keys <= count:
        return np.zeros(scores.shape[:-1], bool)
    border = keys - count
    both = np.partition(scores, (border - 1, border), axis=-1)[..., border - 1 : border + 1]
    with np.errstate(invalid="ignore"):  # -inf beside -inf: fewer scores than are chosen
        return both[..., 1] - both[..., 0] < margin


def heads_of(block: Block) -> Any:
    return np.ndindex(block.batch, block.heads)


def hidden_later(scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    scores[np.arange(scores.shape[1]) > rows[:, None]] = -np.inf
    return scores


def topk(block: Block, x: Arrays, _: Arrays, normal: Normal) -> None:
    for at in heads_of(block):
        q, k = x["q"][at], x["k"][at]

        def unclear(rows: np.ndarray, q: np.ndarray = q, k: np.ndarray = k) -> np.ndarray:
            scores = q[rows] @ k.T
            if block.causal:
                hidden_later(scores, rows)
            return close(scores, block.params["keys"])

        redraw(q, unclear, normal)


def normalised(rows: np.ndarray) -> np.ndarray:
    """Each row less its mean, over its deviation."""
    rows = rows - rows.mean(1, keepdims=True)
    return rows / np.sqrt(rows.var(1, keepdims=True) + 1e-5)


def indexed(
    block: Block, q: np.ndarray, k: np.ndarray, stride: int, w: Arrays, normal: Normal
) -> None:
    """One choice for all heads: their queries q are drawn again together. Each of the rows k [heads,
    rows, head_dim] stands for `stride` positions and is seen from the last of them on."""
    heads, size = block.params["index_heads"], block.params["index_dim"]
    keys = normalised(np.einsum("hjd,hdm->jm", k, w["index_key"]))

    def unclear(rows: np.ndarray) -> np.ndarray:
        query = np.einsum("hid,hdm->im", q[:, rows], w["index_query"])
        weight = 1 + np.einsum("hid,hdc->ic", q[:, rows], w["index_weight"])
        scores = np.zeros((len(rows), len(keys)), np.float32)
        for c in range(heads):
            own = np.maximum(query[:, c * size : (c + 1) * size] @ keys.T, 0)
            scores += weight[:, c : c + 1] * own
        return close(hidden_later(scores, (rows + 1) // stride - 1), block.params["keys"])

    redraw(q, unclear, normal)


def dsa(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    for q, k in zip(x["q"], x["k"]):
        indexed(block, q, k, 1, w, normal)


def csa(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    stride, d = block.params["stride"], block.head_dim
    whole = block.length // stride * stride

    def blocks(rows: np.ndarray) -> np.ndarray:
        return rows[:, :whole].reshape(len(rows), -1, stride, rows.shape[-1])

    for q, k, logits in zip(x["q"], x["k"], w["compress"]):
        terms = np.zeros((len(k), whole // stride, 2 * stride, d))
        slots = np.zeros_like(terms)
        terms[:, :, :stride], terms[:, 1:, stride:] = (
            blocks(logits[..., :d]), blocks(logits[..., d:])[:, :-1],
        )  # fmt: skip
        slots[:, :, :stride], slots[:, 1:, stride:] = blocks(k), blocks(k)[:, :-1]
        shares = np.exp(terms + w["position"][:, None])
        shares[:, 0, stride:] = 0  # before the first block
        rows = (shares * slots).sum(2) / shares.sum(2)
        rows /= np.sqrt(np.square(rows).mean(2, keepdims=True) + 1e-6)
        indexed(block, q, rows * w["norm_k"][:, None], stride, w, normal)


def moba(block: Block, x: Arrays, _: Arrays, normal: Normal) -> None:
    size, count = block.params["block"], block.params["blocks"] - 1
    whole = block.length // size
    for at in heads_of(block):
        q, k = x["q"][at], x["k"][at]
        means = k[: whole * size].reshape(whole, size, -1).mean(1)

        def unclear(rows: np.ndarray, q: np.ndarray = q, means: np.ndarray = means) -> np.ndarray:
            return close(hidden_later(q[rows] @ means.T, rows // size - 1), count)

        redraw(q, unclear, normal)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def nsa(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    """Scores of blocks are sums of weights: their logarithms are compared."""
    p, d = block.params, block.head_dim
    size, stride, wide = p["compress_block"], p["compress_stride"], p["block"]
    count = (block.length - size) // stride + 1
    start = np.arange(count)[:, None] * stride
    first = np.arange(-(-block.length // wide)) * wide
    common = np.minimum(start + size, first + wide) - np.maximum(start, first)
    common = np.maximum(common, 0) // stride  # [count, blocks]
    for at in heads_of(block):
        q, k = x["q"][at], x["k"][at]
        windows = k[start + np.arange(size)] + w["compress_k_position"]
        keys = gelu(windows.reshape(count, -1) @ w["compress_k_up"]) @ w["compress_k_down"]

        def unclear(rows: np.ndarray, q: np.ndarray = q, keys: np.ndarray = keys) -> np.ndarray:
            logits = q[rows] @ keys.T * d**-0.5
            ended = (start.T + size - 1) <= rows[:, None]
            weights = np.exp(logits - logits.max(1, keepdims=True)) * ended
            with np.errstate(divide="ignore"):
                scores = np.log(weights @ common)
            scores[:, 0] = -np.inf  # the first block and the one before the own one are always seen
            return close(hidden_later(scores, rows // wide - 2), p["blocks"] - 3)

        redraw(q, unclear, normal)


def near_planes(x: np.ndarray, planes: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Whether a row lies close to a plane; its last number may be an offset."""
    dim = x.shape[-1]
    offset = planes[:, dim] if planes.shape[1] > dim else 0

    def unclear(rows: np.ndarray) -> np.ndarray:
        return (np.abs(x[rows] @ planes[:, :dim].T + offset) < MARGIN).any(1)

    return unclear


def yoso(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    for at in heads_of(block):
        for rows in (x["q"][at], x["k"][at]):
            redraw(rows, near_planes(rows, w["planes"][at[1]]), normal)


def clustered(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    for at in heads_of(block):
        redraw(x["q"][at], near_planes(x["q"][at], w["planes"][at[1]]), normal)


def clusters_of(block: Block, q: np.ndarray, planes: np.ndarray) -> np.ndarray:
    """The cluster of each query of a head, as hamming_clusters.cc of attnbench finds them."""
    n, clusters = len(q), block.params["clusters"]
    if clusters >= n:
        return np.arange(n)
    codes = np.where(q @ planes[:, :-1].T + planes[:, -1] > 0, 1, -1).astype(np.float32)
    centroids = codes[np.arange(clusters) * n // clusters]
    nearest = (codes @ centroids.T).argmax(1)
    for _ in range(block.params["iterations"]):
        members = (nearest[:, None] == np.arange(clusters)).astype(np.float32)
        votes, filled = members.T @ codes, members.any(0)
        centroids[filled] = np.where(votes[filled] > 0, 1, -1)
        nearest = (codes @ centroids.T).argmax(1)
    return nearest


def clear_border(
    keys: np.ndarray, scores_of: Callable[[np.ndarray], np.ndarray], count: int, margin: float,
    normal: Normal,
) -> None:  # fmt: skip
    """Draws those of some keys again that are the last that a row of scores_of(keys) chooses, where
    the next one is close."""
    for _ in range(DRAWS):
        scores = scores_of(keys)
        rows = close(scores, count, margin)
        if not rows.any():
            return
        border = np.unique(np.argpartition(scores[rows], -count, axis=1)[:, -count])
        keys[border] = normal((len(border), keys.shape[1]))
    raise RuntimeError(f"no clear choice after {DRAWS} draws")


def improved_clustered(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    clustered(block, x, w, normal)
    for at in heads_of(block):
        q = x["q"][at]
        cluster = clusters_of(block, q, w["planes"][at[1]])
        means = np.stack([q[cluster == c].mean(0) for c in np.unique(cluster)])
        clear_border(
            x["k"][at], lambda k, means=means: means @ k.T, block.params["keys"], MARGIN, normal
        )


def routing(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    """A chosen row is one of hundreds, whose scores of about 1 lie close: a smaller margin."""

    def scores(rows: np.ndarray, centroids: np.ndarray) -> np.ndarray:
        return centroids @ normalised(rows).T

    for at in heads_of(block):
        centroids = w["centroids"][at[1]]
        window = block.params.get("window") or -(-block.length // len(centroids))
        for rows in (x["q"][at], x["k"][at]):
            clear_border(rows, lambda y, c=centroids: scores(y, c), window, MARGIN / 10, normal)


def clear_of_zero(q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """On a grid so coarse that float32 holds every product exactly, and no product is zero: else
    rounding would decide on which side of relu's corner a score lies. An odd number of odd numbers
    has an odd sum."""

    def odd(x: np.ndarray) -> np.ndarray:
        return 2 * np.floor(x / (2 * GRID)) + 1

    q, k = odd(q), odd(k)
    if q.shape[-1] % 2 == 0:
        q[..., 0] += 1
    return (q * GRID).astype(np.float32), (k * GRID).astype(np.float32)


def relu(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    x["q"], x["k"] = clear_of_zero(x["q"], x["k"])


def induced(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    """Of the biases before relu the sign alone is drawn: so far from 0 rounding cannot decide on which
    side of relu's corner a number lies, and half the columns pass."""
    for name in ("summarise_out_bias", "answer_out_bias"):
        w[name] = np.copysign(np.float32(FAR), w[name])


def hash_shape(buckets: int) -> tuple[int, int]:
    """Directions of a hash's argmax over [x·R, -x·R], and of the second one that divides each of
    these buckets; as BucketOptions of attnbench: beyond 128 buckets two factors."""
    if buckets <= 128:
        return (buckets + 1) // 2, 0
    first = (int(buckets**0.5) + 1) // 2
    return first, -(-buckets // (4 * first))


def buckets_of(length: int, chunk: int) -> int:
    return max(4, 2 * -(-length // chunk))


def clearly_hashed(
    q: np.ndarray, rotations: np.ndarray, buckets: int, normal: Callable[..., np.ndarray]
) -> np.ndarray:
    """q with other rows in place of those whose two largest scores are so close that rounding may
    decide the bucket: one position in another bucket moves the borders of all later chunks."""
    first, _ = hash_shape(buckets)
    for _ in range(HASH_DRAWS):
        scores = np.einsum("bhnd,hrkd->bhnrk", q, rotations, optimize=True)
        close = np.zeros(q.shape[:3], bool)
        for part in (scores[..., :first], scores[..., first:]):
            both = np.sort(np.concatenate([part, -part], axis=-1), axis=-1)[..., -2:]
            if both.shape[-1]:
                close |= (np.diff(both)[..., 0] < HASH_MARGIN).any(-1)
        if not close.any():
            return q
        q = np.where(close[..., None], normal(q.shape), q)
    raise RuntimeError(f"no clear hashes after {HASH_DRAWS} draws")


def reformer(block: Block, x: Arrays, w: Arrays, normal: Normal) -> None:
    buckets = buckets_of(block.length, block.params["chunk"])
    x["q"] = clearly_hashed(x["q"], w["rotations"], buckets, normal)


CLEAR: dict[str, Callable[[Block, Arrays, Arrays, Normal], None]] = {
    made.__name__: made
    for made in (
        topk, dsa, moba, nsa, csa, yoso, clustered, improved_clustered, routing, relu, induced, reformer,
    )
}  # fmt: skip
