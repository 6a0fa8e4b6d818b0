"""Errors of Performer's estimate of exp(x·y) with orthogonal and with independent directions."""

import numpy as np
from attnreproduce.pairs import estimates, pair

DIM = 8
SETTINGS = [(length, angle) for length in (0.5, 0.75) for angle in (0.5, 1.5, 2.8)]


def measure(product, small):
    calls, batches, draws = (1, 4, 500) if small else (5, 10, 10_000)
    for length, angle in SETTINGS[:2] if small else SETTINGS:
        x, y = pair(DIM, length, angle)
        for orthogonal in (True, False):
            variant = f"performer[features={DIM},orthogonal={str(orthogonal).lower()}]"
            for call in range(calls):
                all_found = estimates(product, variant, x, y, batches * draws, seed=call)
                for batch, found in enumerate(np.split(all_found, batches)):
                    yield {
                        "orthogonal": orthogonal,
                        "length": length,
                        "angle": angle,
                        "dim": DIM,
                        "batch": call * batches + batch,
                        "draws": draws,
                        "mean": float(found.mean()),
                        "squared_error": float(np.square(found - np.exp(x @ y)).mean()),
                    }
