"""The arrays of a block, the same for every side: inputs, weights, and patterns drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .plan import ADAMW, CLASSES, LAYERS, VOCAB, Block
from .sides import Side

Weights = dict[str, tuple[tuple[int, ...], float]]  # name -> shape, deviation
FROZEN = ("omega", "rotations")  # weights that are not learned
GRID = 1 / 32  # of relu's q and k
MARGIN = 1e-3  # between the two largest scores of a hash; float32 sums differ by 1e-6
DRAWS = 100
MOST_PROBED = 1 << 24  # numbers of an array, 64 MB


def additive(block: Block) -> Weights:
    d = block.head_dim
    square = ((block.heads, d, d), d**-0.5)
    return {"W_q": square, "W_k": square, "w": ((block.heads, d), (2 / (d + 1)) ** 0.5)}


def sinkhorn(block: Block) -> Weights:
    """So that scores are about 1: larger ones lose digits to exp, the same in every library."""
    d, size = block.head_dim, block.params["block"]
    return {"sort": ((block.heads, d, -(-block.length // size)), (d * size) ** -0.5)}


def synthesizer(block: Block) -> Weights:
    return {"keys": ((block.heads, block.length, block.head_dim), block.head_dim**-0.5)}


def linformer(block: Block) -> Weights:
    rows = ((1, block.params["rank"], block.length), block.length**-0.5)
    return {"projection_k": rows, "projection_v": rows}


def performer(block: Block) -> Weights:
    return {"omega": ((block.heads, block.params["features"], block.head_dim), 1.0)}


def recurrent(block: Block) -> Weights:
    dim = block.width
    gates = {"lstm": 4, "gru": 3}[block.params["cell"]] * dim
    matrix = ((dim, gates), (3 * dim) ** -0.5)
    weights = {"input": matrix, "bias": ((gates,), 0.1), "state": matrix}
    return weights | ({"candidate_bias": ((dim,), 0.1)} if gates == 3 * dim else {})


def conv(block: Block) -> Weights:
    return layer(block.params["kernel"], block.width, "weight", "bias")


def window_mlp(block: Block) -> Weights:
    reach = block.params["window"] * (1 if block.causal else 2) + 1
    return {
        **layer(reach, block.width, "hidden", "hidden_bias"),
        **layer(1, block.width, "output", "output_bias"),
    }


def layer(kernel: int, dim: int, weight: str, bias: str) -> Weights:
    return {weight: ((kernel, dim, dim), (kernel * dim) ** -0.5), bias: ((dim,), 0.1)}


def hash_shape(buckets: int) -> tuple[int, int]:
    """Directions of a hash's argmax over [x·R, -x·R], and of the second one that divides each of
    these buckets; as BucketOptions of attnbench: beyond 128 buckets two factors."""
    if buckets <= 128:
        return (buckets + 1) // 2, 0
    first = (int(buckets**0.5) + 1) // 2
    return first, -(-buckets // (4 * first))


def reformer(block: Block) -> Weights:
    directions = sum(hash_shape(buckets_of(block)))
    return {"rotations": ((block.heads, block.params["rounds"], directions, block.head_dim), 1.0)}


def buckets_of(block: Block) -> int:
    return max(4, 2 * -(-block.length // block.params["chunk"]))


WEIGHTS: dict[str, Callable[[Block], Weights]] = {
    made.__name__: made
    for made in (
        additive, sinkhorn, synthesizer, linformer, performer, recurrent, conv, window_mlp, reformer
    )
}  # fmt: skip


def write_inputs(block: Block, folder: Path, seed: int) -> dict[str, Any]:
    """Arrays as .npy files; the fields of the request that loads them."""
    rng = np.random.default_rng([seed, block.length, block.heads])
    if block.subject == "step":
        tokens = rng.integers(0, VOCAB, (block.batch, block.length), np.int32)
        targets = rng.integers(0, CLASSES, block.batch, np.int32)
        return {
            "variant": "full", "layers": LAYERS, "width": block.width, "heads": block.heads,
            "feed_forward": block.feed_forward, "vocab": VOCAB, "classes": CLASSES,
            "length": block.length, "batch": block.batch, "threads": block.threads, **ADAMW,
            "tokens": save(folder, "tokens", tokens), "targets": save(folder, "targets", targets),
            "folder": str(folder),
        }  # fmt: skip

    def normal(shape: tuple[int, ...], scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    made = WEIGHTS.get(block.subject, lambda _: {})(block)
    weights = {name: normal(*how) for name, how in made.items()}
    shape = (block.batch, block.heads, block.length, block.head_dim)
    arrays = {name: normal(shape) for name in ("q", "k", "v", "grad_out")}
    if block.subject == "relu":
        arrays["q"], arrays["k"] = clear_of_zero(arrays["q"], arrays["k"])
    if block.subject == "reformer":
        arrays["q"] = clearly_hashed(arrays["q"], weights["rotations"], buckets_of(block), normal)
    return {
        "variant": block.spec, "name": block.subject, "params": block.params,
        "causal": block.causal, "threads": block.threads, "reads": block.reads,
        "set": {name: save(folder, name, array) for name, array in weights.items()},
        "frozen": [name for name in weights if name in FROZEN],
        **{name: save(folder, name, array) for name, array in arrays.items()},
    }  # fmt: skip


def save(folder: Path, name: str, array: np.ndarray) -> str:
    path = folder / f"{name}.npy"
    np.save(path, array)
    return str(path)


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


def clearly_hashed(
    q: np.ndarray, rotations: np.ndarray, buckets: int, normal: Callable[..., np.ndarray]
) -> np.ndarray:
    """q with other rows in place of those whose two largest scores are so close that rounding may
    decide the bucket: one position in another bucket moves the borders of all later chunks."""
    first, _ = hash_shape(buckets)
    for _ in range(DRAWS):
        scores = np.einsum("bhnd,hrkd->bhnrk", q, rotations, optimize=True)
        close = np.zeros(q.shape[:3], bool)
        for part in (scores[..., :first], scores[..., first:]):
            both = np.sort(np.concatenate([part, -part], axis=-1), axis=-1)[..., -2:]
            if both.shape[-1]:
                close |= (np.diff(both)[..., 0] < MARGIN).any(-1)
        if not close.any():
            return q
        q = np.where(close[..., None], normal(q.shape), q)
    raise RuntimeError(f"no clear hashes after {DRAWS} draws")


def write_pattern(block: Block, ours: Side, folder: Path) -> dict[str, Any]:
    """Where our side draws its pattern at random: PATTERN.npy, read off our side's answers.

    With queries of zeros a query weighs the keys that it sees alike, so that a value of 1 at some
    keys shows who sees them. graph: [2, edges], queries and keys. bigbird: [heads, blocks, blocks],
    which blocks of keys the first query of a block sees."""
    if block.subject not in ("graph", "bigbird"):
        return {}
    size = block.params["block"] if block.subject == "bigbird" else 1
    marked = -(-block.length // size)  # blocks, or single keys
    by_head = block.subject == "bigbird"  # a graph is the same for all heads: each shows other keys
    seen = np.zeros((block.heads if by_head else 1, marked, marked), bool)
    at_once = block.head_dim * (1 if by_head else block.heads)
    batch = max(1, min(-(-marked // at_once), MOST_PROBED // (block.length * block.width)))
    shape = (batch, block.heads, block.length, block.head_dim)
    zeros = save(folder, "probe_q", np.zeros(shape, np.float32))
    for start in range(0, marked, batch * at_once):
        marks = start + np.arange(batch)[:, None, None] * at_once + np.arange(block.head_dim)
        if not by_head:
            marks = marks + np.arange(block.heads)[:, None] * block.head_dim
        marks = np.broadcast_to(marks, (batch, block.heads, block.head_dim))
        place = np.arange(block.length)[:, None] // size
        values = (place == marks[:, :, None]).astype(np.float32)
        probe = save(folder, "probe_v", values)
        ours.ask(
            "attention", variant=block.spec, causal=block.causal, threads=block.threads,
            q=zeros, k=zeros, v=probe, grad_out=zeros,
        )  # fmt: skip
        own = folder / "probe"
        own.mkdir(exist_ok=True)
        ours.ask("write", folder=str(own))
        shown = np.load(own / "forward.npy")[:, :, ::size] > 0  # [batch, heads, blocks, head_dim]
        for entry, head, column in np.ndindex(*marks.shape):
            mark = marks[entry, head, column]
            if mark < marked:
                heads = head if by_head else slice(None)
                seen[heads, :, mark] = shown[entry, head, :, column]
    pattern = seen if by_head else np.stack(np.nonzero(seen[0]))
    return {"given": {"pattern": save(folder, "pattern", pattern)}}
