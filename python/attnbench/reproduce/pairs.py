"""Performer's estimate of one pair, exp(x·y), read from outputs of `performer`.

Its outputs are quotients. With the keys y and −x beside each other, and values of which the first
is one, the output of the query x is K(x, y)/(K(x, y) + K(x, −x)). For positive and for hyperbolic
features K(x, −x) is exp(−‖x‖²) whatever directions are drawn, for e^{ωx} and e^{−ωx} cancel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .product import Product


def pair(dim: int, length: float, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors of this length with this angle between them."""
    x, y = np.zeros(dim), np.zeros(dim)
    x[0] = length
    y[:2] = length * math.cos(angle), length * math.sin(angle)
    return x, y


def estimates(
    product: Product, variant: str, x: np.ndarray, y: np.ndarray, draws: int, seed: int
) -> np.ndarray:
    """Estimates of exp(x·y) by independent draws of the features, a head each."""
    dim = len(x)
    scaled = dim**0.25 * np.stack([x, y, -x])  # `performer` divides q·k by √dim
    q = np.broadcast_to(scaled[:1], (1, draws, 1, dim))
    k = np.broadcast_to(scaled[1:], (1, draws, 2, dim))
    v = np.zeros((1, draws, 2, dim))
    v[:, :, 0] = 1
    weight = product.apply(variant, (q, k, v), "--seed", str(seed))[0, :, 0, 0]
    return math.exp(-float(x @ x)) * weight / (1 - weight)


def squared_errors(
    product: Product, variant: str, dim: int, length: float, angle: float, small: bool
) -> Iterator[dict[str, Any]]:
    """Means and mean squared errors of independent batches of estimates of one pair; few if small."""
    calls, batches, draws = (1, 4, 500) if small else (5, 10, 10_000)
    x, y = pair(dim, length, angle)
    for call in range(calls):
        for batch, found in enumerate(np.split(estimates(product, variant, x, y, batches * draws, seed=call), batches)):
            yield {
                "length": length,
                "angle": angle,
                "batch": call * batches + batch,
                "draws": draws,
                "mean": float(found.mean()),
                "squared_error": float(np.square(found - np.exp(x @ y)).mean()),
            }
