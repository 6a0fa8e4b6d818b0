"""The arrays of a block, the same for every side: inputs, weights, and patterns drawn at random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from . import starts_attention, starts_mixers
from .choices import CLEAR
from .plan import ADAMW, CLASSES, DECODE, LAYERS, VOCAB, Block
from .sides import Side
from .starts import FROZEN, gates_of

MOST_PROBED = 1 << 24  # numbers of an array, 64 MB
SCALES = (17, 48)  # of cached integers, over 1024
WEIGHTS = starts_attention.WEIGHTS | starts_mixers.WEIGHTS


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

    if block.subject == DECODE:
        return {
            "variant": "full", "kv_dtype": block.kv_dtype, "threads": block.threads,
            **{name: save(folder, name, array) for name, array in cached(block, rng).items()},
        }  # fmt: skip

    def normal(shape: tuple[int, ...], scale: float = 1.0, mean: Any = 0.0) -> np.ndarray:
        return (mean + scale * rng.standard_normal(shape)).astype(np.float32)

    made = WEIGHTS.get(block.subject, lambda _: {})(block)
    weights = {name: normal(*how) for name, how in made.items()}
    shape = (block.batch, block.heads, block.length, block.head_dim)
    arrays = {name: normal(shape) for name in ("q", "k", "v", "grad_out")}
    gated = gates_of(block)
    gates = {name: normal((*shape[:3], width), *how) for name, (width, *how) in gated.items()}
    if clear := CLEAR.get(block.subject):
        drawn = weights | gates
        clear(block, arrays, drawn, normal)
        weights, gates = ({name: drawn[name] for name in some} for some in (weights, gates))
    return {
        "variant": block.spec, "name": block.subject, "params": block.params,
        "causal": block.causal, "threads": block.threads, "reads": block.reads,
        "set": {name: save(folder, name, array) for name, array in weights.items()},
        "frozen": [name for name in weights if name in FROZEN],
        "gates": {name: save(folder, f"gate_{name}", array) for name, array in gates.items()},
        **{name: save(folder, name, array) for name, array in arrays.items()},
    }  # fmt: skip


def cached(block: Block, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """q [batch, heads, 1, head_dim], k and v [batch, kv_heads, len, head_dim] of numbers that every
    side's cache holds as they are, so that the answers differ by arithmetic alone."""

    def rows(heads: int, length: int, kind: str) -> np.ndarray:
        shape = (block.batch, heads, length, block.head_dim)
        x = rng.standard_normal((*shape[:3], block.head_dim // 32, 32)).astype(np.float32)
        return np.ascontiguousarray(_held(x, kind, rng).reshape(shape), np.float32)

    k, v = (rows(block.kv_heads, block.length, block.kv_dtype) for _ in "kv")
    q = rows(block.heads, 1, "float32" if block.kv_dtype == "float32" else "bfloat16")
    return {"q": q, "k": k, "v": v}


def _held(x: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Numbers like `x` [..., 32] that a type holds. 32 channels share a scale, of which bfloat16 and f16
    hold each of those drawn here. int8: integers from -127 to 127 times the scale, one of them at an
    end. int4: 0 or one number, of one sign, for the largest is 7 scales in ours and 8 in ggml's, so
    that no other level is the same number in both. bfloat16: as int8, the scale always 1/32."""
    if kind == "float32":
        return x
    scale = np.float32(1 / 32)
    if kind != "bfloat16":
        scale = rng.integers(*SCALES, (*x.shape[:-1], 1)).astype(np.float32) / 1024
    if kind == "int4":
        return np.where(x > 0, 56 * scale, np.float32(0)) * np.sign(x[..., :1])
    whole = np.clip(np.round(x * 32), -126, 126)
    largest = rng.integers(0, 32, (*x.shape[:-1], 1))
    np.put_along_axis(whole, largest, np.copysign(np.float32(127), x[..., :1]), -1)
    return whole * scale


def save(folder: Path, name: str, array: np.ndarray) -> str:
    path = folder / f"{name}.npy"
    np.save(path, array)
    return str(path)


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
