"""Errors of Performer's estimate of exp(x·y), by positive and by hyperbolic features."""

import numpy as np
from attnreproduce.pairs import estimates, pair

DIM, DIRECTIONS = 8, 16
FEATURES = {"positive": DIRECTIONS, "hyperbolic": 2 * DIRECTIONS}
SETTINGS = [(length, angle) for length in (0.5, 0.75, 1.0) for angle in (0.5, 1.5, 2.8)]
TAIL = (1.0, 0.5)  # length and angle at which the squared error's own deviation is as large as its mean


def measure(product, small):
    calls, batches, draws = (1, 4, 500) if small else (5, 10, 10_000)
    for length, angle in SETTINGS[:2] if small else SETTINGS:
        if (length, angle) == TAIL:
            continue
        x, y = pair(DIM, length, angle)
        for kind, features in FEATURES.items():
            variant = f"performer[features={features},features_kind={kind},orthogonal=false]"
            for call in range(calls):
                all_found = estimates(product, variant, x, y, batches * draws, seed=call)
                for batch, found in enumerate(np.split(all_found, batches)):
                    yield {
                        "kind": kind,
                        "length": length,
                        "angle": angle,
                        "directions": DIRECTIONS,
                        "batch": call * batches + batch,
                        "draws": draws,
                        "mean": float(found.mean()),
                        "squared_error": float(np.square(found - np.exp(x @ y)).mean()),
                    }
