"""Values read back from a state of sums and from one of the delta rule, by the library's outputs."""

import numpy as np

DIM = 64
STRENGTHS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the delta rule
CHOOSING, TESTING = 4, 12  # draws
ALL = 40.0  # of a gate: its sigmoid is 1 in float64
LONG = 1e4  # of keys and queries that `deltanet` divides by √(|x|² + 1e-6)
ONCE, REBOUND = "written once", "re-bound"


def measure(product, small):
    choosing, testing = (2, 3) if small else (CHOOSING, TESTING)
    plans = [("orthonormal", n) for n in (DIM, 2 * DIM)]
    plans += [("random", n) for n in ((16,) if small else (16, 32, 64, 96, 128))]
    for keys, pairs in plans:
        for times in (ONCE, REBOUND):
            drawn = [_drawn(keys, pairs, times, seed) for seed in range(choosing + testing)]
            for rule, strength in [("sums", 0.0), *(("delta rule", s) for s in STRENGTHS)]:
                if keys == "orthonormal" and strength not in (0.0, 1.0):
                    continue  # the claim is of exact recall, which only a whole write can give
                outs = _read(product, rule, strength, drawn)
                for seed, (one, out) in enumerate(zip(drawn, outs)):
                    yield {
                        "keys": keys,
                        "pairs": pairs,
                        "times": times,
                        "rule": rule,
                        "strength": strength,
                        "draw": seed,
                        "testing": seed >= choosing,
                        **_scores(out, one),
                    }


def _drawn(kind, pairs, times, seed):
    """Keys and values in the order of their writing; keys to ask for and their newest values."""
    rng = np.random.default_rng([seed, pairs])
    keys = _keys(rng, kind, pairs)
    old, new = rng.normal(size=(2, pairs, DIM))
    first, second = rng.permutation(pairs), rng.permutation(pairs)
    if times == ONCE:
        written, values = keys[first], new[first]
    else:
        written = np.concatenate([keys[first], keys[second]])
        values = np.concatenate([old[first], new[second]])
    return {"written": written, "values": values, "asked": keys, "newest": new}


def _keys(rng, kind, pairs):
    """Of length 1: random, or orthonormal bases one after the other."""
    if kind == "random":
        drawn = rng.normal(size=(pairs, DIM))
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    bases = [np.linalg.qr(rng.normal(size=(DIM, DIM)))[0] for _ in range(pairs // DIM)]
    return np.concatenate(bases)


def _read(product, rule, strength, drawn):
    """Outputs for the keys asked for, a head for each draw: positions write first, then read."""
    written, asked = len(drawn[0]["written"]), len(drawn[0]["asked"])
    shape = (1, len(drawn), written + asked, DIM)
    q, k, v = np.zeros((3, *shape))
    for head, one in enumerate(drawn):
        q[0, head, written:] = one["asked"]
        k[0, head, :written], v[0, head, :written] = one["written"], one["values"]
    if rule == "sums":  # σ(40) is 1: nothing decays
        out = product.apply("gla", (q, k, v), "--causal", gates={"decay": np.full(shape, ALL)})
    else:
        strengths = np.full((*shape[:3], 1), -np.inf)
        strengths[:, :, :written] = ALL if strength == 1 else np.log(strength / (1 - strength))
        gates = {"beta": np.maximum(strengths, -700)}  # σ(-700) is 0: a reading writes nothing
        out = product.apply("deltanet", (LONG * q, LONG * k, v), "--causal", gates=gates)
    return np.sqrt(DIM) * out[0, :, written:]


def _scores(out, one):
    lengths = np.linalg.norm(one["values"], axis=1)
    nearest = one["values"][(out @ one["values"].T / lengths).argmax(axis=1)]
    right = (nearest == one["newest"]).all(axis=1)
    error = np.square(out - one["newest"]).sum() / np.square(one["newest"]).sum()
    return {"accuracy": float(right.mean()), "squared_error": float(error)}
