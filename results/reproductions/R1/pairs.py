"""Errors of Performer's estimate of exp(x·y), by positive and by hyperbolic features."""

from attnbench.reproduce.forms import squared_errors

DIM, DIRECTIONS = 8, 16
FEATURES = {"positive": DIRECTIONS, "hyperbolic": 2 * DIRECTIONS}
SETTINGS = [(length, angle) for length in (0.5, 0.75, 1.0) for angle in (0.5, 1.5, 2.8)]
TAIL = (1.0, 0.5)  # length and angle at which the squared error's own deviation is as large as its mean


def measure(product, small):
    for length, angle in SETTINGS[:2] if small else SETTINGS:
        if (length, angle) == TAIL:
            continue
        for kind, features in FEATURES.items():
            variant = f"performer[features={features},features_kind={kind},orthogonal=false]"
            for found in squared_errors(product, variant, DIM, length, angle, small):
                yield {"kind": kind, "directions": DIRECTIONS} | found
