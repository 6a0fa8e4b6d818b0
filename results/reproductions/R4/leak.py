"""How far a later key moves earlier outputs of causal Performer attention, by its stabiliser."""

import numpy as np

LENGTH, DIM, FEATURES = 64, 16, 64
FACTORS = (1.1, 3.0, 6.0)  # of the last key
CONSTANTS = (1e-4, 1e-6)


def measure(product, small):
    for seed in range(3 if small else 10):
        rng = np.random.default_rng(seed)
        q, k, v = rng.normal(size=(3, LENGTH, DIM))
        omega = rng.normal(size=(FEATURES, DIM))
        for factor in FACTORS:
            moved = k.copy()
            moved[-1] *= factor
            for constant in CONSTANTS:
                outs = [one_maximum(q, keys, v, omega, constant) for keys in (k, moved)]
                yield _record(seed, factor, "over all keys", constant, *outs)
            outs = [_library(product, q, keys, v, omega) for keys in (k, moved)]
            yield _record(seed, factor, "over the keys so far", 0.0, *outs)


def _record(seed, factor, stabiliser, constant, before, after):
    change = np.linalg.norm(after - before, axis=1) / np.linalg.norm(before, axis=1)
    told = {"seed": seed, "factor": factor, "stabiliser": stabiliser, "constant": constant}
    return told | {"moved_earlier": float(change[:-1].max()), "moved_last": float(change[-1])}


def one_maximum(q, k, v, omega, constant):
    """Causal attention whose key features share one divisor, that of the largest of all exponents."""

    def exponents(x):
        scaled = x / x.shape[1] ** 0.25
        return scaled @ omega.T, np.square(scaled).sum(axis=1, keepdims=True) / 2

    of_q, half_q = exponents(q)
    of_k, half_k = exponents(k)
    phi_q = np.exp(of_q - half_q - of_q.max(axis=1, keepdims=True)) + constant
    phi_k = np.exp(of_k - half_k - of_k.max()) + constant
    weights = np.tril(phi_q @ phi_k.T)
    return weights @ v / weights.sum(axis=1, keepdims=True)


def _library(product, q, k, v, omega):
    arrays = tuple(x[None, None] for x in (q, k, v))
    variant = f"performer[features={FEATURES}]"
    return product.apply(variant, arrays, "--causal", weights={"omega": omega[None]})[0, 0]
