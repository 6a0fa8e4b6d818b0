"""Weights of all other variants: exact and low-rank attention, kernels, hashing, selection,
normalisers and convolutions over windows, as starts.py describes them. They are scaled so that logits
are about 1."""

from __future__ import annotations

from math import log2

from .choices import buckets_of, hash_shape
from .plan import Block
from .starts import SHARE, Starts, StartsOf, gains, matrix, shifts, squares


def additive(block: Block) -> Starts:
    d = block.head_dim
    w = ((block.heads, d), (2 / (d + 1)) ** 0.5)
    return {"W_q": squares(block), "W_k": squares(block), "w": w}


def sinkhorn(block: Block) -> Starts:
    """So that scores are about 1: larger ones lose digits to exp, the same in every library."""
    d, size = block.head_dim, block.params["block"]
    return {"sort": ((block.heads, d, -(-block.length // size)), (d * size) ** -0.5)}


def synthesizer(block: Block) -> Starts:
    return {"keys": ((block.heads, block.length, block.head_dim), block.head_dim**-0.5)}


def linformer(block: Block) -> Starts:
    rows = ((1, block.params["rank"], block.length), block.length**-0.5)
    return {"projection_k": rows, "projection_v": rows}


def performer(block: Block) -> Starts:
    return {"omega": ((block.heads, block.params["features"], block.head_dim), 1.0)}


def recurrent(block: Block) -> Starts:
    dim = block.width
    gates = {"lstm": 4, "gru": 3}[block.params["cell"]] * dim
    into = ((dim, gates), (3 * dim) ** -0.5)
    weights: Starts = {"input": into, "bias": shifts(gates), "state": into}
    return weights | ({"candidate_bias": shifts(dim)} if gates == 3 * dim else {})


def conv(block: Block) -> Starts:
    return layer(block.params["kernel"], block.width, "weight", "bias")


def window_mlp(block: Block) -> Starts:
    reach = block.params["window"] * (1 if block.causal else 2) + 1
    return {
        **layer(reach, block.width, "hidden", "hidden_bias"),
        **layer(1, block.width, "output", "output_bias"),
    }


def layer(kernel: int, dim: int, weight: str, bias: str) -> Starts:
    return {weight: ((kernel, dim, dim), (kernel * dim) ** -0.5), bias: shifts(dim)}


def reformer(block: Block) -> Starts:
    directions = sum(hash_shape(buckets_of(block.length, block.params["chunk"])))
    return {"rotations": ((block.heads, block.params["rounds"], directions, block.head_dim), 1.0)}


def memory_compressed(block: Block) -> Starts:
    heads, d, stride = block.heads, block.head_dim, block.params["stride"]
    joint = ((heads, stride, d, d), (stride * d) ** -0.5)
    row = shifts(heads, d)
    return {
        "compress_k": joint, "compress_v": joint, "bias_v": row, "bias_k": row,
        "null_k": ((heads, d), 3.0), "null_v": ((heads, d), 1.0),
    }  # fmt: skip


def latents_of(block: Block) -> Starts:
    return {"latents": ((block.heads, block.params["latents"], block.head_dim), 1.0)}


def latent(block: Block) -> Starts:
    square = squares(block)
    return {**latents_of(block), "layer0_q": square, "layer0_k": square, "layer0_v": square}


def induced(block: Block) -> Starts:
    wide = block.width
    square, row = matrix(wide, wide), shifts(wide)
    small = ((wide, wide), 0.25 * wide**-0.5)  # beside the bias that choices.py moves away from 0
    parts: Starts = {
        "q": square, "q_bias": row, "k": square, "v": square, "v_bias": row, "out": small,
        "out_bias": row,
    }  # fmt: skip
    return {
        "points": ((block.params["latents"], wide), 1.0),
        **{
            f"{name}_{part}": how for name in ("summarise", "answer") for part, how in parts.items()
        },
    }


def mla(block: Block) -> Starts:
    wide, latent, rotary = block.width, block.params["latent"], block.params["rotary"]
    return {
        "down": matrix(wide, latent + rotary), "gain": gains(latent),
        "up_k": matrix(latent, wide), "up_v": matrix(latent, wide),
        "query": matrix(wide, wide + block.heads * rotary), "out": matrix(wide, wide),
    }  # fmt: skip


def taylor(block: Block) -> Starts:
    d = block.head_dim
    rows = ((block.heads, block.params["dim"], d), 0.5 * d**-0.5)
    return {"projection_q": rows, "projection_k": rows}


def hedgehog(block: Block) -> Starts:
    return {"projection_q": squares(block), "projection_k": squares(block)}


def rfa(block: Block) -> Starts:
    heads, d = block.heads, block.head_dim
    return {
        "omega": ((heads, block.params["directions"], d), 1.0),
        "scale": gains(heads, d),
    }


def clustered(block: Block) -> Starts:
    return {"planes": ((block.heads, block.params["bits"], block.head_dim + 1), 1.0)}


def routing(block: Block) -> Starts:
    d = block.head_dim
    clusters = block.params.get("clusters") or max(1, round(block.length**0.5))
    return {"centroids": ((block.heads, clusters, d), d**-0.5)}


def yoso(block: Block) -> Starts:
    p = block.params
    return {"planes": ((block.heads, p["hashes"] * p["bits"], block.head_dim), 1.0)}


def dsa(block: Block) -> Starts:
    """Weights of index heads of either sign: else scores of 0, which are many, would be as large as
    the last that a query keeps."""
    p, heads, d = block.params, block.heads, block.head_dim
    scale = block.width**-0.5
    return {
        "index_query": ((heads, d, p["index_heads"] * p["index_dim"]), scale),
        "index_key": ((heads, d, p["index_dim"]), scale),
        "index_weight": ((heads, d, p["index_heads"]), 1.5 * scale),
    }


def nsa(block: Block) -> Starts:
    d, size = block.head_dim, block.params["compress_block"]
    parts: Starts = {
        "position": shifts(size, d),
        "up": matrix(size * d, d),
        "down": ((d, d), 2 * d**-0.5),
    }
    return {f"compress_{of}_{part}": how for of in "kv" for part, how in parts.items()}


def csa(block: Block) -> Starts:
    heads, d = block.heads, block.head_dim
    return {
        "position": shifts(heads, 2 * block.params["stride"], d),
        "norm_k": gains(heads, d),
        "norm_v": gains(heads, d),
        "sinks": ((heads,), 1.0),
        **dsa(block),
    }


def qk_norm(block: Block) -> Starts:
    """About the paper's start."""
    return {"temperature": ((block.heads, 1), SHARE, log2(block.length**2 - block.length))}


def talking_heads(block: Block) -> Starts:
    square = ((1, block.heads, block.heads), block.heads**-0.5)
    return {"logits": square, "weights": square}


def differential(block: Block) -> Starts:
    lambdas = ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")
    half = shifts(block.head_dim // 2)
    return {**dict.fromkeys(lambdas, half), "gain": gains(1, block.head_dim)}


WEIGHTS: dict[str, StartsOf] = {
    made.__name__: made
    for made in (
        additive, sinkhorn, synthesizer, linformer, performer, recurrent, conv, window_mlp, reformer,
        memory_compressed, latent, induced, mla, taylor, hedgehog, rfa, clustered, routing, yoso, dsa,
        nsa, csa, qk_norm, talking_heads, differential,
    )
} | {"luna": latents_of, "gated_rfa": rfa, "improved_clustered": clustered}  # fmt: skip
