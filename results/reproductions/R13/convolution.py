"""Three heads of exact attention with quadratic relative scores, against a convolution of width 3."""

import numpy as np

SHIFTS = (-1, 0, 1)
KERNEL = (0.25, -1.0, 0.5)  # of the convolution; any three numbers
DIM = 8  # of a head: the encoding takes two numbers, the values the rest
ALPHAS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def measure(product, small):
    for n in (64,) if small else (64, 256, 1024):
        values = np.random.default_rng(n).normal(size=(n, DIM))
        for alpha in ALPHAS:
            yield {"length": n, "alpha": alpha, **_compared(product, n, alpha, values)}


def _compared(product, n, alpha, values):
    q, k = _encoded(n, alpha)
    shape = (1, len(SHIFTS), n, DIM)
    arrays = (q, np.broadcast_to(k, shape), np.broadcast_to(values, shape))
    heads = product.apply("full", tuple(a.astype(np.float32) for a in arrays))[0]
    mixed = sum(weight * head for weight, head in zip(KERNEL, heads))
    padded = np.pad(values, ((1, 1), (0, 0)))
    convolved = sum(w * padded[1 + s : n + 1 + s] for w, s in zip(KERNEL, SHIFTS))
    error = np.abs(mixed - convolved).max(axis=1)
    inside = slice(8, n - 8)
    weights = product.weights("full", q[0, 1].astype(np.float32), k.astype(np.float32))
    centre = np.diag(weights)[inside]  # of the head that does not shift
    return {
        "weight_least": float(centre.min()),
        "weight_most": float(centre.max()),
        "error_inside": float(error[inside].max()),
        "error_at_ends": float(error[[0, -1]].max()),
    }


def _encoded(n, alpha):
    """Scores −α(i + Δ − j)² without the part that all keys share, times √DIM, which `full` divides
    by: 2α(i + Δ)·j − α·j², with positions counted from the middle."""
    at = np.arange(n) - (n - 1) / 2
    q, k = np.zeros((1, len(SHIFTS), n, DIM)), np.zeros((n, DIM))
    for head, shift in enumerate(SHIFTS):
        q[0, head, :, 0] = 2 * alpha * (at + shift) * np.sqrt(DIM)
        q[0, head, :, 1] = -alpha * np.sqrt(DIM)
    k[:, 0], k[:, 1] = at, at**2
    return q, k
