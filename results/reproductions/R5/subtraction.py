"""Prefix states of causal linear attention walked back by subtraction in float32."""

import tempfile
from pathlib import Path

import numpy as np

DIM = 64
LENGTHS, OF_LIBRARY = (1024, 8192, 65536), (1024, 4096)
BLOCK = 512  # positions whose products are held at a time
FIRST = 64  # queries whose gradients are compared


def measure(product, small):
    for seed in range(3 if small else 5):
        for n in (256, 512, 1024) if small else LENGTHS:
            rng = np.random.default_rng([seed, n])
            k, v = rng.normal(size=(2, n, DIM)).astype(np.float32)
            yield {"seed": seed, "length": n, "of": "subtraction", **_walked_back(_features(k), v)}
        for n in (128, 256) if small else OF_LIBRARY:
            yield {"seed": seed, "length": n, "of": "stored states", "error": _library(product, seed, n)}


def _features(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))).astype(np.float32)


def _walked_back(phi, v):
    """The residual of S_0, and the error of S at position FIRST, relative to one product φ(k)vᵀ."""
    n = len(phi)
    state = np.zeros((DIM, DIM), np.float32)
    for start in range(0, n, BLOCK):
        state = _summed(state, phi[start : start + BLOCK], v[start : start + BLOCK])
    one = float(np.median([np.linalg.norm(phi[i]) * np.linalg.norm(v[i]) for i in range(FIRST)]))
    for stop in range(n, FIRST, -BLOCK):
        start = max(FIRST, stop - BLOCK)
        state = _summed(state, -phi[start:stop][::-1], v[start:stop][::-1])
    exact = phi[:FIRST].astype(float).T @ v[:FIRST].astype(float)
    early = float(np.linalg.norm(state - exact))
    state = _summed(state, -phi[:FIRST][::-1], v[:FIRST][::-1])
    return {"residual": float(np.linalg.norm(state)) / one, "early": early / one}


def _summed(state, phi, v):
    """The state after one product after the other is added, each sum rounded to float32."""
    if not len(phi):
        return state
    products = phi[:, :, None] * v[:, None, :]
    return np.add.accumulate(np.concatenate([state[None], products]), axis=0)[-1]


def _library(product, seed, n):
    """Of the gradients of the first queries: float32 against float64, relative."""
    rng = np.random.default_rng([seed, n])
    q, k, v, grad = rng.normal(size=(4, 1, 1, n, DIM)).astype(np.float32)
    found = []
    for kind in (np.float32, np.float64):
        with tempfile.TemporaryDirectory() as folder:
            at = Path(folder)
            np.save(at / "grad.npy", grad.astype(kind))
            product.apply("linear", tuple(x.astype(kind) for x in (q, k, v)), "--causal",
                          "--grad-out", str(at / "grad.npy"), "--grad-q", str(at / "q.npy"))  # fmt: skip
            found.append(np.load(at / "q.npy")[0, 0, :FIRST].astype(float))
    # The first query sees one key alone: its gradient is zero but for rounding.
    return float(np.linalg.norm(found[0] - found[1]) / np.linalg.norm(found[1]))
