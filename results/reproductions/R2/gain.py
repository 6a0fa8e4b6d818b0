"""Errors of Performer's estimate of exp(x·y) with orthogonal and with independent directions."""

import numpy as np
from attnreproduce.pairs import estimates, pair

DIM = 8
SETTINGS = [(length, angle) for length in (0.5, 0.75) for angle in (0.5, 1.5, 2.8)]


def measure(product, small):
    batches, draws = (4, 500) if small else (50, 10_000)
    for length, angle in SETTINGS:
        x, y = pair(DIM, length, angle)
        for orthogonal in (True, False):
            variant = f"performer[features={DIM},orthogonal={str(orthogonal).lower()}]"
            for batch in range(batches):
                found = estimates(product, variant, x, y, draws, seed=batch)
                yield {
                    "orthogonal": orthogonal,
                    "length": length,
                    "angle": angle,
                    "dim": DIM,
                    "batch": batch,
                    "draws": draws,
                    "mean": float(found.mean()),
                    "squared_error": float(np.square(found - np.exp(x @ y)).mean()),
                }
