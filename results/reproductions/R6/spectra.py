"""Singular values of the weights of exact attention, for logits of several sizes."""

import numpy as np

from attnbench.reproduce.forms import projections

DIM, INDEX = 64, 128
SPREADS = (0.25, 1.0, 4.0, 16.0)  # standard deviations of the logits
CORRELATIONS = (0.0, 0.98)  # of a token with the one before


def measure(product, small):
    length = 256 if small else 512
    for seed in range(3 if small else 5):
        for correlation in CORRELATIONS:
            drawn = projections(np.random.default_rng(seed), 2, length, DIM, correlation)
            q, k = (x.astype(np.float32) for x in drawn)
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
