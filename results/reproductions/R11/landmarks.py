"""Errors of attention through landmarks by their number and by the inverse; and how far the
iteration of the paper is from an inverse. Xiong et al. 2021, arXiv:2102.03902."""

import numpy as np

from attnbench.reproduce.forms import projections

LENGTH, DIM = 512, 32
LANDMARKS = (16, 32, 64, 128, 256, 512)
DRAWS, FEW = range(10, 50), 10  # draws 0 to 9 were those of a trial; what costs much is measured of a few
CORRELATIONS = (0.0, 0.98)  # of a token with the one before
EXACT = 0  # of `iterations`: the pseudo-inverse itself
STEPS = (6, 20, EXACT)
DEAREST = (512, 20)  # landmarks and iterations
RESIDUALS = (16, 64, 256)  # numbers of landmarks whose residuals are recorded, of a few draws
ITERATIONS = (0, 3, 6, 9, 12, 15, 20, 25, 30)  # of which residuals are recorded


def measure(product, small):
    length, draws = (64, DRAWS[:2]) if small else (LENGTH, DRAWS)
    for correlation in CORRELATIONS:
        drawn = [projections(np.random.default_rng(seed), 3, length, DIM, correlation) for seed in draws]
        arrays = np.stack(drawn, axis=1)[:, None]  # [3, 1, draws, length, DIM]: a draw is a head
        truth = product.apply("full", tuple(arrays))
        told = {"correlation": correlation}
        for seed, error in zip(draws, _differences(product.apply("mean", tuple(arrays)), truth)):
            yield told | {"of": "equal weights", "seed": seed, "error": error}
        for landmarks in (m for m in LANDMARKS if m <= length):
            yield from _of_landmarks(product, arrays, truth, draws, told | {"landmarks": landmarks})


def _of_landmarks(product, arrays, truth, draws, told):
    landmarks = told["landmarks"]
    for draw, seed in enumerate(draws[:FEW]):
        _, between, _ = _pieces(*arrays[:, 0, draw], landmarks)
        values = np.linalg.svd(between, compute_uv=False)
        yield told | {"of": "weights", "seed": seed, "condition": float(values[0] / values[-1])}
        for step, residual in _residuals(between) if landmarks in RESIDUALS else ():
            yield told | {"of": "residual", "seed": seed, "iteration": step, "residual": residual}
    read, between, held = _pieces(*arrays[:, 0, 0], landmarks)
    for steps in STEPS:
        count = FEW if (landmarks, steps) == DEAREST else len(draws)
        found = product.apply(f"nystrom[landmarks={landmarks},iterations={steps}]", tuple(arrays[:, :, :count]))
        for seed, error in zip(draws, _differences(found, truth[:, :count])):
            yield told | {"of": "outputs", "seed": seed, "iterations": steps, "error": error}
        here = read @ (_inverse(between, steps) @ held)
        (apart,) = _differences(found[:, :1], here[None, None])
        yield told | {"of": "NumPy", "seed": draws[0], "iterations": steps, "difference": apart}


def _differences(found, truth):
    """Of each head, the norm of the difference over the norm of the truth."""
    off = np.linalg.norm(found - truth, axis=(2, 3)) / np.linalg.norm(truth, axis=(2, 3))
    return [float(x) for x in off[0]]


def _pieces(q, k, v, landmarks):
    """The three factors of equation 13, the last one times the values; landmarks are the means of
    segments, equation 16."""
    of_q, of_k = (x.reshape(landmarks, -1, x.shape[1]).mean(axis=1) for x in (q, k))
    return _weights(q, of_k), _weights(of_q, of_k), _weights(of_q, k) @ v


def _weights(q, k):
    logits = q @ k.T / np.sqrt(q.shape[1])
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _inverse(a, steps):
    if steps == EXACT:
        return np.linalg.pinv(a, rcond=len(a) * np.finfo(float).eps)
    z = _start(a)
    for _ in range(steps):
        z = _next(a @ z, z)
    return z


def _residuals(a):
    """‖I − AZ‖₂ by iteration; I − AZ is symmetric, for Z is Aᵀ times a polynomial in AAᵀ."""
    one, z = np.eye(len(a)), _start(a)
    for step in range(ITERATIONS[-1] + 1):
        az = a @ z
        if step in ITERATIONS:
            yield step, float(np.abs(np.linalg.eigvalsh(one - (az + az.T) / 2)).max())
        z = _next(az, z)


def _start(a):
    """Z₀, below lemma 1."""
    return a.T / (np.linalg.norm(a, 1) * np.linalg.norm(a, np.inf))


def _next(az, z):
    """Z after one step, equation 14."""
    one = np.eye(len(z))
    return z @ (13 * one - az @ (15 * one - az @ (7 * one - az))) / 4
