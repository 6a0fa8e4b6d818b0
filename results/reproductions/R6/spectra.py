"""Singular values of the weights of exact attention, for logits of several sizes."""

import numpy as np

DIM, INDEX = 64, 128
SPREADS = (0.25, 1.0, 4.0, 16.0)  # standard deviations of the logits
CORRELATIONS = (0.0, 0.98)  # of a token with the one before


def measure(product, small):
    length = 256 if small else 512
    for seed in range(3 if small else 5):
        for correlation in CORRELATIONS:
            q, k = _inputs(np.random.default_rng(seed), length, correlation)
            for spread in SPREADS[1:3] if small else SPREADS:
                scale = np.sqrt(spread)
                weights = product.weights("full", scale * q, scale * k).astype(float)
                values = np.linalg.svd(weights, compute_uv=False)
                shares = values / values.sum()
                index = INDEX * length // 512
                yield {
                    "seed": seed,
                    "correlation": correlation,
                    "spread": spread,
                    "length": length,
                    "index": index,
                    "share": float(shares[:index].sum()),
                    "share_of_squares": float(np.square(values[:index]).sum() / np.square(values).sum()),
                    "effective_rank": float(np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum())),
                }


def _inputs(rng, length, correlation):
    """Queries and keys of unit variance: two random projections of the same tokens."""
    noise = rng.normal(size=(length, DIM))
    tokens = noise.copy()
    for t in range(1, length):
        tokens[t] = correlation * tokens[t - 1] + np.sqrt(1 - correlation**2) * noise[t]
    project = rng.normal(size=(2, DIM, DIM)) / np.sqrt(DIM)
    return tuple((tokens @ p / (tokens @ p).std()).astype(np.float32) for p in project)
