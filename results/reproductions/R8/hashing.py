"""Which keys Reformer's rounds of hashing let a query see, from its weights."""

import numpy as np

DIM, PAIRS, BUCKETS, CHUNK = 64, 512, 32, 64
NOISE = 0.06  # of each number of a copy: a cosine of about 0.9
ROUNDS = (1, 2, 4, 8)


def measure(product, small):
    pairs = 64 if small else PAIRS
    for seed in range(3 if small else 8):
        keys, partner = _inputs(np.random.default_rng(seed), pairs)
        mass = _softmax(keys)
        for rounds in ROUNDS:
            chosen = f"rounds={rounds},chunk={CHUNK},buckets={BUCKETS}"
            seen = product.weights(f"reformer[{chosen}]", keys, keys, "--seed", str(seed)) > 0
            others = seen & ~np.eye(len(keys), dtype=bool)
            yield {
                "seed": seed,
                "rounds": rounds,
                "found": float(others[np.arange(len(keys)), partner].mean()),
                "mass": float((mass * others).sum(axis=1).mean()),
                "seen": float(others.sum(axis=1).mean() / (len(keys) - 1)),
            }


def _inputs(rng, pairs):
    """Rows in random order, half of them copies of the others with noise; and each one's partner."""
    first = rng.normal(size=(pairs, DIM))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    copies = first + NOISE * rng.normal(size=first.shape)
    rows = np.concatenate([first, copies]) * np.sqrt(DIM)
    order = rng.permutation(2 * pairs)
    place = np.argsort(order)
    return rows[order].astype(np.float32), place[(order + pairs) % (2 * pairs)]


def _softmax(queries):
    """Of Reformer's logits: keys are the queries at length one, and no query sees itself."""
    logits = queries @ (queries / np.linalg.norm(queries, axis=1, keepdims=True)).T
    np.fill_diagonal(logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
